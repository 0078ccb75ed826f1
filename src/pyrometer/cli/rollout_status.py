"""`pyrometer rollout status`: where a rollout stands."""

from __future__ import annotations

from pathlib import Path

import click

from pyrometer.cli.pages import page_option
from pyrometer.cli.printing import full_option
from pyrometer.cli.rolling import print_rollout
from pyrometer.cli.saving import store_place


@click.command(name="status")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@full_option
@page_option
@store_place
def command(*, name: str | None, as_json: bool, full: bool, page: Path | None, store_location: str) -> int:
    """Show share and stage of a rollout, its tests and its decisions; without NAME the names of all.

    Exits with 0 while nothing speaks against it, 1 where it was taken back, and 3 where nothing is decided.
    """
    from pyrometer.errors import ExitCode
    from pyrometer.rollout.ledger import open_ledger

    ledger = open_ledger(store_location, create=False)
    if name is None:
        for known in ledger.names():
            state = ledger.read(known)
            if state is not None:
                click.echo(
                    f"{known}  {state.plan.old} → {state.plan.new}  {state.status} at {100 * state.share:.3g} %"
                )
        return ExitCode.OK
    document = print_rollout(ledger, name, as_json=as_json, full=full, page=page)
    if document.state in {"rolled back", "aborted"}:
        return ExitCode.FOUND
    return ExitCode.OK if document.state == "promoted" or document.outcome == "safe" else ExitCode.UNDECIDED
