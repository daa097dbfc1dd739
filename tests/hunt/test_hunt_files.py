"""Damaged and hostile files end in the right object or an `InputError`, with little memory."""

import os
from collections import Counter

import numpy as np
import pytest

from tests.hunt.hunt_files import insane, load_findings, mutant, readers, write_originals

KINDS = ("posterior", "committee", "certificate", "table", "range", "radius")


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    paths = write_originals(tmp_path_factory.mktemp("originals"))
    return {kind: path.read_bytes() for kind, path in paths.items()}


def findings(originals, seed, folder):
    kind = KINDS[seed % len(KINDS)]
    rng = np.random.default_rng([3, seed])
    data = mutant(rng, originals[kind], archive=kind in {"posterior", "committee"})
    return [f"seed {seed}, {kind}: {text}" for text in load_findings(kind, data, folder)]


@pytest.mark.parametrize("kind", KINDS)
def test_originals_load(kind, originals, tmp_path):
    path = tmp_path / ("file.npz" if kind in {"posterior", "committee"} else "file.json")
    path.write_bytes(originals[kind])
    assert insane(readers()[kind](path)) == []


@pytest.mark.parametrize("block", range(6))
def test_mutants_are_refused_or_right(block, originals, tmp_path):
    seeds = range(10 * block, 10 * block + 10)
    found = [text for seed in seeds for text in findings(originals, seed, tmp_path)]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_many_mutants_are_refused_or_right(originals, tmp_path, capsys):
    length = int(os.environ.get("GPCERT_HUNT_FILES", "10000"))
    found = [text for seed in range(length) for text in findings(originals, seed, tmp_path)]
    with capsys.disabled():
        for text, count in Counter(f.split(": ", 1)[1][:60] for f in found).most_common():
            print(f"{count:6d}  {text}")
        print(f"{length} files: {len(found)} findings")
    assert not found, "\n".join(found[:50])
