"""`gpcert explore`: a page on which a model is explored, with proved verdicts where one clicks.

It needs the extra `explore` (Panel and Bokeh).
"""

from gpcert.explorer.page import Explorer

__all__ = ["Explorer"]
