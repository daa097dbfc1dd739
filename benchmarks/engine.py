"""Measure the figures of the engine; see benchmarks/results/engine.md for the last ones.

    python benchmarks/engine.py --data FOLDER --cache FOLDER
    python benchmarks/engine.py --only mean --maingo-python VENV/bin/python
    python benchmarks/engine.py --only throughput --backend torch:cuda --batch 65536

FOLDER holds `spambase.npz` and `mnist_358.npz`. Sections: ranges, images, mean, probability,
profile, throughput. Each replaces its own part of results/engine.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from report import Section, command_line, merge

SECTIONS = ("ranges", "images", "mean", "probability", "profile", "throughput")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, help="folder of the .npz files of real data")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, metavar="NAME")
    parser.add_argument("--points", type=int, default=20, help="test points of a question")
    parser.add_argument("--skip", type=int, default=0, help="test points left out before them")
    parser.add_argument("--cache", type=Path, help="folder for fitted models")
    parser.add_argument("--maingo-python", help="interpreter that has maingopy")
    parser.add_argument(
        "--maingo-probability", action="store_true", help="run MAiNGO for probabilities, too"
    )
    parser.add_argument("--backend", default="numpy", help="throughput: numpy, torch, torch:cuda")
    parser.add_argument("--batch", type=int, help="throughput: cells (65536 on a GPU, else 4096)")
    chosen = parser.parse_args()
    if chosen.data is None and {"ranges", "images"} & set(chosen.only):
        parser.error("the sections ranges and images need --data FOLDER")
    return chosen


def section_runner(name: str, options: argparse.Namespace) -> Callable[[], Section]:
    """The work of a section; its modules are imported only here, as some machines lack packages."""
    if name in ("ranges", "images"):
        import classification

        points = range(options.skip, options.skip + options.points)
        return lambda: getattr(classification, name)(options.data, options.cache, points)
    if name in ("mean", "probability"):
        import regression
        from peers import Peer

        asked = name == "mean" or options.maingo_probability
        peer = Peer(options.results / "maingo.json", options.maingo_python if asked else None)
        return lambda: getattr(regression, name)(peer)
    if name == "profile":
        import profiling

        return profiling.profile
    import batches

    size = options.batch or (65536 if "cuda" in options.backend else 4096)
    return lambda: batches.throughput(options.backend, size)


def main() -> None:
    """Run the chosen sections one after the other."""
    options = arguments()
    for name in options.only:
        print(name, flush=True)
        section = section_runner(name, options)()
        kind = f"{name} {options.backend}" if name == "throughput" else name
        merge(options.results, section, kind)


if __name__ == "__main__":
    main()
