"""How a training step gets its data, in words."""

from __future__ import annotations

from pyrometer.bench.measurement import Measurement
from pyrometer.evidence.data_share import measured_share, watched_share
from pyrometer.loading.report import LoaderReport, StageTime, Where
from pyrometer.quantity import Seconds, counted, format_bytes, format_percent, format_seconds, significant
from pyrometer.report.facts.layout import Fact, Section, Table, percent, told
from pyrometer.trace.records.rank import RankReport

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

DISTORTED = 0.05
"""Of a step: so far apart, the traced share of data is the profiler's work."""

WHICH_STEPS = (
    "These steps were run to watch the loader, without the profiler: their times differ from those of the measured steps as far "
    "as the runs did."
)


def apart(m: Measurement | None, report: LoaderReport | None) -> str:
    """The share of data beside that of a trace, which the profiler distorts; empty where no loader was watched."""
    if report is None:
        return ""
    share = measured_share(m) or watched_share(report)
    page = "the measurement" if share.of == "measured" else "data loading"
    return f"Without the profiler, getting batches takes {format_percent(share.share)} of a step: see the page on {page}."


def profiler_distorts(m: Measurement | None, report: LoaderReport | None, trace: RankReport | None) -> bool:
    """Whether the traced share of data is so far from the measured one that a picture of a step had better not show it."""
    measured = measured_share(m)
    if report is None or measured is None or trace is None or not trace.span_ns:
        return False
    return abs(trace.breakdown_ns.data / trace.span_ns - measured.share) > DISTORTED


def share_table(m: Measurement | None, report: LoaderReport | None, trace: RankReport | None) -> Table | None:
    """What getting data takes in each kind of steps that were run, where a loader was observed; the first is what is told."""
    measured = measured_share(m)
    if report is None or measured is None:
        return None
    kinds = [
        ("measured, phase by phase", measured),
        ("watched, part by part of the loader", watched_share(report)),
    ]
    rows = [_share_row(name, share.wait_s, share.step_s) for name, share in kinds]
    if trace is not None and trace.span_ns:
        of_all = 1e-9 / max(len(trace.steps), 1)
        rows.append(
            _share_row("traced, under the profiler", trace.breakdown_ns.data * of_all, trace.span_ns * of_all)
        )
    return Table(("steps", "getting data", "rest of the step", "share"), rows)


def _share_row(steps: str, wait_s: Seconds, step_s: Seconds) -> tuple[str, ...]:
    rest = format_seconds(max(0.0, step_s - wait_s))
    return (steps, format_seconds(wait_s), rest, percent(wait_s / max(step_s, 1e-12)))


def headline(report: LoaderReport) -> str:
    """The answer."""
    return report.sentence


def sections(report: LoaderReport) -> list[Section]:
    """The pipeline with its figures, and what limits them."""
    made = [_pipeline(report), _notes(report)]
    return told(made)


def watched(report: LoaderReport) -> str:
    """Which steps the figures are of."""
    return f"mean of {counted(report.num_steps, 'step')}" if report.num_steps else "on average"


def stages(report: LoaderReport) -> list[StageTime]:
    """The stages as recorded; without workers also what getting a batch takes beyond making it, so that they add up to the step."""
    made = [i for i, stage in enumerate(report.stages) if stage.where == "main" and stage.name in OF_LOADING]
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
        Fact("getting batches", spent, watched(report)),
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


def _notes(report: LoaderReport) -> Section:
    notes = [Fact("note", note) for note in report.notes]
    return Section("unsure", "What limits these figures", notes)
