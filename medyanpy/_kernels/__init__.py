"""Compiled kernels: typed, without the GIL, without checks. Nothing here imports the rest of the package."""
