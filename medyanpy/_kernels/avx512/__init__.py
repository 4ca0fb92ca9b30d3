"""The hot kernels, built for avx512."""
