"""Kernels of kinds of beads: geometry and constraints."""
