"""Kernels of a step in Triton, their launches without a C compiler, and their callers."""
