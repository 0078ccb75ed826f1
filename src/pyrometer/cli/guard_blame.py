"""`pyrometer guard blame`: the hunks of a change that make a benchmark worse."""

from __future__ import annotations

from pathlib import Path

import click

from pyrometer.cli.parameters import DURATION
from pyrometer.cli.printing import print_document
from pyrometer.cli.progress import progress_bar
from pyrometer.errors import ExitCode
from pyrometer.garbage import uncollected


@click.command()
@click.option("--base", default="main", show_default=True, help="Branch, tag or commit to compare with.")
@click.option("--head", help="Commit to judge.  [default: what is checked out, with its changes]")
@click.option("-k", "select", metavar="EXPRESSION", help="Benchmarks to run, as pytest's -k.")
@click.option("--metric", help="Metric that regressed.  [default: the first that did, counters before times]")
@click.option("--budget", type=DURATION, help="For each part of the change, such as 2min.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(*, as_json: bool, metric: str | None, budget: float | None, **flags: str | None) -> int:
    """Name the hunks of a change that make a benchmark worse.

    The pair is run again with parts of the change only, until no smaller part shows the regression. Exits with 1, as a regression does.
    """
    with uncollected():
        from pyrometer.guard.blaming import blame
        from pyrometer.guard.check import GuardOptions
        from pyrometer.report.facts.guard import blame_lines

    with progress_bar() as progress:
        options = GuardOptions(
            base=str(flags["base"]),
            head=flags["head"],
            select=flags["select"],
            budget_s=budget,
            progress=progress,
        )
        found = blame(Path.cwd(), options, metric)
    if as_json:
        print_document(found)
    else:
        click.echo("\n".join(blame_lines(found)))
    return ExitCode.FOUND
