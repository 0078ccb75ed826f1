"""`pyrometer check`: the main job; terminal summary and one HTML file."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from pyrometer.cli.explaining import explainer
from pyrometer.cli.failing import fail_on_option, failing
from pyrometer.cli.interrupts import finishing
from pyrometer.cli.observe import (
    exit_code_of_target,
    observe_as_rank,
    observe_launch,
    observe_options,
    observe_target,
    with_trials,
)
from pyrometer.cli.pages import page_option, page_place, write_page
from pyrometer.cli.parameters import DURATION
from pyrometer.cli.printing import full_option, print_result
from pyrometer.cli.saving import store_options, stored
from pyrometer.errors import UsageError
from pyrometer.garbage import uncollected

FALLBACK_REPORT = "pyrometer-report.html"


@click.command()
@click.argument("target")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--budget", type=DURATION, help="Time to spend on a workload, such as 20s.")
@page_option
@click.option("--try-compile", is_flag=True, help="Also try torch.compile if the program does not use it.")
@click.option(
    "--try",
    "try_rewrites",
    is_flag=True,
    help="Also apply the suggested rewrites in memory and measure their gain.",
)
@click.option(
    "--nproc",
    type=click.IntRange(min=1),
    help="Run the script on so many ranks, by torchrun, and observe all.",
)
@click.option(
    "--hang-after", type=DURATION, help="Ask ranks where they are once one has not moved for so long (60s)."
)
@click.option(
    "--gather",
    type=click.Path(path_type=Path, file_okay=False),
    help="Under a launcher of your own on several machines: a folder that all of them see.",
)
@fail_on_option
@full_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_options
def command(
    store_location: str | None,
    *,
    target: str,
    arguments: tuple[str, ...],
    budget: float | None,
    page: Path | None,
    try_compile: bool,
    try_rewrites: bool,
    nproc: int | None,
    hang_after: float | None,
    gather: Path | None,
    fail_on: tuple[str, ...],
    full: bool,
    as_json: bool,
) -> int:
    """Measure, observe and explain TARGET, and write a report.

    A script runs as it would without Pyrometer: its output is its own, and the summary goes to stderr. So is its
    exit code; one in which no step was seen ends with 3. Put its arguments after --.
    """
    with uncollected():
        from pyrometer.report.attaching import draw, with_sources
        from pyrometer.report.attachments import Attachments
        from pyrometer.report.documents import CheckDocument
        from pyrometer.workload.target import parse_target

    parsed = parse_target(target, arguments)
    code_for = failing(fail_on)
    is_script = parsed.kind == "script"
    if is_script and (try_compile or try_rewrites):
        flag = "--try-compile" if try_compile else "--try"
        raise UsageError(f"{flag}: {target} runs as it is; it goes with a workload, as in model.py:workload")
    if page is None and store_location is None:
        page = page_place(FALLBACK_REPORT)
    explained = explainer("check", parsed)
    options = observe_options(budget, store_location, compiling=try_compile)
    if not is_script and (nproc or gather):
        flag = "--nproc" if nproc else "--gather"
        raise UsageError(
            f"{flag}: {target} is a workload, of one process; name the script that torchrun would start"
        )
    if nproc is not None:
        seen = observe_launch(parsed, options, nproc, hang_after, quiet=as_json)
    elif (as_rank := observe_as_rank(parsed, options, gather, hang_after, quiet=as_json)) is None:
        seen = observe_target(parsed, options, quiet=as_json or not is_script)
    elif isinstance(as_rank, int):
        return as_rank
    else:
        seen = as_rank
    with finishing():
        drawn = Attachments() if seen.trace is None else draw(seen.trace.ranks, seen.peaks)
        diagnosis = explained(seen.evidence)
    if try_rewrites and not seen.interrupted:
        diagnosis = with_trials(parsed, diagnosis, options.budget_s, seen.evidence.step_s)
    with finishing():
        document = CheckDocument(evidence=seen.evidence, diagnosis=diagnosis)
        attachments = with_sources(drawn, document)
        document = stored(document, store_location, kind="check", attachments=attachments)
        path = page or _report_path(store_location, document.run_id)
        if write_page(document, path, attachments, store_location=store_location):
            document = msgspec.structs.replace(document, report_path=str(path))
        print_result(document, as_json=as_json, stderr=is_script, full=full)
    return exit_code_of_target(seen) or code_for(document.diagnosis)


def _report_path(store_location: str | None, run_id: str | None) -> Path:
    """Among the files of the stored run, which `prune` removes with it; in the working directory if they lie in no folder."""
    from pyrometer.store.place import is_server

    if store_location is None or run_id is None or is_server(store_location):
        return Path(FALLBACK_REPORT)
    return Path(store_location) / "artifacts" / run_id / "report.html"
