"""`pyrometer audit`: the checklist, with a score."""

from __future__ import annotations

from pathlib import Path

import click

from pyrometer.cli.explaining import explainer
from pyrometer.cli.interrupts import finishing
from pyrometer.cli.observe import exit_code_of_target, observe_options, observe_target
from pyrometer.cli.pages import page_option, write_page
from pyrometer.cli.parameters import DURATION
from pyrometer.cli.printing import full_option, print_result
from pyrometer.cli.saving import store_options, stored
from pyrometer.errors import ExitCode


@click.command()
@click.argument("target")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--budget", type=DURATION, help="Time to spend on a workload, such as 20s.")
@click.option("--fail-under", type=click.FloatRange(0, 100), help="Exit with 1 if the score is below this.")
@page_option
@full_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_options
def command(
    store_location: str | None,
    *,
    target: str,
    arguments: tuple[str, ...],
    budget: float | None,
    fail_under: float | None,
    page: Path | None,
    full: bool,
    as_json: bool,
) -> int:
    """Go through the checklist for TARGET: model, memory, compute, data, compilation, measuring, ranks, production.

    Each item passes or fails with its evidence, does not apply, or is unknown. The score is the share of applicable
    items that passed.
    """
    from pyrometer.report.documents import AuditDocument
    from pyrometer.workload.target import parse_target

    parsed = parse_target(target, arguments)
    explained = explainer("audit", parsed, with_audit=True)
    options = observe_options(budget, store_location)
    seen = observe_target(parsed, options, quiet=as_json or parsed.kind != "script")
    with finishing():
        document = AuditDocument(evidence=seen.evidence, diagnosis=explained(seen.evidence))
        document = stored(document, store_location, kind="audit")
        written = write_page(document, page, store_location=store_location)
        print_result(
            document,
            as_json=as_json,
            stderr=parsed.kind == "script",
            full=full,
            page=page if written else None,
        )
    score = document.audit.score
    below = fail_under is not None and score is not None and score < fail_under
    return exit_code_of_target(seen) or (ExitCode.FOUND if below else ExitCode.OK)
