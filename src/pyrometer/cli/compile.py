"""`pyrometer compile`: what torch.compile did with a program: graphs, breaks, recompilations, fusions, costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.cli.baseline import read_baseline
from pyrometer.cli.compile_inspection import Inspected, inspect_target, is_log, parse_extras
from pyrometer.cli.explaining import explainer
from pyrometer.cli.interrupts import finishing
from pyrometer.cli.limits import parse_limits
from pyrometer.cli.pages import page_option, require_folder, write_page
from pyrometer.cli.parameters import DURATION
from pyrometer.cli.printing import full_option, print_result
from pyrometer.cli.saving import store_options, stored
from pyrometer.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pyrometer.compiler.report import CompileReport
    from pyrometer.evidence.evidence import Evidence
    from pyrometer.report.attachments import Attachments
    from pyrometer.report.documents import CompileDocument

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@click.command()
@click.argument("target", metavar="TARGET | SCRIPT [-- ARGUMENTS] | LOG")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--mode", type=click.Choice(MODES), help="Mode for programs that do not call torch.compile themselves."
)
@click.option(
    "--with",
    "extras",
    metavar="LIST",
    default="",
    help="Also run: deep (recompile, record fusions and passes), rewrites (try the advice in memory), modes (compare eager with every mode).",
)
@click.option(
    "--shapes",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON lines of input shapes: recommend static shapes, buckets or dynamic shapes, with measurements.",
)
@click.option(
    "--limit",
    metavar="NAME=N",
    multiple=True,
    help="Exit with 1 above this limit: breaks=0,recompiles=2,compile=60s.",
)
@click.option(
    "--diff", metavar="RUN|FILE", help="Compare with a stored run, or with a file that --json printed."
)
@click.option(
    "--export",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write graphs (SVG, DOT, text), code and a log for tlparse to this folder.",
)
@click.option("--no-source", is_flag=True, help="Leave source code and folder names out of all output.")
@click.option("--budget", type=DURATION, help="Time to spend on measuring, such as 20s.")
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
    """Show what torch.compile does with TARGET: graphs, breaks, recompilations, guards, fusions, cost.

    A TARGET that does not call torch.compile is compiled. A SCRIPT runs unchanged; only what it compiles is reported.
    LOG is a file or folder that TORCH_TRACE wrote.
    """
    from pyrometer.compiler.budget import check_budget
    from pyrometer.compiler.difference import diff_compile
    from pyrometer.report.documents import CompileDocument
    from pyrometer.workload.target import parse_target

    if flags["no_source"] and flags["export"] is not None:
        raise UsageError("--export writes source text; leave it out, or --no-source")
    if flags["export"] is not None:
        require_folder(flags["export"])
    budget = parse_limits(flags.pop("limit"))
    flags["extras"] = parse_extras(flags["extras"])
    baseline = _baseline(flags["diff"], store_location)
    parsed = None if is_log(target) else parse_target(target, arguments)
    explained = explainer("compile", None if flags["no_source"] else parsed)
    report = inspect_target(target, parsed, flags, quiet=as_json)
    with finishing():
        evidence = _evidence(report, no_source=flags["no_source"])
        document = CompileDocument(
            evidence=evidence,
            diagnosis=explained(evidence),
            over_budget=[] if budget is None else check_budget(report.report, budget),
            divergence=list(report.divergence),
            shapes=report.shapes,
            diff=None if baseline is None else diff_compile(baseline, evidence.compiled or report.report),
        )
        attachments = _attachments(document, baseline, no_source=flags["no_source"])
        document = stored(document, store_location, kind="compile", attachments=attachments)
        written = write_page(document, page, attachments, store_location=store_location)
        print_result(
            document, as_json=as_json, stderr=report.is_script, full=full, page=page if written else None
        )
    if flags["export"] is not None:  # last: a folder that cannot be written costs no result
        _export(report, flags["export"])
    if report.exit_code:
        return report.exit_code
    return ExitCode.FOUND if document.over_budget else ExitCode.OK


def _attachments(
    document: CompileDocument, baseline: CompileReport | None, *, no_source: bool
) -> Attachments:
    from pyrometer.report.attaching import with_sources
    from pyrometer.report.attachments import Attachments

    before = [] if baseline is None else baseline.graph_records
    return Attachments() if no_source else with_sources(Attachments(graphs_before=before), document)


def _baseline(reference: str | None, store_location: str | None) -> CompileReport | None:
    from pyrometer.compiler.report import CompileReport

    if reference is None:
        return None
    return read_baseline(
        CompileReport, reference, kind="compile", part="compiled", store_location=store_location
    )


def _evidence(found: Inspected, *, no_source: bool) -> Evidence:
    from pyrometer.compiler.collecting.redaction import redacted
    from pyrometer.evidence.evidence import Evidence
    from pyrometer.hardware.environment import read_environment

    return Evidence(
        target=found.target,
        environment=read_environment() if found.was_run else None,
        compiled=redacted(found.report) if no_source else found.report,
        program=found.program,
    )


def _export(found: Inspected, folder: Path) -> None:
    from pyrometer.compiler.exporting import export_compile

    written = export_compile(found.report.graph_records, found.log, folder)
    click.echo(f"wrote {len(written)} files; for tlparse: {written[-1]}", err=True)
