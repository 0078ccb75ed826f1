"""`pyrometer guard check`: head against base, and base against itself, in one job."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.cli.interrupts import INTERRUPTED, finishing
from pyrometer.cli.pages import page_option, write_page
from pyrometer.cli.parameters import DURATION
from pyrometer.cli.printing import document_json, full_option, print_document, print_result
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.saving import provenance, save_run, store_options
from pyrometer.errors import ExitCode, InputError
from pyrometer.garbage import uncollected
from pyrometer.settings import load_settings

if TYPE_CHECKING:
    from pyrometer.guard.gate import GuardReport, Missed

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--base", default="main", show_default=True, help="Branch, tag or commit to compare with.")
@click.option("--head", help="Commit to judge.  [default: what is checked out, with its changes]")
@click.option("--list", "only_list", is_flag=True, help="Name the benchmarks and end.")
@click.option("-k", "select", metavar="EXPRESSION", help="Benchmarks to run, as pytest's -k.")
@click.option(
    "--env",
    "environment",
    type=click.Choice(["auto", "own", "shared"]),
    default="auto",
    show_default=True,
    help="Environments: own ones, this one, or this one while dependencies are the same.",
)
@click.option(
    "--undecided",
    type=click.Choice(["fail", "warn", "pass"]),
    default="fail",
    show_default=True,
    help="What an undecided job is.",
)
@click.option("--budget", type=DURATION, help="Begin no further pair after so long, such as 4min.")
@click.option(
    "--fail-fast", is_flag=True, help="Time nothing where a counter regressed, and explain nothing."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML.")
@click.option("--sarif", type=_FILE, metavar="FILE", help="Write SARIF.")
@click.option("--markdown", type=_FILE, metavar="FILE", help="Write the comment of a pull request.")
@page_option
@full_option
@store_options
def command(
    store_location: str | None, *, page: Path | None, as_json: bool, full: bool, undecided: Any, **flags: Any
) -> int:
    """Compare what is checked out with a base: every benchmark that both have.

    Both sides run from worktrees of their commits, in fresh processes that take turns, until every benchmark is decided. Exits with 0
    if nothing is worse, 1 if something is, 3 if it cannot be told, 2 if there is nothing to compare.
    """
    with uncollected():
        from pyrometer.guard.check import GuardOptions, guard_check, guard_list
        from pyrometer.store.place import local_folder

    journal = None if store_location is None else local_folder(store_location).absolute() / "unfinished"
    with progress_bar() as progress, _ending_on_sigterm():
        options = GuardOptions(
            base=flags["base"],
            head=flags["head"],
            select=flags["select"],
            environment=flags["environment"],
            budget_s=flags["budget"] or load_settings(os.environ, Path.cwd()).budget_s,
            explain=not flags["fail_fast"],
            fail_fast=flags["fail_fast"],
            journal=journal,
            progress=progress,
        )
        if flags["only_list"]:
            names, missed = guard_list(Path.cwd(), options)
            return _list(names, missed, as_json=as_json)
        report = guard_check(Path.cwd(), options)
    with finishing():
        document = _kept(report, store_location)
        write_page(document, page, store_location=store_location)
        _write(document, flags)
        print_result(document, as_json=as_json, full=full)
    code = report.exit_code(undecided)
    if undecided == "warn" and code == ExitCode.OK and report.exit_code() == ExitCode.UNDECIDED:
        click.echo("warning: some gates are undecided; see above", err=True)
    return INTERRUPTED if report.interrupted else code


def _list(names: list[str], missed: list[Missed], *, as_json: bool) -> int:
    for miss in missed:
        click.echo(f"{miss.benchmark}: {miss.reason}", err=True)
    if not names and not missed:
        click.echo("no benchmark: write a function perf_… in a file perf_….py, or name targets", err=True)
    if as_json:
        click.echo(json.dumps(names, indent=2))
    else:
        for name in names:
            click.echo(name)
    return ExitCode.OK if names and not missed else ExitCode.FAILURE


def _kept(document: GuardReport, store_location: str | None) -> GuardReport:
    """The document as a run of the store."""
    import msgspec

    from pyrometer.record import to_dict
    from pyrometer.redaction import redacted

    document = redacted(document)
    assert document.environment is not None, "a whole job names its machine"
    run = save_run(
        store_location,
        kind="guard",
        target=document.target,
        document=to_dict(document),
        environment=document.environment,
    )
    return msgspec.structs.replace(document, **provenance(run))


def _write(document: GuardReport, flags: dict[str, Any]) -> None:
    """The files that were asked for; also where one cannot be written the others are."""
    from pyrometer.files import replacing
    from pyrometer.report.gates.comment import comment
    from pyrometer.report.gates.junit import junit_of
    from pyrometer.report.gates.sarif import sarif_of

    contents: dict[str, Callable[[], bytes]] = {
        "junit": lambda: junit_of(document),
        "sarif": lambda: document_json(sarif_of(document)),
        "markdown": lambda: comment(document).encode("utf-8", "replace"),
    }
    failures = []
    for flag, make in contents.items():
        path: Path | None = flags[flag]
        if path is None:
            continue
        try:
            with replacing(path) as beside:
                beside.write_bytes(make())
        except OSError as error:
            failures.append(f"--{flag} {path}: cannot be written: {error.strerror}")
    if failures:
        print_document(document)
        raise InputError("; ".join(failures))


@contextlib.contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """A job that its CI ends keeps what it has measured and removes its worktrees, as on Ctrl-C."""

    def interrupt(*_signal: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
