"""Numerical tools: rounding, array namespaces, proved norms, triangular inverses, deadlines."""
