"""`pyrometer env`: the machine, versions and settings that results are taken on."""

from __future__ import annotations

import click

from pyrometer.cli.printing import print_document, print_view


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(*, as_json: bool) -> None:
    """Show the machine, versions and settings that results are taken on."""
    from pyrometer.hardware.environment import read_environment
    from pyrometer.report.terminal import environment_view

    environment = read_environment()
    if as_json:
        print_document(environment)
    else:
        print_view(environment_view(environment))
