"""The checker's exam: `PYTHONPATH=. python benchmarks/exam.py CERTIFICATES [SECONDS] [FIRST_SEED]`.

Certificates over random models, kernels, regions and questions (those of `tests/check`), each of
which must be accepted, and of every one the forgeries of `tests/check/forgeries.py`, each of which
claims something false and must be rejected. Ends after so many certificates and as many forgeries,
or after some seconds; prints the counts and the seeds that failed, and exits 1 if there are any.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from tests.check.check_cases import CHECKED, random_certificate, verdict
from tests.check.forgeries import forgeries, opened, written

NAMES = {1: "refuted", 2: "not covered", 3: "bad file"}


def main(count: int, seconds: float, first: int) -> int:
    """Run it; the number of failures."""
    start, counts, failed = time.perf_counter(), Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        path, seed = Path(folder, "x.cert"), first
        while min(counts["certificates"], counts["forgeries"]) < count:
            if time.perf_counter() - start > seconds:
                break
            rng = np.random.default_rng(seed)
            certificate = random_certificate(rng)
            seed += 1
            if certificate is None:
                counts["undecided"] += 1
                continue
            certificate.save(path)
            if counts["certificates"] < count:
                counts["certificates"] += 1
                if verdict(path) != CHECKED:
                    failed.append((seed - 1, "a true certificate"))
            if counts["forgeries"] >= count:
                continue
            for what, header, arrays in forgeries(*opened(path), certificate, rng):
                written(path, header, arrays, rehash=what != "hash")
                code = verdict(path, "--splits", "300")
                counts["forgeries"] += 1
                counts[NAMES.get(code, "accepted")] += 1
                if code == CHECKED:
                    failed.append((seed - 1, what))
    print(
        f"{counts['certificates']} certificates, {counts['forgeries']} forgeries (seeds {first} to "
        f"{seed - 1}) in {time.perf_counter() - start:.0f} s; rejected as refuted "
        f"{counts['refuted']}, not covered {counts['not covered']}, bad file {counts['bad file']}"
    )
    print("failed:", failed or "none")
    return len(failed)


if __name__ == "__main__":
    given = [float(word) for word in sys.argv[1:]] + [10_000.0, 1e9, 0.0][len(sys.argv) - 1 :]
    sys.exit(main(int(given[0]), given[1], int(given[2])) > 0)
