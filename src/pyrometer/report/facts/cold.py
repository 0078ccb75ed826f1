"""What `ColdStarts` say."""

from __future__ import annotations

from pyrometer.bench.record import ColdStarts, StageTime
from pyrometer.quantity import counted, format_interval, format_seconds, time_unit
from pyrometer.report.facts.layout import Table, percent

STAGE_NAMES = {
    "python_s": "start Python",
    "import_s": "import torch",
    "load_s": "load the target",
    "first_call_s": "first call",
    "total_s": "first result after",
    "steady_s": "a later step",
}


def headline(starts: ColdStarts) -> str:
    """How long the first result takes, with cold caches and with warm ones."""
    text = f"first result {format_seconds(starts.first.total_s)} after the start"
    later = next((stage for stage in starts.stages if stage.name == "total_s"), None)
    return text if later is None else f"{text}, {format_seconds(later.median_s)} with warm caches"


def subtitle(starts: ColdStarts) -> str:
    """How many processes, and what the first found."""
    ran = counted(1 + len(starts.later), "fresh process")
    return f"{ran}{', interrupted' if starts.interrupted else ''}; the first found the compiler's cache empty"


def stage_table(starts: ColdStarts) -> Table:
    """Every stage: the first process, and the others together."""
    stages = {stage.name: stage for stage in starts.stages}
    later = ("later ones, median", "min–max", f"{percent(starts.confidence)} interval") if stages else ()
    rows = [
        (name, format_seconds(getattr(starts.first, field)), *(_later(stages[field]) if stages else ()))
        for field, name in STAGE_NAMES.items()
    ]
    return Table(("stage", "first process", *later), rows)


def _later(stage: StageTime) -> tuple[str, str, str]:
    scale, _ = time_unit(stage.median_s)
    bounds = "–" if stage.ci_low_s is None else format_interval(stage.ci_low_s, stage.ci_high_s, scale)
    return format_seconds(stage.median_s), format_interval(stage.min_s, stage.max_s, scale), bounds
