"""`gpcert verify` and `show`: certificates and records, possibly from others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import gpcert
from gpcert.cli.files import load_model
from gpcert.cli.options import command
from gpcert.cli.terminal import check_folder, console, option, say, say_written
from gpcert.errors import InputError
from gpcert.utils.optional_imports import optional

File = Annotated[Path, typer.Argument(metavar="FILE", help="a file written by gpcert")]


@command(
    "verify",
    "Examples:",
    "gpcert verify x.cert",
    "gpcert verify x.cert --model model.npz --jobs 4",
    "Exit code, that of gpcert-check: 0 checked; 1 refuted; 2 not covered; 3 bad file.",
)
def verify(
    file: File,
    model: Annotated[Path | None, option("the model that the certificate must be about")] = None,
    jobs: Annotated[int, option("processes", min=1)] = 1,
) -> None:
    """Check a certificate of `proof=True` with the separate program gpcert-check."""
    optional("flint", "gpcert verify")
    from gpcert_check.cli import main

    if model is not None:
        _check_model(file, model)
    raise typer.Exit(main([str(file), "--jobs", str(jobs)]))


def _check_model(file: Path, path: Path) -> None:
    """Exit with the code for "refuted" if the certificate is about another model."""
    from gpcert.certificates.proof import model_parts, model_sha256, read_header
    from gpcert.model.committee import Committee
    from gpcert.model.posterior import Posterior

    claimed, model = read_header(file).get("sha256"), load_model(path)
    candidates = (model, *getattr(model, "members", ()))
    for each in (each for each in candidates if isinstance(each, Posterior | Committee)):
        if any(model_sha256(*model_parts(each, means)) == claimed for means in (False, True)):
            return
    say(f"REFUTED: {file} is about another model than {path}")
    raise typer.Exit(1)


@command("show", "Examples:", "gpcert show x.cert", "gpcert show results.json")
def show(file: File) -> None:
    """Print any file that gpcert wrote: a record, a table, a model, a certificate."""
    from gpcert.certificates.proof import SUFFIX, read_header

    if file.suffix == SUFFIX:
        for name, text in header_rows(read_header(file)):
            say(f"{name:>12}  {text}")
        return
    console().print(str(gpcert.load(file)), markup=False, soft_wrap=True)


@command(
    "resume",
    "Examples:",
    "gpcert certify model.npz points.csv --radius 0.1 --checkpoint run.ckpt",
    "gpcert resume run.ckpt --output results.json",
    "Exit code: 0 it ended; 3 bad file or another call that writes it; 4 a defect.",
)
def resume(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a file of checkpoint=")],
    seconds: Annotated[
        float | None,
        option("time of each search, with what it took before, instead of its own"),
    ] = None,
    output: Annotated[Path | None, option("write the result here as JSON")] = None,
) -> None:
    """Go on with a call that was killed or interrupted, from its checkpoint, a file of yours."""
    if output is not None:
        check_folder("--output", output)
    answer = gpcert.resume(file, budget=seconds)
    for record in answer if isinstance(answer, tuple) else (answer,):
        console().print(str(record), markup=False, soft_wrap=True)
    if output is not None:
        if isinstance(answer, tuple):
            raise InputError("--output: several ranges share no file; call gpcert.resume")
        answer.save(output)
        say_written(output)


@command(
    "page",
    "Examples:",
    "gpcert page x.cert",
    "gpcert page results.json --output results.html",
)
def page(
    file: File,
    output: Annotated[
        Path | None, option("the file to write; by default that of FILE, ending in .html")
    ] = None,
) -> None:
    """Write a certificate, a record or a table as one HTML page that needs no network."""
    from gpcert.certificates.page import page_of

    path = file.with_suffix(".html") if output is None else output
    check_folder("--output", path)
    text = page_of(file)
    path.write_text(text, encoding="utf-8")
    say_written(path)


def header_rows(header: dict[str, Any]) -> list[tuple[str, str]]:
    """Rows of text with the contents of a certificate's header."""
    from gpcert.certificates.proof import CLAIMS

    try:
        question, answer, rows = header["question"], header["answer"], []
        pairs = zip(question.get("rows", [question]), answer.get("rows", [answer]), strict=True)
        for asked, answered in pairs:
            rows += [("question", _question(asked)), ("answer", _answer(answered))]
            region = {k: v for k, v in asked["region"].items() if v is not None}
            rows.append(("region", str(region)))
        members = header["model"].get("members", [header["model"]])
        names = members[0].get("feature_names")
        rows += [("features", ", ".join(map(str, names)))] if names else []
        rows += [("kernel", str(member["kernel"])) for member in members]
        rows.append(("claim", CLAIMS.get(header["claim"], str(header["claim"]))))
        rows.append(("model", f"sha256 {header['sha256']}"))
        rows += [(str(name), str(text)) for name, text in header["provenance"].items()]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"expected a certificate with question and answer ({error!r})") from error
    return [*rows, ("status", "not checked: use gpcert verify")]


def _question(question: dict[str, Any]) -> str:
    if question["kind"] == "range":
        return f"range of: {question['meaning']}"
    if question["kind"] == "regret":
        return f"regret by confidence bounds with beta {question['goals'][0]['beta']:g}"
    label = question.get("decision")
    return question["rule"] if label is None else f"{question['rule']}; decision {label!r} at x"


def _answer(answer: dict[str, Any]) -> str:
    if "status" in answer:
        return str(answer["status"])
    if "shares" in answer:
        told = (f"{s['label']!r}: share of the volume in {s['share']}" for s in answer["shares"])
        return "; ".join(told)
    if "lower" in answer:
        refuted = "" if answer["upper"] is None else f", refuted at {answer['upper']}"
        return f"held up to {answer['lower']}{refuted}"
    if "bound" in answer:
        return f"at most {answer['bound']}"
    ends = (
        f"least of goal {k} in [{e['lower']}, {e['upper']}]" for k, e in enumerate(answer["ends"])
    )
    return "; ".join(ends)
