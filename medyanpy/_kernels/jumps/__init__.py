"""The letter J, and kernels of jumps."""
