"""Inputs of models: points from data frames by name, and categories by number."""
