"""`pyrometer env`: the machine, versions and settings that results are taken on."""

from __future__ import annotations

import click

from pyrometer.cli.printing import print_document, print_view


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(*, as_json: bool) -> None:
    """Print the machine, versions and settings that results taken now would be stored with."""
    from pyrometer.hardware.environment import read_environment

    environment = read_environment()
    if as_json:
        from pyrometer.report.documents import EnvironmentDocument

        print_document(EnvironmentDocument(environment=environment))
        return
    from rich.table import Table
    from rich.text import Text

    from pyrometer.report.facts.surroundings import environment_facts

    table = Table.grid(padding=(0, 2, 0, 0))
    for fact in environment_facts(environment):
        table.add_row(Text(fact.label, style="bold"), Text(fact.value), Text(fact.note, style="dim"))
    print_view(table)
