"""Ctrl-C in a call that runs several searches: the first that is interrupted ends them all.

One search catches the first Ctrl-C and returns the bounds it has (`StopReason.INTERRUPTED`). What
runs several must not go on to the next: after it has put the result away it calls
`stop_if_interrupted`, and ends by `KeyboardInterrupt` like any other code.
"""

from __future__ import annotations

from gpcert.search.budget import StopReason


def stop_if_interrupted(reason: StopReason) -> None:
    """Raise `KeyboardInterrupt` if that is what ended a search.

    >>> stop_if_interrupted(StopReason.CONVERGED)
    """
    if reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
