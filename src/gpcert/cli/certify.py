"""`gpcert certify`: is the decision at each point the same in a ball around it?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gpcert.api import certify_many
from gpcert.certificates import Certificate, CertificateTable, Status
from gpcert.cli import options
from gpcert.cli.exits import exit_code
from gpcert.cli.models import load_model
from gpcert.cli.points import read_points
from gpcert.cli.terminal import above, below, console, say, say_written, table, verdict
from gpcert.errors import InputError
from gpcert.search import Budget

__all__ = ["certify", "EXAMPLES"]

EXAMPLES = """Examples:

gpcert certify model.npz points.csv --radius 0.1

gpcert certify digits.joblib images.csv --radius 0.05 --domain 0,1 --jobs 4 --output results.json

gpcert certify model.npz points.csv --radius 0.2 --norm 2 --features 0,3,5 --threshold 0.9

gpcert certify regressor.npz points.csv --radius 0.1 --delta 0.5

Exit code: 0 all proved; 1 some refuted; 2 none refuted, some undecided; 3 bad input; 4 a defect."""

LARGEST_TABLE = 50
"""Rows printed; more scroll past unread, and files hold them all."""


def certify(
    model: options.ModelFile,
    points: options.PointsFile,
    *,
    radius: options.Radius,
    norm: options.Norm = "inf",
    features: options.Features = None,
    domain: options.Domain = None,
    threshold: options.Threshold = None,
    delta: options.Delta = None,
    output_norm: options.OutputNorm = "inf",
    seconds: options.Seconds = 60.0,
    jobs: Annotated[int, typer.Option(help="processes; -1 for one a core")] = 1,
    backend: options.Backend = "numpy",
    method: options.Method = options.MethodChoice.taylor,
    variance: options.Variance = None,
    header: options.Header = None,
    output: options.Output = None,
    csv: Annotated[Path | None, typer.Option(help="write the table here as CSV")] = None,
) -> None:
    """Prove or refute that the decision at each point holds in a whole ball around it."""
    region = options.region_options(norm, features, domain)
    options.check_output(output, csv)
    if jobs == 0:
        raise InputError("--jobs: expected a number of processes, or -1 for one a core; got 0")
    posterior, X = load_model(model), read_points(points, header)
    result = certify_many(
        posterior,
        X,
        radius,
        **region,
        threshold=threshold,
        delta=delta,
        output_norm=output_norm,
        budget=Budget(seconds=seconds),
        backend=backend,
        **options.method_options(method, variance),
        n_jobs=jobs,
    )
    _show(result, radius, norm)
    if output is not None:
        result.save(output)
    if csv is not None:
        result.to_frame().to_csv(csv, index=False)
    say_written(output, csv)
    raise typer.Exit(exit_code(result))


def _show(result: CertificateTable, radius: float, norm: str) -> None:
    columns = ["point", "decision", "status", "margin ≥", "margin ≤", "moved by", "boxes", "ms"]
    rows = table(f"Certificates, l_{norm} radius {radius:g}", columns)
    for index, c in enumerate(result.certificates[:LARGEST_TABLE]):
        rows.add_row(
            str(index),
            "" if c.decision is None else str(c.decision),
            verdict(c.status),
            below(c.margin.lower),
            above(c.margin.upper),
            _moved(c),
            str(c.boxes),
            f"{1e3 * c.seconds:.1f}",
        )
    console().print(rows)
    if len(result) > LARGEST_TABLE:
        say(f"... and {len(result) - LARGEST_TABLE} more; --output and --csv write all")
    counts = [f"{result.count(status)} {status.name}" for status in Status]
    say(f"{len(result)} points: {', '.join(counts)}")
    if not result.complete:
        say("interrupted: the points that follow were not tried", style="yellow")


def _moved(certificate: Certificate) -> str:
    """Largest change of a feature from the point to the counter-example."""
    if certificate.counterexample is None:
        return ""
    center = np.asarray(certificate.region["center"])
    return f"{np.abs(certificate.counterexample - center).max():.4g}"
