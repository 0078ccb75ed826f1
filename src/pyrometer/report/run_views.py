"""What the verbs that look into the store show in the terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pyrometer.quantity import format_bytes
from pyrometer.report.facts.run_lines import commit, taken
from pyrometer.report.glyphs import Portable
from pyrometer.store.run import Pruned, RunSummary


def runs_view(runs: list[RunSummary]) -> RenderableType:
    """A line per run, the newest first."""
    if not runs:
        return Text("no runs; pyrometer bench TARGET makes one")
    table = _grid("run", "taken", "kind", "target", "result", "commit")
    for run in runs:
        table.add_row(
            *(Text(cell) for cell in (run.id, taken(run), run.kind, run.target, run.headline, commit(run)))
        )
    return Portable(table)


def provenance_view(run: RunSummary, command: list[str]) -> RenderableType:
    """Where a run comes from, in one line."""
    parts = [f"run {run.id}", taken(run), commit(run), " ".join(command)]
    return Portable(Text(" · ".join(part for part in parts if part), style="dim"))


def pruned_view(pruned: Pruned, *, dry_run: bool) -> RenderableType:
    """What was removed."""
    verb = "would remove" if dry_run else "removed"
    lines = [f"{verb} run {run.id}  {run.kind}  {run.target}  {run.headline}".rstrip() for run in pruned.runs]
    lines += [f"{verb} artifacts/{orphan}, which belongs to no run" for orphan in pruned.orphans]
    lines.append(
        f"{verb} {len(pruned.runs)} runs and {len(pruned.orphans)} leftovers, {format_bytes(pruned.freed_bytes)} of files"
    )
    return Portable(Text("\n".join(lines)))


def _grid(*columns: str) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(no_wrap=column == "run")
    table.add_row(*(Text(column, style="dim") for column in columns))
    return table
