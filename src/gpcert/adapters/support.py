"""The table of what is supported, made from the adapters themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpcert.adapters.adapter import Adapter, Supported
from gpcert.adapters.registry import all_adapters
from gpcert.extras import optional

COLUMNS = ("library", "model", "likelihood", "kernels", "note")


@dataclass(frozen=True)
class SupportTable:
    """Rows of library and `Supported`; `print` shows them, `to_frame` and `markdown` convert."""

    rows: tuple[tuple[str, Supported], ...]

    def __str__(self) -> str:
        lines = []
        for library, row in self.rows:
            lines.append(f"{library} {row.model}: {row.likelihood}")
            lines.append(f"    kernels: {', '.join(row.kernels)}")
            lines += [f"    {row.note}"] if row.note else []
        return "\n".join(lines)

    def __len__(self) -> int:
        return len(self.rows)

    def to_frame(self) -> Any:
        """A pandas data frame, one row a class of models."""
        pandas = optional("pandas", "to_frame")
        return pandas.DataFrame(self._cells(), columns=list(COLUMNS))

    def markdown(self) -> str:
        """The table as docs/models.md holds it."""
        lines = [
            "| " + " | ".join(COLUMNS) + " |",
            "| " + " | ".join(["---"] * len(COLUMNS)) + " |",
        ]
        lines += ["| " + " | ".join(cells) + " |" for cells in self._cells()]
        return "\n".join(lines) + "\n"

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (library, row.model, row.likelihood, ", ".join(row.kernels), row.note)
            for library, row in self.rows
        ]


def support_of(adapters: list[Adapter]) -> SupportTable:
    """The table of these adapters."""
    return SupportTable(tuple((each.LIBRARY, row) for each in adapters for row in each.SUPPORTED))


def supported() -> SupportTable:
    """What `gpcert.certify` and the other verbs take: library, model, likelihood, kernels.

    Adapters of other packages (by `register` or by entry point) are in it.

    >>> table = supported()
    >>> "GaussianProcessRegressor" in str(table), list(table.to_frame().columns)[:2]
    (True, ['library', 'model'])
    """
    return support_of(all_adapters())
