"""Inputs of models: points from data frames with named columns, and categorical features."""
