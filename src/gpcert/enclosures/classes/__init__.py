"""Enclosures of class probabilities: several latent outputs together."""
