"""Pictures in tests: drawn where matplotlib is installed, left out elsewhere."""

from importlib.util import find_spec


def drawn(record):
    """Draw a record on a figure of its own, without a window system."""
    if find_spec("matplotlib") is not None:
        from matplotlib.figure import Figure

        record.plot(Figure().subplots())
