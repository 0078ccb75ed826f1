"""`pyrometer trace`: open traces of one or many ranks, or capture one; the answer first, then tables."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pyrometer.cli.printing import document_json, print_document, print_view
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.saving import provenance, save_run, store_options
from pyrometer.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from pyrometer.report.documents import TraceDocument
    from pyrometer.trace.trace import Trace

TRACE_SUFFIXES = (".json", ".json.gz", ".json.zst", ".gz", ".zst")


@click.command()
@click.argument("files", nargs=-1, metavar="FILES...|TARGET [-- ARGUMENTS]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "-o",
    "--html",
    "output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the HTML report to this file.",
)
@click.option("--diff", is_flag=True, help="Compare two files: what changed from the first to the second.")
@click.option(
    "--sql", metavar="QUERY", help="Print the answer to a query over events, ops, kernels, steps, …"
)
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the trace as FILE.json[.gz] (Perfetto), .parquet, .csv, .folded or .speedscope.json.",
)
@click.option("--strict", is_flag=True, help="Refuse a damaged file instead of repairing it.")
@click.option("--attach", type=int, metavar="PID", help="Capture from a running process that allows it.")
@click.option("--steps", type=click.IntRange(1), default=5, show_default=True, help="Steps to capture.")
@click.option(
    "--with",
    "extras",
    metavar="LIST",
    default="stack,shapes,memory",
    show_default=True,
    help="What to record beside times: stack, shapes, memory, flops, modules, or none.",
)
@store_options
def command(
    store_location: str | None,
    *,
    files: tuple[str, ...],
    as_json: bool,
    output: Path | None,
    diff: bool,
    sql: str | None,
    export: Path | None,
    strict: bool,
    attach: int | None,
    steps: int,
    extras: str,
) -> int:
    """Say where the time goes: in trace files of one or many ranks, or in TARGET, captured now.

    Files may be plain, gzip or zstd, of any age and vendor, also damaged. A captured trace is kept with --export.
    """
    from pyrometer.report.documents import TraceDocument
    from pyrometer.trace.rank_report import report_rank
    from pyrometer.trace.reading.read import read_trace
    from pyrometer.trace.verdict import judge

    trace = read_trace(list(files))
    reports = [report_rank(one) for one in trace.ranks]
    document = TraceDocument(target=" ".join(files), ranks=reports, verdict=judge(reports[0]))
    document = msgspec.structs.replace(document, **provenance(None))
    if output is not None:
        from pyrometer.report.html import write_report

        write_report(document, output)
    if as_json:
        print_document(document)
    else:
        from pyrometer.report.terminal import trace_view

        print_view(trace_view(document))
    return ExitCode.OK
