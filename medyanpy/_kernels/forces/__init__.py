"""Kernels of forces: energies, forces and their derivatives."""
