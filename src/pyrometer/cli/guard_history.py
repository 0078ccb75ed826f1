"""`pyrometer guard record`, `history`, `accept`, `prune` and `export`."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.cli.pages import page_option, write_page
from pyrometer.cli.parameters import DURATION
from pyrometer.cli.printing import print_document, print_view
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.saving import store_option, store_place, tell_notes
from pyrometer.errors import ExitCode, InputError, UsageError
from pyrometer.redaction import redacted_argv

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyrometer.bench.stage import Progress
    from pyrometer.guard.check import GuardOptions
    from pyrometer.guard.exchange.past import PastPoint
    from pyrometer.guard.gate import GuardReport
    from pyrometer.report.history_documents import GuardHistoryDocument
    from pyrometer.store.store import Store


@click.command()
@click.argument("commit", default="HEAD")
@click.option("-k", "select", metavar="WORDS", help="Only benchmarks that these words fit, as in pytest.")
@click.option("--budget", type=DURATION, help="Begin no further pair after so long.")
@click.option("--restart", is_flag=True, help="Begin a new history on this machine or with these settings.")
@click.option(
    "--from",
    "places",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Measure nothing; keep what pytest-benchmark or asv wrote to a file or folder.",
)
@store_place
def record(
    store_location: str,
    *,
    commit: str,
    select: str | None,
    budget: float | None,
    restart: bool,
    places: tuple[Path, ...],
) -> int:
    """Measure COMMIT against the commit that was recorded before it, and keep the ratios.

    What is not committed is left out. Exits with 0 when it was recorded, whatever got worse: `guard history` tells; with 3 when base
    against base alarmed, so that it does not count.
    """
    if places:
        return _record_past(store_location, places)
    from pyrometer.guard.history.recording import record as record_commit
    from pyrometer.hardware.environment import read_environment
    from pyrometer.store.store import Store

    environment = read_environment()
    store = Store.open_if_there(store_location)
    with progress_bar() as progress:
        options = _options(store_location, budget, progress, head=commit, select=select)
        report = record_commit(Path.cwd(), options, store, environment, restart=restart)
    code = _ended(report)
    _keep(store_location, "guard-record", report, environment)
    return code


def _record_past(store_location: str, places: Iterable[Path]) -> int:
    """Keep what other tools measured; what is kept already is not kept twice."""
    from pyrometer.guard.exchange.reading import read_past
    from pyrometer.guard.history.stored import PAST, read_past_points
    from pyrometer.hardware.environment import read_environment
    from pyrometer.quantity import counted
    from pyrometer.store.store import Store

    points = [point for place in places for point in read_past(place)]  # all are read before one is kept
    store, environment = Store.open_if_there(store_location), read_environment()
    known = [] if store is None else [_what(point) for point in read_past_points(store)]
    for point in points:
        said = f"{counted(len(point.figures), 'figure')} of {point.tool} at {point.target[:9]}"
        if _what(point) in known:
            click.echo(f"kept already: {said}")
            continue
        known.append(_what(point))
        _keep(store_location, PAST, point, environment)
        click.echo(f"recorded {said}")
        for note in point.notes:
            click.echo(f"note: {note}", err=True)
    return ExitCode.OK


def _what(point: PastPoint) -> tuple[Any, ...]:
    """What makes two files the same result; a stored one lacks what may be a secret."""
    return point.tool, point.commit, point.taken_at, point.figures


@click.command()
@click.option(
    "--prove", "proves", is_flag=True, help="Measure both ends of what is open, in this repository."
)
@click.option("--budget", type=DURATION, help="For each proof: begin no further pair after so long.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@page_option
@store_place
def history(
    store_location: str, *, proves: bool, budget: float | None, as_json: bool, page: Path | None
) -> int:
    """Show how the suite did from commit to commit.

    Exits with 1 while a proved regression stands that nobody has accepted.
    """
    from pyrometer.report.terminal import view
    from pyrometer.store.store import Store

    store = Store.open(store_location, create=False)
    document = read_document(store)
    if proves:
        _prove(document, store_location, budget)
        document = read_document(store)
    write_page(document, page, store_location=None)
    if as_json:
        print_document(document)
    else:
        print_view(view(document))
    return ExitCode.FOUND if document.history.standing else ExitCode.OK


@click.command()
@click.argument("commit")
@click.option("--reason", help="Why it is fine.")
@click.option("--withdraw", is_flag=True, help="Take it back.")
@store_option
def accept(store: Store, *, commit: str, reason: str | None, withdraw: bool) -> None:
    """Accept what changed up to COMMIT, the last commit of a change."""
    from pyrometer.guard.history.stored import accept as accept_change

    if withdraw == (reason is not None):
        raise UsageError("guard accept needs --reason WORDS, or --withdraw alone")
    whole = accept_change(store, commit, reason)
    click.echo(f"{whole[:9]}: {'no longer accepted' if withdraw else f'accepted: {reason}'}")


@click.command()
@click.option(
    "--keep", type=click.IntRange(min=0), required=True, metavar="N", help="Keep the newest N commits."
)
@click.option("--dry-run", is_flag=True, help="Say what would be deleted without deleting it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_option
def prune(store: Store, *, keep: int, dry_run: bool, as_json: bool) -> None:
    """Delete the records of older commits, their proofs, and records of other machines."""
    from pyrometer.guard.history.stored import prune as prune_history
    from pyrometer.quantity import counted
    from pyrometer.record import to_json

    removed = prune_history(store, keep=keep, dry_run=dry_run)
    if as_json:
        click.echo(to_json(removed))
    else:
        did = "would be deleted" if dry_run else "deleted"
        click.echo(f"{counted(len(removed.runs), 'job')} {did}; {counted(removed.num_kept, 'commit')} kept")


@click.command()
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="FILE.csv, FILE.json, FILE.html, FILE.bencher.json or FILE.codspeed.json.",
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@store_option
def export(store: Store, *, output: Path, force: bool) -> None:
    """Write the history to a file; the extension chooses the format.

    CSV has a row per benchmark, metric and commit. .bencher.json and .codspeed.json have the figures of the last commit: the one for
    `bencher run --adapter json`, the other as CodSpeed's instrument for wall time writes them.
    """
    from pyrometer.cli.export import write_file
    from pyrometer.cli.printing import document_json
    from pyrometer.record import to_dict
    from pyrometer.report.html import page

    document = read_document(store)
    written = {
        ".csv": lambda: _rows(document),
        ".json": lambda: document_json(to_dict(document)),
        ".html": lambda: page(document).encode("utf-8", "replace"),
        ".bencher.json": lambda: _for_service(store, "to_bencher_metrics"),
        ".codspeed.json": lambda: _for_service(store, "to_codspeed"),
    }
    name = output.name.lower()
    extension = max((end for end in written if name.endswith(end)), key=len, default=None)
    if extension is None:
        raise InputError(
            f"{output}: the extension {output.suffix!r} names no format; legal are {', '.join(written)}"
        )
    write_file(output, written[extension](), force=force)


def read_document(store: Store) -> GuardHistoryDocument:
    """The history of a store, with the commits of the repository of the working directory where there is one.

    Raises:
        InputError: no commit is recorded.
        StoreError: the store cannot be read.
    """
    from pyrometer.guard.revisions import repository
    from pyrometer.report.guarding import history_document

    try:
        root: Path | None = repository(Path.cwd())
    except InputError:
        root = None
    return history_document(store, root)


def _prove(document: GuardHistoryDocument, store_location: str, budget: float | None) -> None:
    from pyrometer.guard.history.recording import prove
    from pyrometer.guard.history.stored import require_same_conditions
    from pyrometer.hardware.environment import read_environment

    environment = read_environment()
    if document.environment is not None:
        require_same_conditions(document.environment, environment)
    for request in document.history.to_prove:
        span = f"{request.base_sha[:9]}..{request.head_sha[:9]}"
        with progress_bar() as progress:
            report = prove(Path.cwd(), _options(store_location, budget, progress), request)
        _keep(store_location, "guard-proof", report, environment)
        click.echo(f"measured {span}: {_summary(report)}", err=True)


def _options(
    location: str,
    budget: float | None,
    progress: Progress,
    head: str | None = None,
    select: str | None = None,
) -> GuardOptions:
    from pyrometer.guard.check import GuardOptions
    from pyrometer.store.place import local_folder

    journal = local_folder(location).absolute() / "unfinished"
    return GuardOptions(
        base="", head=head, select=select, budget_s=budget, journal=journal, progress=progress
    )


def _keep(location: str, kind: str, document: GuardReport | PastPoint, environment: Any) -> None:
    from pyrometer.record import to_dict
    from pyrometer.store.saving import save_result

    saved = save_result(
        location,
        to_dict(document),
        kind=kind,
        target=document.target,
        environment=environment,
        command=["pyrometer", *redacted_argv(sys.argv[1:])],
    )
    tell_notes(saved.notes)


def _ended(report: GuardReport) -> int:
    base, head = (side.sha[:9] if side is not None else "" for side in (report.base, report.head))
    click.echo(f"recorded {head} against {base}: {_summary(report)}")
    for miss in report.missed:
        click.echo(f"note: {miss.benchmark}: {miss.reason}", err=True)
    if not report.gates:
        return ExitCode.FAILURE
    if not report.trusted:
        click.echo(
            "not to be trusted: base against base alarmed; record it again when the machine is quieter",
            err=True,
        )
        return ExitCode.UNDECIDED
    return ExitCode.OK


def _summary(report: GuardReport) -> str:
    counts = {"regressed": 0, "improved": 0, "undecided": 0, "unchanged": 0}
    for gate in report.gates:
        counts[gate.outcome] += 1
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "no metric"


def _rows(document: GuardHistoryDocument) -> bytes:
    from pyrometer.guard.history.record import Point

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["benchmark", "metric", "kind", *Point.__struct_fields__])
    for series in document.history.series:
        for point in series.points:
            own = [getattr(point, name) for name in Point.__struct_fields__]
            writer.writerow([series.benchmark, series.metric, series.kind, *own])
    return text.getvalue().encode()


def _for_service(store: Store, function: str) -> bytes:
    from pyrometer.guard.exchange import writing
    from pyrometer.guard.history.stored import read_jobs

    records = read_jobs(store).records
    if not records:
        raise InputError(f"{store.name}: no commit is recorded; pyrometer guard record makes the first one")
    return json.dumps(getattr(writing, function)(records[-1].report.gates), indent=1).encode()
