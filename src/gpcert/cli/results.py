"""Output of results: files and pictures first, then the console."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from gpcert.cli.terminal import (
    ExitCode,
    cells,
    check_folder,
    console,
    option,
    say,
    say_written,
    settled,
    table,
)
from gpcert.errors import InputError
from gpcert.utils.optional_imports import Axes, optional

if TYPE_CHECKING:
    from gpcert.certificates.record import RecordTable

Fields = str | Callable[[Any], Sequence[RenderableType]]
"""Names of a row's fields, or a function that returns its cells."""

ENDS = ("minimum >=", "attained", "attained", "maximum <=")
"""Columns of a range."""

LARGEST_TABLE = 50
"""Largest number of printed rows; files hold all rows."""

KINDS = {".png", ".svg", ".pdf"}
PIXELS_PER_INCH = 130
WIDTH, HEIGHT = 6.4, 4.4


@dataclass(frozen=True)
class Picture:
    """A file for the picture."""

    plot: Annotated[Path | None, option("draw the result here, a .png, .svg or .pdf file")] = None

    def check(self) -> None:
        """Check before the computation that the picture can be written."""
        if self.plot is None:
            return
        if self.plot.suffix.lower() not in KINDS:
            raise InputError(
                f"--plot: expected a file that ends in {', '.join(sorted(KINDS))}, got "
                f"{str(self.plot)!r}"
            )
        check_folder("--plot", self.plot)
        optional("matplotlib", "--plot")

    def draw(self, draw: Callable[[Axes], Any], place: Console) -> None:
        """Draw on a new figure, and print its path."""
        if self.plot is not None:
            from gpcert.plots.axes import new_figure

            figure = new_figure(WIDTH, HEIGHT)
            draw(figure.subplots())
            figure.savefig(self.plot, dpi=PIXELS_PER_INCH)
            say_written(self.plot, place=place)


@dataclass(frozen=True)
class Files:
    """Files for the results; "-" is standard output, which then contains nothing else."""

    output: Annotated[
        Path | None, option("write the results here as JSON; - for standard output")
    ] = None
    csv: Annotated[Path | None, option("write the table here as CSV; - for standard output")] = None

    def check(self) -> None:
        """Check before the computation that results can be written."""
        if self._streamed(self.output) and self._streamed(self.csv):
            raise InputError("--output and --csv: expected at most one of them to be -")
        for path in self.written:
            check_folder("output", path)
            if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
                raise InputError(f"output: expected a writable path, got {str(path)!r}")
            if path.is_dir():
                raise InputError(
                    f"output: expected the name of a file, got the folder {str(path)!r}"
                )
        if self.csv is not None:
            optional("pandas", "--csv")

    def save(self, result: Any) -> None:
        """Write all requested files."""
        if self.output is not None:
            _write(self.output, result.to_json())
        if self.csv is not None:
            _write(self.csv, result.to_frame().to_csv(index=False, lineterminator="\n"))

    def end(
        self,
        result: RecordTable[Any],
        title: str,
        columns: Sequence[str],
        fields: Fields,
        summary: str,
        picture: Picture | None = None,
        *,
        code: Callable[[Any], ExitCode] = settled,
    ) -> NoReturn:
        """Draw, write and show the result, and end the command with its exit code."""
        if picture is not None and len(result):
            picture.draw(result.plot, self.place)
        elif picture is not None and picture.plot is not None:
            say(f"not drawn: {picture.plot}, as there is no result", self.place, style="yellow")
        self.report(result, lambda files: files.show(result, title, columns, fields, summary))
        raise typer.Exit(code(result))

    def report(self, result: Any, show: Callable[[Files], None]) -> None:
        """Write the files, then show the result, even if the files cannot be written."""
        try:
            self.save(result)
        except OSError:
            show(Files())
            raise
        show(self)

    def show(
        self,
        result: RecordTable[Any],
        title: str,
        columns: Sequence[str],
        fields: Fields,
        summary: str,
    ) -> None:
        """Print the table, cut if it is long, one line of summary, and the paths of the files."""
        place = self.place
        rows = table(title, ["point", *columns])
        for label, row in list(zip(result.labels, result, strict=True))[:LARGEST_TABLE]:
            # text of users, such as labels, is not markup
            texts = cells(row, fields) if isinstance(fields, str) else fields(row)
            rows.add_row(*(Text(c) if isinstance(c, str) else c for c in (str(label), *texts)))
        place.print(rows)
        if len(result) > LARGEST_TABLE:
            say(f"... and {len(result) - LARGEST_TABLE} more; --output and --csv write all", place)
        say(summary, place)
        if not result.complete:
            say("interrupted: the remaining points were not computed", place, style="yellow")
        say_written(*self.written, place=place)

    @property
    def place(self) -> Console:
        """The console for messages: standard error if standard output holds results."""
        return console(stderr=self._streamed(self.output) or self._streamed(self.csv))

    @property
    def written(self) -> list[Path]:
        """Files, not standard output."""
        paths = (self.output, self.csv)
        return [path for path in paths if path is not None and not self._streamed(path)]

    @staticmethod
    def _streamed(path: Path | None) -> bool:
        return str(path) == "-"


def _write(path: Path, text: str) -> None:
    content = text.encode("utf-8")
    if str(path) != "-":
        path.write_bytes(content)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)  # results are UTF-8, whatever the encoding of the console
    sys.stdout.buffer.flush()
