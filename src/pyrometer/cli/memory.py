"""`pyrometer memory`: where the bytes go, what they would be elsewhere, and whether they stay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.cli.interrupts import INTERRUPTED, finishing
from pyrometer.cli.memory_flags import parse_memory_limits, parse_sizes, parse_what_if, undecided
from pyrometer.cli.memory_profile import SNAPSHOT_SUFFIXES, MemoryQuestion, of_script, of_snapshot, of_target
from pyrometer.cli.pages import page_option, write_page
from pyrometer.cli.parameters import BYTES, DURATION
from pyrometer.cli.printing import full_option, print_result
from pyrometer.cli.saving import store_options, stored
from pyrometer.errors import ExitCode

if TYPE_CHECKING:
    from pyrometer.report.documents import MemoryDocument, SnapshotDocument


@click.command()
@click.argument("target", metavar="TARGET | SCRIPT [-- ARGUMENTS] | SNAPSHOT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--leaks",
    type=click.IntRange(0),
    metavar="STEPS",
    help="Watch this many steps for leaks; 0 turns it off.  [default: 60]",
)
@click.option(
    "--predict",
    metavar="LIST",
    multiple=True,
    help="Predict the peak with batch=64,sequence=1024,amp=bfloat16,optimizer=SGD,checkpoint=2,device=cuda.",
)
@click.option(
    "--fit", metavar="SIZES", help="Find the largest batch for these memory sizes, such as 24GiB,80GiB."
)
@click.option(
    "--plan",
    type=BYTES,
    help="Choose modules to checkpoint so that training fits this size, and measure the cost.",
)
@click.option(
    "--limit", metavar="NAME=N", multiple=True, help="Exit with 1 above this limit: peak=2GiB,growth=0."
)
@click.option(
    "--diff",
    metavar="RUN|FILE",
    help="Compare with a stored run, a file that --json printed, or another snapshot.",
)
@click.option("--budget", type=DURATION, help="Time to spend, such as 60s; without it, as long as it takes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@full_option
@page_option
@store_options
def command(
    store_location: str | None,
    *,
    target: str,
    arguments: tuple[str, ...],
    as_json: bool,
    page: Path | None,
    full: bool,
    **flags: Any,
) -> int:
    """Show where the memory of TARGET goes: what holds the peak, what leaks, the largest batch that fits.

    A SCRIPT runs unchanged. SNAPSHOT is a file written by torch.cuda.memory._dump_snapshot; it shows why memory ran out,
    how fragmented it was, and which allocator settings would have helped.
    """
    from pyrometer.report.attaching import with_sources
    from pyrometer.report.attachments import Attachments

    question = MemoryQuestion(
        target=target,
        arguments=arguments,
        what_if=[parse_what_if(text) for text in flags["predict"]],
        sizes=None if flags["fit"] is None else parse_sizes(flags["fit"]),
        leak_steps=flags["leaks"],
        plan_bytes=flags["plan"],
        limits=parse_memory_limits(flags["limit"]),
        baseline=flags["diff"],
        budget_s=flags["budget"],
        store_location=store_location,
    )
    document, code = _answer(question, quiet=as_json)
    with finishing():
        attachments = with_sources(Attachments(), document)
        document = stored(document, store_location, kind="memory", attachments=attachments)
        written = write_page(document, page, attachments, store_location=store_location)
        print_result(
            document, as_json=as_json, stderr=code is not None, full=full, page=page if written else None
        )
    profile = document.evidence.memory
    if profile is not None and profile.interrupted:
        return INTERRUPTED
    if code:
        return code
    if document.over_limit:
        return ExitCode.FOUND
    leak = profile.leak if profile is not None else None
    if undecided(question.limits, None if leak is None else leak.verdict):
        click.echo("--limit growth: could not be decided; watch more steps by --leaks", err=True)
        return ExitCode.UNDECIDED
    return ExitCode.OK


def _answer(question: MemoryQuestion, *, quiet: bool) -> tuple[MemoryDocument | SnapshotDocument, int | None]:
    """The document, and the exit code of a script that was run."""
    if question.target.endswith(SNAPSHOT_SUFFIXES):
        return of_snapshot(question), None
    from pyrometer.workload.target import parse_target

    parsed = parse_target(question.target, question.arguments)
    if parsed.kind == "script":
        return of_script(question, parsed, quiet=quiet)
    return of_target(question, parsed), None
