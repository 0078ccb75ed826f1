"""`pyrometer trace`: open traces of one or many ranks, or capture one; the answer first, then tables."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import msgspec

from pyrometer.cli.explaining import Explain, explainer
from pyrometer.cli.interrupts import finishing
from pyrometer.cli.pages import page_option, write_page
from pyrometer.cli.printing import full_option, print_document, print_result, print_view
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.saving import provenance, store_options, stored
from pyrometer.cli.trace_capture import Captured, capture_process, capture_target, parse_extras
from pyrometer.errors import ExitCode, InputError, UsageError
from pyrometer.garbage import one_heap, uncollected
from pyrometer.redaction import redacted
from pyrometer.settings import load_settings

if TYPE_CHECKING:
    from pyrometer.report.attachments import Attachments
    from pyrometer.report.documents import TraceDocument
    from pyrometer.trace.reporting.job_report import JobReport
    from pyrometer.trace.trace import Trace
    from pyrometer.workload.target import Target

Asked: TypeAlias = "tuple[str | None, str | None]"
"""A query and a change, of which one or none is given."""

PROGRAM_SUFFIXES = (".py", ".pt2")


def _captures(flags: Mapping[str, Any]) -> bool:
    """Whether a capture is asked for; what files hold is not of this machine, and is not stored."""
    inputs = flags["inputs"]
    return flags["attach"] is not None or bool(inputs and _is_program(inputs[0]))


@click.command()
@click.argument("inputs", nargs=-1, type=click.UNPROCESSED, metavar="FILE... | TARGET [-- ARGUMENTS]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@page_option
@click.option(
    "--diff/--diff-anyway",
    default=None,
    help="Show what changed from the first file to the second; --diff-anyway also for different programs.",
)
@click.option("--sql", metavar="QUERY", help="Answer a query over events, ops, kernels, steps, …")
@click.option(
    "--what-if",
    "change",
    metavar="CHANGE",
    help="Predict the gain from making a part faster or free: kernel:gemm=2, sync, data, op:aten::sort, …",
)
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the trace as .json[.gz] (Perfetto), .parquet, .csv, .folded or .speedscope.json.",
)
@click.option(
    "--replay", metavar="OP", help="Write an operator, such as aten::mm, as a benchmark to -o FILE.py."
)
@click.option("--attach", type=int, metavar="PID", help="Capture from a running process that listens.")
@click.option(
    "--cluster", metavar="ADDRESS", help="Read the files on ray://HOST:10001 or another cluster of Ray."
)
@click.option("--steps", type=click.IntRange(1), default=5, show_default=True, help="Steps to capture.")
@full_option
@partial(store_options, stores=_captures)
def command(
    store_location: str | None,
    *,
    inputs: tuple[str, ...],
    as_json: bool,
    page: Path | None,
    diff: bool | None,
    sql: str | None,
    change: str | None,
    export: Path | None,
    replay: str | None,
    attach: int | None,
    cluster: str | None,
    steps: int,
    full: bool,
) -> int:
    """Show where the time goes, in trace files of one or many ranks or in a new capture of TARGET.

    Files may be plain, gzip or zstd, from any version and vendor, and even damaged. A capture is stored; --export also
    writes its trace file.
    """
    if diff is not None and (attach is not None or (inputs and _is_program(inputs[0]))):
        raise UsageError("--diff compares two trace files; capture both first, with --export")
    if attach is not None and inputs:
        raise UsageError(f"--attach captures from process {attach}; leave out {inputs[0]}, or --attach")
    _refuse_conflicts(diff=diff, asked=(sql, change), page=page, export=export)
    if replay is not None and (diff or as_json or export is not None or (sql, change) != (None, None)):
        raise UsageError("--replay writes a file, and goes with -o FILE.py only; leave out the other flags")
    if cluster is not None and (
        attach is not None
        or _is_asked((sql, change))
        or (diff, export, replay) != (None, None, None)
        or _program(inputs)
    ):
        raise UsageError(
            "--cluster reads the files of a job for a report; leave out all but FILE..., --json and -o"
        )
    explained = explainer("trace", _program(inputs))
    settings = load_settings(os.environ, Path.cwd())
    if replay is not None:
        return _replay(inputs, replay, page, strict=settings.strict)
    extras = parse_extras(settings.capture)
    if attach is not None:
        captured = capture_process(attach, steps=steps, options=extras, path=export)
    elif not inputs:
        raise UsageError("no trace and no program was named; pass trace files, a TARGET, or --attach PID")
    elif _is_program(inputs[0]):
        captured = capture_target(
            inputs[0], inputs[1:], steps=steps, options=extras, path=export, as_json=as_json
        )
    else:
        one_heap()
        with uncollected(stays=True):
            return _of_files(
                inputs,
                explained,
                as_json=as_json,
                page=page,
                diff=diff,
                asked=(sql, change),
                export=export,
                strict=settings.strict,
                full=full,
                cluster=cluster,
            )
    return _of_capture(
        captured, explained, store_location, as_json=as_json, page=page, asked=(sql, change), full=full
    )


def _refuse_conflicts(*, diff: bool | None, asked: Asked, page: Path | None, export: Path | None) -> None:
    """Refuse what would be left undone in silence."""
    if diff is not None and (_is_asked(asked) or export is not None):
        raise UsageError("--diff goes with --json and -o only; leave out --sql, --what-if and --export")
    if None not in asked:
        raise UsageError("--sql and --what-if are two questions; ask one at a time")
    if _is_asked(asked) and page is not None:
        raise UsageError("-o writes the report on everything; leave out --sql and --what-if, or -o")


def _is_asked(asked: Asked) -> bool:
    return asked != (None, None)


def _is_program(text: str) -> bool:
    """Whether an input is a TARGET: a Python file or exported program, or `module:factory` that is no file."""
    location = text.partition(".py:")[0] + ".py" if ".py:" in text else text
    return location.endswith(PROGRAM_SUFFIXES) or (
        ":" in text and not Path(text).exists() and "://" not in text
    )


def _program(inputs: tuple[str, ...]) -> Target | None:
    """The program that is captured, whose source is read; `None` for files and other processes."""
    if not inputs or not _is_program(inputs[0]):
        return None
    from pyrometer.workload.target import parse_target

    return parse_target(inputs[0], inputs[1:])


def _of_files(
    inputs: tuple[str, ...],
    explained: Explain,
    *,
    as_json: bool,
    page: Path | None,
    diff: bool | None,
    asked: Asked,
    export: Path | None,
    strict: bool,
    full: bool,
    cluster: str | None,
) -> int:
    from pyrometer.trace.graphs.opening import read_joined
    from pyrometer.trace.reading.paths import find_files

    if diff is not None:
        if len(inputs) != 2:
            raise UsageError(f"--diff: got {len(inputs)} files; it compares two: pyrometer trace --diff A B")
        document, attachments = _compared(inputs, explained, strict=strict, anyway=not diff)
        return _show(document, attachments, as_json=as_json, page=page, full=full)
    if _is_asked(asked) or export is not None:
        trace = read_joined(list(inputs), strict=strict)
        if export is not None:
            _export(trace, export)
        if _is_asked(asked):
            return _answer(trace, asked, as_json=as_json)
    from pyrometer.evidence.of_trace import evidence_of_trace
    from pyrometer.report.attachments import Attachments
    from pyrometer.report.documents import TraceDocument
    from pyrometer.trace.progress import heard_by
    from pyrometer.trace.reporting.job_report import MOST_ALONE, report_files

    files = find_files(list(inputs))
    drawn: Sequence[str | Path] = files
    with progress_bar() as progress, heard_by(progress):
        report = (
            report_files(files, strict=strict) if cluster is None else _on_cluster(cluster, files, strict)
        )
    if len(report.ranks) < len(files) > MOST_ALONE:
        drawn = [rank.path for rank in report.ranks]
    evidence = evidence_of_trace(" ".join(inputs), report)
    document = TraceDocument.of(evidence, explained(evidence))
    return _show(
        msgspec.structs.replace(document, **provenance(None)),
        Attachments() if page is None else _drawn(drawn, strict=strict),
        as_json=as_json,
        page=page,
        full=full,
    )


def _on_cluster(address: str, files: Sequence[Path], strict: bool) -> JobReport:
    from pyrometer.cluster import connected
    from pyrometer.trace.jobs.on_cluster import RayExecutor
    from pyrometer.trace.reporting.job_report import report_files
    from pyrometer.workload.output import stdout_to_stderr

    with stdout_to_stderr(), connected(address) as ray:  # Ray tells of lost workers on stdout
        return report_files([file.absolute() for file in files], strict=strict, executor=RayExecutor(ray))


def _drawn(files: Sequence[str | Path], *, strict: bool) -> Attachments:
    """The first few ranks, as a page draws them; they are read again, since reports do not hold their events."""
    from pyrometer.report.attaching import draw
    from pyrometer.report.attachments import MOST_RANKS
    from pyrometer.trace.graphs.opening import read_joined

    return draw(read_joined(list(files[:MOST_RANKS]), strict=strict).ranks)


def _of_capture(
    captured: Captured,
    explained: Explain,
    store_location: str | None,
    *,
    as_json: bool,
    page: Path | None,
    asked: Asked,
    full: bool,
) -> int:
    """Report on a capture; a script's own exit status is ours."""
    if captured.trace is None and captured.exit_code:
        click.echo(f"note: {captured.missing}", err=True)
        return captured.exit_code
    if captured.trace is None and captured.idle is not None:
        from pyrometer.cli.observe import without_steps

        click.echo(f"note: {captured.missing}", err=True)
        return without_steps(captured.idle)
    if captured.trace is None:
        raise InputError(captured.missing)
    if _is_asked(asked):
        return _answer(captured.trace, asked, as_json=as_json) or captured.exit_code
    from pyrometer.evidence.of_trace import evidence_of_trace
    from pyrometer.hardware.environment import read_environment
    from pyrometer.report.attaching import draw, with_sources
    from pyrometer.report.documents import TraceDocument
    from pyrometer.trace.reporting.job_report import report_trace

    with finishing():
        evidence = evidence_of_trace(
            captured.target,
            report_trace(captured.trace),
            environment=read_environment(),
            capture=captured.trace.capture,
            program=captured.program,
        )
        document = TraceDocument.of(evidence, explained(evidence))
        attachments = with_sources(draw(captured.trace.ranks), document)
        document = stored(document, store_location, kind="trace", attachments=attachments)
        shown = _show(
            document,
            attachments,
            as_json=as_json,
            page=page,
            full=full,
            store_location=store_location,
            stderr=captured.is_script,
        )
    return shown or captured.exit_code


def _compared(
    inputs: tuple[str, ...], explained: Explain, *, strict: bool, anyway: bool
) -> tuple[TraceDocument, Attachments]:
    from pyrometer.evidence.evidence import Evidence
    from pyrometer.report.attaching import draw
    from pyrometer.report.documents import TraceDocument
    from pyrometer.trace.difference.compare import diff_traces
    from pyrometer.trace.reading.read import read_trace
    from pyrometer.trace.reporting.rank_report import report_rank
    from pyrometer.trace.reporting.verdict import judge

    a, b = (read_trace(path, strict=strict).ranks[0] for path in inputs)
    diff = diff_traces(a, b, anyway=anyway)
    before, after = report_rank(a), report_rank(b)
    evidence = Evidence(target=" against ".join(inputs), trace=after, trace_verdict=judge(after))
    diagnosis = explained(evidence)
    document = TraceDocument(
        evidence=evidence, diagnosis=diagnosis, findings=diagnosis.findings, before=before, diff=diff
    )
    return msgspec.structs.replace(document, **provenance(None)), draw([a, b])


def _show(
    document: TraceDocument,
    attachments: Attachments,
    *,
    as_json: bool,
    page: Path | None,
    full: bool,
    store_location: str | None = None,
    stderr: bool = False,
) -> int:
    written = write_page(document, page, attachments, store_location=store_location)
    print_result(document, as_json=as_json, stderr=stderr, full=full, page=page if written else None)
    return ExitCode.OK


def _answer(trace: Trace, asked: Asked, *, as_json: bool) -> int:
    """Answer a single question instead of reporting on everything."""
    sql, change = asked
    if sql is not None:
        from pyrometer.report.terminal import frame_view
        from pyrometer.trace.sql import trace_sql

        frame = trace_sql(trace, sql)
        click.echo(redacted(frame.write_json())) if as_json else print_view(frame_view(frame))
    if change is not None:
        from pyrometer.report.terminal import what_if_view
        from pyrometer.trace.analysis.what_if import what_if
        from pyrometer.trace.steady.steady import steady

        if len(trace.ranks) > 1:
            raise UsageError(f"--what-if: got {len(trace.ranks)} ranks; it replays one: pass one file")
        found = what_if(steady(trace.rank()).trace, change=change)
        print_document(found) if as_json else print_view(what_if_view(found))
    return ExitCode.OK


def _replay(inputs: tuple[str, ...], op: str, path: Path | None, *, strict: bool) -> int:
    """Write a benchmark of an operator to a file, or to stdout where none is named."""
    from pyrometer.files import replacing
    from pyrometer.trace.graphs.opening import read_joined
    from pyrometer.trace.replaying.script import replay_script

    if not inputs or _is_program(inputs[0]):
        raise UsageError("--replay reads a trace file; capture one first, with --export")
    if path is not None and path.suffix != ".py":
        raise UsageError(f"-o {path}: --replay writes a program; name a file such as op.py")
    text = replay_script(read_joined(list(inputs), strict=strict).rank(), op)
    if path is None:
        click.echo(text, nl=False)
        return ExitCode.OK
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")
    click.echo(f"wrote {path}; run it, or: pyrometer bench {path}:workload", err=True)
    return ExitCode.OK


def _export(trace: Trace, path: Path) -> None:
    from pyrometer.trace.export.formats import export_trace

    with contextlib.suppress(BrokenPipeError):
        export_trace(trace, path)
    click.echo(f"wrote {path}", err=True)
