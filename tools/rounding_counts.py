"""Every count of roundings in the sources, and what shadow runs say of it.

    python tools/rounding_counts.py [--cases 100] [--boxes 2] [--halve 20] [--only MODULE]

Runs cases of the hunt on shadow arrays (docs/soundness.md) and prints a table: how often a count
was used, the least that stood there, what it had to be (by counting roundings; for these numbers),
and a verdict:

    needed        half of it would be too small
    generous      half of it would do, in these cases
    second order  it steps over what is an allowance itself: its size hardly matters
    nothing seen  used on numbers whose errors are not followed (Python floats), or exact ones
    not reached   in no case

`--halve N` then halves N of the counts that the cases need, one at a time, and runs a case again
that needed it. The exit code is 1 if one is not noticed, or if a count is too small as it stands.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import gpcert  # noqa: E402
from gpcert.testing.rounding.ledger import Count, Ledger, Need, all_counts  # noqa: E402  # noqa: E402
from tests.rounding.problems import QUICK, shadow_run  # noqa: E402


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--boxes", type=int, default=2)
    parser.add_argument("--halve", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    budget = gpcert.Budget(boxes=options.boxes, seconds=20.0)  # boxes end it: a run repeats
    console = Console(width=None if sys.stdout.isatty() else 180)

    needs: dict[Count, Need] = {}
    noticing: dict[Count, int] = {}
    faults: dict[str, str] = {}
    seeds = [*QUICK, *(s for s in range(options.cases) if s not in QUICK)][: options.cases]
    for seed in seeds:
        ledger = shadow_run(seed, budget=budget)
        faults.update({f"{where} (case {seed})": text for where, text in ledger.faults.items()})
        for count, need in ledger.needs.items():
            needs.setdefault(count, Need()).join(need)
            if need.observed > 0.501:
                noticing.setdefault(count, seed)

    counts = [c for c in all_counts() if c.module.startswith(options.only)]
    console.print(_table(counts, needs))
    verdicts = Counter(needs[c].verdict if c in needs else "not reached" for c in counts)
    console.print(", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common()))
    for where, text in faults.items():
        console.print(f"too small: {where}: {text}")

    missed = 0
    noticed = sorted(c for c in noticing if c.module.startswith(options.only))
    for count in random.Random(0).sample(noticed, min(options.halve, len(noticed))):
        ledger = shadow_run(noticing[count], Ledger(halved=count), budget)
        missed += count not in ledger.faults
        console.print(
            f"{'not noticed' if count not in ledger.faults else 'noticed'}: half of {count}"
        )
    return 1 if faults or missed else 0


def _table(counts: list[Count], needs: dict[Count, Need]) -> Table:
    table = Table("count", "runs", "least", "by counting", "seen", "verdict", box=None)
    for count in counts:
        need = needs.get(count)
        if need is None:
            table.add_row(str(count), "0", "", "", "", "not reached")
            continue
        counted = need.share * need.given if count.call == "gamma" else need.counted
        numbers = (need.given, counted, need.weighted)
        shown = ("" if n == float("inf") else f"{n:.3g}" for n in numbers)
        table.add_row(str(count), str(need.runs), *shown, need.verdict)
    return table


if __name__ == "__main__":
    sys.exit(main())
