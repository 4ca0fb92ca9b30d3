"""The hot kernels, built for avx2."""
