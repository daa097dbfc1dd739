"""Consoles of any encoding: what they cannot show is spelled in ASCII, and nothing is lost."""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata

HANDLER = "gpcert.spelled"

SPELLED = {"≥": ">=", "≤": "<=", "…": "...", "±": "+-", "×": "x", "–": "-", "—": "-", "−": "-"}


def spelled(text: str) -> str:
    """ASCII that reads much like the text.

    >>> spelled("Matérn ≥ 1 … ✓")
    'Matern >= 1 ... ?'
    """
    found = []
    for character in text:
        plain = SPELLED.get(character, unicodedata.normalize("NFKD", character))
        ascii_only = plain.encode("ascii", "ignore").decode()
        found.append(character if character.isascii() else ascii_only or "?")
    return "".join(found)


def prepare_streams() -> None:
    """Let standard output and error replace what their encoding lacks, instead of raising.

    So it is on every redirect on Windows (cp1252), and with PYTHONIOENCODING or LC_ALL set so.
    """
    codecs.register_error(HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def flush() -> None:
    """Write what is left; if the reader of a pipe went away, that is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more when it ends, and would end with another code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return spelled(error.object[error.start : error.end]), error.end
