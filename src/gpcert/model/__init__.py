"""Models: the posterior, the canonical object, and several of them together."""
