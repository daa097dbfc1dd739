"""Kernels inside a region: one node a kernel, and how nodes compose."""
