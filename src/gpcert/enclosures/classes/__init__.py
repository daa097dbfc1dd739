"""Enclosures of class probabilities: several latent outputs together."""

from gpcert.enclosures.classes.layout import ClassLayout, class_layout

__all__ = ["ClassLayout", "class_layout"]
