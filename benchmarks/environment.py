"""What a measurement depends on: versions and machine, without names of hosts or folders."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gpcert.study.experiments.run import cpu_model

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "array-api-compat", "python-flint", "gpcert")


def environment() -> dict[str, Any]:
    """Versions, CPU, BLAS, threads and load at this moment."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "source tree" if package == "gpcert" else "absent"
    return found | {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "blas": _blas(),
        "gpu": _gpu(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def _blas() -> str:
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return f"unknown, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}"
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return "; ".join(
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')} "
        f"x{pool['num_threads']} threads"
        for pool in pools
    )


def _gpu() -> str | None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return torch.cuda.get_device_name(0)
