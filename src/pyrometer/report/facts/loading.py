"""How a training step gets its data, in words."""

from __future__ import annotations

from pyrometer.loading.report import LoaderReport, StageTime, Where
from pyrometer.quantity import counted, format_bytes, format_percent, format_seconds, significant
from pyrometer.report.facts.layout import Fact, Section, Table, percent

RUNS_IN: dict[Where, str] = {
    "main": "training process",
    "worker": "each worker",
    "pin thread": "pinning thread",
    "device": "device",
}
"""What a stage keeps busy."""

OF_LOADING = frozenset({"fetch", "decode", "collate", "wait", "receive", "pin"})
"""Stages that getting a batch consists of."""

OTHER = "other loading"
WORTH_TELLING = 0.005

WHICH_STEPS = (
    "These steps were run to watch the loader, without the profiler. Shares of data on other pages are of the steps that were "
    "measured or traced: they differ as far as these runs did."
)


def apart(report: LoaderReport) -> str:
    """The share of data beside those of a trace or of measured phases, which are of other steps."""
    return (
        f"Without the profiler, getting batches takes {format_percent(report.data_share)} of a step ({watched(report)}): see "
        "the page on data loading."
    )


def headline(report: LoaderReport) -> str:
    """The answer."""
    return report.sentence


def sections(report: LoaderReport) -> list[Section]:
    """The pipeline with its figures, and what limits them."""
    made = [_pipeline(report), _notes(report)]
    return [section for section in made if section is not None]


def watched(report: LoaderReport) -> str:
    """Which steps the figures are of."""
    return f"mean of {counted(report.num_steps, 'step')}" if report.num_steps else "on average"


def stages(report: LoaderReport) -> list[StageTime]:
    """The stages as recorded; without workers also what getting a batch takes beyond making it, so that they add up to the step."""
    made = [i for i, one in enumerate(report.stages) if one.where == "main" and one.name in OF_LOADING]
    left_s = report.wait_s - sum(report.stages[i].per_step_s for i in made)
    if not made or report.settings.num_workers or left_s < WORTH_TELLING * report.measured_step_s:
        return report.stages
    share = left_s / max(report.measured_step_s, 1e-12)
    other = StageTime(name=OTHER, where="main", per_step_s=left_s, share=share)
    return [*report.stages[: made[-1] + 1], other, *report.stages[made[-1] + 1 :]]


def step_share(stage: StageTime) -> str:
    """How long a stage takes, against the step; what runs beside the step may take longer than it.

    >>> step_share(StageTime(name="fetch", where="worker", per_step_s=0.03, share=1.5))
    '1.50× the step'
    >>> step_share(StageTime(name="wait", where="main", per_step_s=0.01, share=0.5))
    '50 %'
    """
    return percent(stage.share) if stage.share <= 1 else f"{significant(stage.share)}× the step"


def cpu_share(share: float) -> str:
    """How much of a stage's time ran on a CPU; more than one where it has several threads.

    >>> cpu_share(0.25), cpu_share(1.13)
    ('25 %', '1.13 CPUs')
    """
    return percent(share) if share <= 1 else f"{significant(share)} CPUs"


def _pipeline(report: LoaderReport) -> Section:
    rows = [
        (
            stage.name,
            RUNS_IN[stage.where],
            format_seconds(stage.per_step_s),
            step_share(stage),
            "–" if stage.cpu_share is None else cpu_share(stage.cpu_share),
        )
        for stage in stages(report)
    ]
    table = Table(("stage", "runs in", "per step", "of the step", "on a CPU"), rows, frozenset({1}))
    how = (
        "Stages of the training process follow each other: their shares add up to the step. Those of workers, threads and devices "
        "run beside it, and may together take longer than it. A low share on a CPU means waiting for storage; above one CPU, "
        "operators of the samples run on several threads."
    )
    return Section(
        "loading", "How the data arrives", _facts(report), table if rows else None, how, WHICH_STEPS
    )


def _facts(report: LoaderReport) -> list[Fact]:
    spent = f"{format_seconds(report.wait_s)} of {format_seconds(report.measured_step_s)}"
    facts = [
        Fact(
            "getting batches", f"{format_percent(report.data_share)} of a step", f"{spent}, {watched(report)}"
        ),
        Fact(
            "with free data",
            f"{significant(report.free_data_ratio)}× the step",
            "the most that any loader could bring",
        ),
        Fact("first batch", format_seconds(report.first_batch_s)),
    ]
    if report.predicted_step_s is not None:
        facts.append(
            Fact(
                "predicted step",
                format_seconds(report.predicted_step_s),
                f"from its parts; measured {format_seconds(report.measured_step_s)}",
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
