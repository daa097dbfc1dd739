"""What a measurement depends on: versions, machine, data; no names of hosts or folders."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from gpcert.certificates.io import package_version
from gpcert.experiments.parts import code_digest
from gpcert.experiments.results import Environment


def environment(data: Mapping[str, str], random_state: int) -> Environment:
    """Of this process; `data` are digests by name.

    >>> environment({}, 0).random_state
    0
    """
    return Environment(
        gpcert=f"{package_version()} (code {code_digest()[:12]})",
        python=platform.python_version(),
        numpy=version("numpy"),
        scipy=version("scipy"),
        sklearn=version("scikit-learn"),
        machine=f"{platform.system()} {platform.machine()}",
        cpu=cpu_model(),
        cores=os.cpu_count() or 1,
        data=dict(data),
        random_state=random_state,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )


def cpu_model() -> str:
    """The processor by its name, where the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
