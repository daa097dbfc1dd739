"""How long random studies are: short where people wait for them, long in `make test-slow`."""

import os

THOROUGH = os.environ.get("GPCERT_THOROUGH", "") not in {"", "0"}


def examples(count: int) -> int:
    """Examples of a property test: `count` in a thorough run, a quarter of them, five at least,
    in every other."""
    return count if THOROUGH else max(5, count // 4)
