"""Sections `points` and `streamed`: many test points, a million boxes that are killed and go on."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from report import Section

import gpcert
from models import fitted

QUESTIONS = [("spam", 0.1, np.inf, None, 2.0), ("mnist38", 0.05, np.inf, (0.0, 1.0), 60.0)]
QUESTIONS += [("mnist38", 0.1, np.inf, (0.0, 1.0), 60.0)]
QUESTIONS += [("spam", 0.1, 2, None, 2.0), ("spam", 0.3, 2, None, None)]
"""Model, radius, norm, domain, and the seconds on two cores that are wanted."""

FAR_FROM_DONE = 30
"""Blocks after which the run is killed."""


def many_points(count: int, data: Path, cache: Path | None) -> Section:
    """Decisions at test points by `certify_many`, and the radii of some by `certified_accuracy`."""
    section = Section("points", f"{count} test points in one call, N = 1000")
    section.notes.append("one process of one thread; targets: wall-clock seconds on two cores")
    for name, radius, norm, domain, target in QUESTIONS:
        model, split = fitted(name, data, cache)
        posterior = gpcert.as_posterior(model)
        X = split.X_test[:count]
        wall, cpu = time.perf_counter(), time.process_time()
        table = gpcert.certify_many(posterior, X, radius, norm=norm, domain=domain, budget=5)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        section.add(
            model=name,
            radius=radius,
            norm=str(norm),
            features=X.shape[1],
            points=len(X),
            cpu_seconds=cpu,
            seconds=wall,
            target_seconds=target,
            first_box=sum(c.boxes == 1 for c in table),
            outcome=dict(Counter(c.status.name for c in table)),
        )
    return section


def streamed(count: int) -> Section:
    """A run to a file that is killed, the run that goes on, and the memory of both."""
    section = Section("streamed", f"{count} boxes to a .npy file: means of three outputs, N = 1000")
    with tempfile.TemporaryDirectory() as folder:
        ask = [sys.executable, __file__, str(count), f"{folder}/mean.npy"]
        with subprocess.Popen(ask, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(min(FAR_FROM_DONE, count // 8192 // 2)):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        done = json.loads(Path(f"{folder}/mean.npy.progress.json").read_text())["done"]
        section.add(run="killed", blocks_done=len(done))
        last = subprocess.run(ask, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(last.stdout.splitlines()[-1])
        size = Path(f"{folder}/mean.npy").stat().st_size / 1e9
        section.add(run="resumed", **found, file_gb=size)
    section.notes.append("the killed run and the one that goes on are processes of their own")
    return section


def one_run(count: int, path: str) -> dict[str, Any]:
    """The boxes of one process; tells of every block."""
    from scale import CELL, D, learned_dynamics

    from gpcert.certificates.boxes import BoxFile

    write = BoxFile.write

    def told(self: BoxFile, *arguments: Any) -> None:
        write(self, *arguments)
        print("block", flush=True)

    BoxFile.write = told
    low = np.random.default_rng(2).uniform(0.0, 1.0 - CELL, (count, D))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    models = [gpcert.as_posterior(each) for each in learned_dynamics()]
    start = time.process_time()
    bounds = gpcert.bound_boxes(models, low, low + CELL, out=path, progress=False)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "boxes_done": bounds.boxes // len(models),
        "complete": bounds.complete,
        "cpu_seconds": seconds,
        "per_cpu_second": bounds.boxes / len(models) / seconds,
        "corners_gb": 2 * low.nbytes / 1e9,
        "peak_gb": peak / 1e6,
        "peak_before_gb": before / 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(one_run(int(sys.argv[1]), sys.argv[2])))
