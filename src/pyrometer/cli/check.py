"""`pyrometer check`: the main job; terminal summary and one HTML file."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pyrometer.cli.bench import exit_code_of
from pyrometer.cli.parameters import DURATION
from pyrometer.cli.printing import print_document, print_view
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.saving import provenance, save_run, store_options
from pyrometer.errors import ExitCode, InputError, UsageError
from pyrometer.settings import load_settings, with_flags

if TYPE_CHECKING:
    from pyrometer.checkup.checkup import Checkup
    from pyrometer.workload.target import Target

FALLBACK_REPORT = "pyrometer-report.html"


@click.command()
@click.argument("target")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--budget", type=DURATION, help="Time to spend on a workload, such as 20s.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the HTML report.  [default: in the store]",
)
@click.option("--try-compile", is_flag=True, help="Also try torch.compile where the program does not use it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_options
def command(
    store_location: str | None,
    *,
    target: str,
    arguments: tuple[str, ...],
    budget: float | None,
    output: Path | None,
    try_compile: bool,
    as_json: bool,
) -> int:
    """Measure and observe TARGET, and write a report.

    A script runs as it would without us: its own stdout stays clean, and our summary goes to stderr. Its arguments
    follow after --.
    """
    from pyrometer.record import to_dict
    from pyrometer.report.documents import CheckDocument
    from pyrometer.report.html import write_report
    from pyrometer.workload.target import parse_target

    parsed = parse_target(target, arguments)
    is_script = parsed.kind == "script"
    if is_script and try_compile:
        raise UsageError(
            f"--try-compile: {target} runs as it is; it goes with a workload, as in model.py:workload"
        )
    peaks = None if store_location is None else Path(store_location) / "peaks"
    checkup = _checkup(parsed, budget, peaks, compiling=try_compile, quiet=as_json or not is_script)
    fields = {name: getattr(checkup, name) for name in checkup.__struct_fields__}
    document = CheckDocument(**fields, report_path=None)
    run = save_run(
        store_location,
        kind="check",
        target=checkup.target,
        document=to_dict(document),
        environment=checkup.environment,
    )
    document = msgspec.structs.replace(document, **provenance(run))
    path = output or _report_path(store_location, document.run_id)
    unwritten: InputError | None = None
    try:
        write_report(msgspec.structs.replace(document, report_path=str(path)), path)
        document = msgspec.structs.replace(document, report_path=str(path))
    except InputError as error:
        unwritten = error  # the result is printed all the same
    if as_json:
        print_document(document)
    else:
        from pyrometer.report.terminal import render_document

        print_view(render_document("check", to_dict(document)), stderr=is_script)
    if unwritten is not None:
        raise unwritten
    return _exit_code(checkup)


def _checkup(
    target: Target, budget_s: float | None, peaks: Path | None, *, compiling: bool, quiet: bool
) -> Checkup:
    settings = with_flags(load_settings(os.environ, Path.cwd()), budget_s=budget_s)
    with contextlib.ExitStack() as stack:
        if quiet:
            from pyrometer.workload.output import stdout_to_stderr

            stack.enter_context(stdout_to_stderr())
        if target.kind == "script":
            from pyrometer.checkup.script import check_script

            argv = [target.spec.text, *target.spec.args]
            return check_script(argv, confidence=settings.confidence, peaks_folder=peaks)
        from pyrometer.bench.measure import DEFAULT_BUDGET_S
        from pyrometer.checkup.workload import check_workload
        from pyrometer.workload.loading import load_workload

        progress: Any = stack.enter_context(progress_bar())
        return check_workload(
            load_workload(target),
            target.spec.text,
            budget_s=settings.budget_s or DEFAULT_BUDGET_S,
            confidence=settings.confidence,
            progress=progress,
            peaks_folder=peaks,
            compiling=compiling,
        )


def _report_path(store_location: str | None, run_id: str | None) -> Path:
    """Among the files of the stored run, which `prune` removes with it; in the working directory if nothing was stored."""
    if store_location is None or run_id is None:
        return Path(FALLBACK_REPORT)
    return Path(store_location) / "artifacts" / run_id / "report.html"


def _exit_code(checkup: Checkup) -> int:
    """A script's own exit status, as `time` and `coverage run` do; 128 + n when signal n ended it."""
    if checkup.script is not None:
        code = checkup.script.exit_code
        return code if code >= 0 else 128 - code
    return exit_code_of(checkup.measurement) if checkup.measurement is not None else ExitCode.OK
