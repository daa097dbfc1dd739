"""Attacks: local search for points that break a property. Never imports an enclosure."""

from gpcert.attacks.descent import attack, descend

__all__ = ["attack", "descend"]
