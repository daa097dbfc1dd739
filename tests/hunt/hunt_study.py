"""The study: many cases, counts of what was asked and answered, and everything that was wrong.

    python -m tests.hunt.hunt_study 1000            # cases 0 .. 999
    python -m tests.hunt.hunt_study 1000 --first 5000 --jobs 2
    python -m tests.hunt.hunt_study --seed 42       # one case, looked at more closely

A case is its seed. `make hunt LENGTH=100000` does the same.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.errors import GPCertError, InputError
from tests.hunt.hunt_again import again
from tests.hunt.hunt_cases import Case, draw_case
from tests.hunt.hunt_checks import Checker


@dataclass
class Outcome:
    """What came of one case."""

    seed: int
    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def report(self) -> str:
        """One line a finding, with the command that asks again."""
        again = f"python -m tests.hunt.hunt_study --seed {self.seed}"
        return "\n".join(
            f"seed {self.seed}: {text}    [{again}]" for text in self.findings[:MAX_LINES]
        )


def run_case(
    seed: int, deep: int = 1, families: tuple[str, ...] = (), timed: bool = True
) -> Outcome:
    """Draw a case, ask, and check; of all families, or of some only.

    `timed` holds it to its budget too: on a machine of known speed, and of nobody else's tests.
    """
    outcome = Outcome(seed)
    start = time.process_time()
    try:
        case = draw_case(seed)
    except GPCertError as error:
        outcome.counts[f"not drawn: {_template(error)}"] += 1
        if not _may_be_refused(str(error)):
            outcome.findings.append(f"the model was refused: {error}")
        return outcome
    if families and case.family not in families:
        return outcome
    outcome.counts.update(
        ["asked", f"family {case.family}", f"kind {case.kind}", f"verb {case.verb}"]
    )
    answer = _answer(case, outcome, timed)
    if answer is not None:
        _check(case, answer, outcome, deep)
    outcome.seconds = time.process_time() - start
    return outcome


def _answer(case: Case, outcome: Outcome, timed: bool) -> Any:
    """The library's answer; None, and a finding or a count, where there is none."""
    start = time.process_time()
    answer = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = case.ask()
        except InputError as error:
            outcome.counts[f"InputError: {_template(error)}"] += 1
            if not _may_be_refused(str(error)):
                outcome.findings.append(f"InputError for a valid question: {error}")
        except GPCertError as error:
            outcome.counts[type(error).__name__] += 1
            outcome.findings.append(f"{type(error).__name__}: {error}")
        except Exception as error:  # what must not happen is what is looked for
            outcome.counts[type(error).__name__] += 1
            outcome.findings.append(f"{type(error).__name__}: {error} {_place(error)}")
    used, allowed = time.process_time() - start, case.allowed_seconds()
    if timed and used > allowed:  # processor time: the machine may be busy
        outcome.counts["budget overrun"] += 1
        outcome.findings.append(f"took {used:.1f} s of at most {allowed:.1f} s")
    places = {f"{w.message} ({Path(w.filename).name}:{w.lineno})" for w in caught}
    outcome.counts["warned"] += bool(places)
    outcome.findings += [f"warning: {place}" for place in sorted(places)]
    return answer


def _check(case: Case, answer: Any, outcome: Outcome, deep: int) -> None:
    outcome.counts[_answered(answer)] += 1
    checker = Checker(case, deep)
    outcome.findings += checker.findings(answer)
    outcome.findings += again(case, answer, outcome.counts)
    outcome.counts["points checked"] += checker.points_checked
    outcome.counts["points without a reference"] += checker.skipped


def _answered(answer: Any) -> str:
    if hasattr(answer, "certificates"):
        answer = answer.certificates[0]
    if isinstance(answer, tuple):
        answer = answer[0]
    if hasattr(answer, "status"):
        return f"answer {answer.status.name}"
    if hasattr(answer, "converged"):
        useless = not np.isfinite(answer.minimum.lower + answer.maximum.upper)
        return f"answer range {'without a finite bound' if useless else answer.reason.name}"
    return f"answer radius {answer.reason.name}"


REFUSED = (
    "overflows; give a finite domain",
    "expected finite numbers",
    "take a smaller region, or check the kernel's parameters",
    "the paper's method for",
    "the paper's method has no bound for",
    "or it is too ill-conditioned",
    "length-scales, too many for float64",
    "length-scales; take a smaller region",
    "its prior variance, is about",
)
"""Parts of messages that a drawn case may earn: each is a documented limit."""

MAX_LINES = 2
"""Findings shown of one case."""


def _may_be_refused(text: str) -> bool:
    return any(part in text for part in REFUSED)


def _template(error: Exception) -> str:
    return re.sub(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", "#", str(error))[:110]


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return "at " + " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[:-5:-1])


def study(
    length: int, first: int = 0, jobs: int = 1, families: tuple[str, ...] = ()
) -> tuple[list[Outcome], Counter[str]]:
    """Run the cases; print findings as they come."""
    import joblib

    found, counts = [], Counter()
    work = joblib.Parallel(n_jobs=jobs, return_as="generator", batch_size=20)(
        joblib.delayed(run_case)(seed, families=families) for seed in range(first, first + length)
    )
    start = time.perf_counter()
    for done, outcome in enumerate(work, 1):
        counts.update(outcome.counts)
        counts["milliseconds"] += round(1e3 * outcome.seconds)
        if outcome.findings:
            found.append(outcome)
            print(outcome.report(), flush=True)
        if done % 2000 == 0:
            print(f"... {done} cases, {time.perf_counter() - start:.0f} s", flush=True)
    return found, counts


def show(length: int, found: list[Outcome], counts: Counter[str]) -> None:
    """Counts, and how many cases were wrong."""
    for name, count in sorted(counts.items()):
        print(f"{count:9d}  {name}")
    print(f"{length} cases: {len(found)} with findings")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("length", nargs="?", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, help="one case only, with more points")
    parser.add_argument("--family", action="append", default=[], help="of these families only")
    options = parser.parse_args()
    if options.seed is not None:
        print(draw_case(options.seed).text())
        outcome = run_case(options.seed, deep=4)
        print(outcome.report() or "nothing wrong")
        show(1, [outcome] if outcome.findings else [], outcome.counts)
        return bool(outcome.findings)
    found, counts = study(options.length, options.first, options.jobs, tuple(options.family))
    show(options.length, found, counts)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
