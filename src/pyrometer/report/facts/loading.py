"""How a training step gets its data, in words."""

from __future__ import annotations

from pyrometer.loading.report import LoaderReport
from pyrometer.quantity import counted, format_bytes, format_seconds
from pyrometer.report.facts.layout import Fact, Section, Table, percent


def headline(report: LoaderReport) -> str:
    """The answer."""
    return report.sentence


def sections(report: LoaderReport) -> list[Section]:
    """The pipeline with its figures, and what limits them."""
    made = [_pipeline(report), _notes(report)]
    return [section for section in made if section is not None]


def _pipeline(report: LoaderReport) -> Section:
    rows = [
        (
            stage.name,
            stage.where,
            format_seconds(stage.per_step_s),
            percent(stage.share),
            "–" if stage.cpu_share is None else percent(stage.cpu_share),
        )
        for stage in report.stages
    ]
    table = Table(("stage", "runs in", "per step", "of the step", "on a CPU"), rows, frozenset({1}))
    how = "Stages of the training process follow each other and add up to the step; those of workers run beside it. A low share on a CPU means waiting for storage."
    return Section("loading", "How the data arrives", _facts(report), table if rows else None, how)


def _facts(report: LoaderReport) -> list[Fact]:
    facts = [
        Fact("waiting for data", percent(report.wait_fraction), f"{format_seconds(report.wait_s)} per step"),
        Fact(
            "with free data",
            f"{report.free_data_ratio:.2f}× the step",
            "the most that any loader could bring",
        ),
        Fact("first batch", format_seconds(report.first_batch_s)),
    ]
    if report.predicted_step_s is not None:
        facts.append(
            Fact(
                "predicted step",
                format_seconds(report.predicted_step_s),
                f"measured {format_seconds(report.measured_step_s)}",
            )
        )
    if report.occupancy is not None:
        facts.append(
            Fact("queue", f"{percent(report.occupancy)} full", counted(report.queue_batches, "batch"))
        )
    if report.worker_busy is not None:
        facts.append(Fact("workers busy", percent(report.worker_busy)))
    if report.worker_memory_bytes is not None:
        facts.append(Fact("memory of the workers", format_bytes(report.worker_memory_bytes)))
    return facts


def _notes(report: LoaderReport) -> Section | None:
    notes = [Fact("note", note) for note in report.notes]
    return Section("unsure", "What limits these figures", notes) if notes else None
