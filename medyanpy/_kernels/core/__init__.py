"""The step program, the World, the box, random numbers, neighbours: what all other kernels use."""
