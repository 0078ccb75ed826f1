"""What the verbs that look into the store show in the terminal."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyrometer.bench.measurement import Measurement
from pyrometer.quantity import format_bytes, format_rate, format_seconds, significant
from pyrometer.report.glyphs import Portable
from pyrometer.store.comparison import Comparison
from pyrometer.store.run import Pruned, RunSummary, created_at

_FIGURES: tuple[tuple[str, Callable[[Measurement], str]], ...] = (
    ("median", lambda m: format_seconds(m.median_s)),
    ("interval", lambda m: f"{format_seconds(m.ci_low_s)}–{format_seconds(m.ci_high_s)}"),
    ("P95", lambda m: format_seconds(m.p95_s)),
    ("P99", lambda m: format_seconds(m.p99_s)),
    ("first call", lambda m: format_seconds(m.first_call_s)),
    ("throughput", lambda m: format_rate(m.throughput, f"{m.unit}/s")),
    ("peak memory", lambda m: format_bytes(m.peak_bytes)),
    ("samples", lambda m: str(m.num_samples)),
)


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


def comparison_view(comparison: Comparison) -> RenderableType:
    """Two measurements beside each other, with what the ratio does not mean."""
    a, b = comparison.a, comparison.b
    table = _grid("", "A", "B")
    rows = [
        ("run", a.run.id, b.run.id),
        ("target", a.run.target, b.run.target),
        ("taken", taken(a.run), taken(b.run)),
    ]
    rows += [("commit", commit(a.run) or "–", commit(b.run) or "–")]
    rows += [(label, figure(a.measurement), figure(b.measurement)) for label, figure in _FIGURES]
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    ratio = Text(f"ratio of medians, B over A: {significant(comparison.ratio_of_medians)}", style="bold")
    proof = Text(f"to prove a difference: {comparison.prove_with}")
    return Portable(Group(table, Text(""), ratio, Text(comparison.note), proof))


def pruned_view(pruned: Pruned, *, dry_run: bool) -> RenderableType:
    """What was removed."""
    verb = "would remove" if dry_run else "removed"
    lines = [f"{verb} run {run.id}  {run.kind}  {run.target}  {run.headline}".rstrip() for run in pruned.runs]
    lines += [f"{verb} artifacts/{orphan}, which belongs to no run" for orphan in pruned.orphans]
    lines.append(
        f"{verb} {len(pruned.runs)} runs and {len(pruned.orphans)} leftovers, {format_bytes(pruned.freed_bytes)} of files"
    )
    return Portable(Text("\n".join(lines)))


def taken(run: RunSummary) -> str:
    """When a run was made, in the reader's time zone."""
    return f"{created_at(run).astimezone():%Y-%m-%d %H:%M}"


def commit(run: RunSummary) -> str:
    """The commit of a run as people abbreviate it; `+` stands for changes on top of it."""
    return f"{(run.commit_sha or '')[:9]}{'+' if run.dirty else ''}"


def _grid(*columns: str) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(no_wrap=column == "run")
    table.add_row(*(Text(column, style="dim") for column in columns))
    return table
