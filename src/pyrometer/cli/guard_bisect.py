"""`pyrometer guard bisect`: the first commit that made something worse."""

from __future__ import annotations

from pathlib import Path

import click

from pyrometer.cli.printing import print_document
from pyrometer.garbage import uncollected


@click.command()
@click.option("--good", required=True, help="Commit before it became worse.")
@click.option("--bad", help="Commit after it.  [default: what is checked out]")
@click.option("-k", "select", metavar="EXPRESSION", help="Benchmarks to run, as pytest's -k.")
@click.option("--budget", metavar="DURATION", help="For each commit, such as 2min.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(*, good: str, bad: str | None, select: str | None, budget: str | None, as_json: bool) -> int:
    """Find the first commit that made something worse, with git bisect run.

    Each commit is compared with the good one, as guard check does, in a worktree of its own.
    """
    with uncollected():
        from pyrometer.guard.bisecting import bisect

    flags = [*(["-k", select] if select else []), *(["--budget", budget] if budget else [])]
    found = bisect(Path.cwd(), good, bad, flags)
    if as_json:
        print_document(found)
    else:
        click.echo(f"{found.sha[:12]} {found.subject}")
    return 0
