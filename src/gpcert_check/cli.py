"""The command `gpcert-check FILE`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from gpcert_check import container
from gpcert_check.verdicts import Verdict

CODES = {1: "REFUTED", 2: "NOT COVERED", 3: "BAD FILE"}

TRUSTED = """trusted: this program, python-flint (ball arithmetic), Python; that the numbers in the
file are the model that is meant. The claim is about """
MEANT = {
    "A": "real arithmetic (kind A), not about the\nrounding of another library's predict.",
    "B": "real arithmetic and what evaluation in\nfloat64 gives of the same numbers (kind B).",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one file; the exit code is 0 checked, 1 refuted, 2 not covered, 3 bad file."""
    parser = argparse.ArgumentParser("gpcert-check", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--splits", type=int, default=10**6, help="cells beyond the leaves, at most"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    try:
        from gpcert_check.questions import certificates
    except ImportError as error:
        print(f"gpcert-check needs python-flint: pip install 'gpcert[check]' ({error})")
        return 3
    start = time.perf_counter()
    try:
        header, arrays = container.read(options.file)
        wanted = sys.stderr.isatty() and not options.quiet
        progress = _progress if wanted else lambda text: None
        leaves = cells = count = 0
        for certificate in certificates(header, arrays):
            certificate.splits = options.splits
            for statement in certificate.statements:
                print(f"claim: {statement}")
            more, further = certificate.check(max(1, options.jobs), progress)
            leaves, cells, count = leaves + more, cells + further, count + 1
    except Verdict as verdict:
        print(f"{CODES[verdict.code]}: {verdict}")
        return verdict.code
    seconds = time.perf_counter() - start
    of = "" if count == 1 else f"{count} certificates, "
    print(f"CHECKED: {of}{leaves} leaves in {cells} cells, {seconds:.2f} s")
    print(TRUSTED + MEANT[header["claim"]])
    return 0


def _progress(text: str) -> None:
    print(f"\r{text}", end="", file=sys.stderr, flush=True)
