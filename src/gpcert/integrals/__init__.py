"""Integrals over Gaussians with proved errors: what the likelihoods' predictions are made of."""
