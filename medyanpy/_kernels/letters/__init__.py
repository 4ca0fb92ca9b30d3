"""Kernels of the letters of a word."""
