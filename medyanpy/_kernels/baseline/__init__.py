"""The hot kernels, built for baseline."""
