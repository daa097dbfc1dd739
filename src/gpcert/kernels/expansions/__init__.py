"""Functions of a kernel's space as quadratics on cells: what the enclosures read."""
