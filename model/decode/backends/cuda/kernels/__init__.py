"""Kernels of a step in Triton, how they are launched without a C compiler, and who calls them."""
