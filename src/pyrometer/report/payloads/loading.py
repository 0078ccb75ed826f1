"""What a page draws of: loading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from pyrometer.loading.report import LoaderReport, LoadingVerdict, StageTime, Where
from pyrometer.quantity import Ratio, Seconds, counted, format_percent, format_seconds
from pyrometer.record import Record, doc
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import BenchDocument, CheckDocument, Document
from pyrometer.report.facts.loading import OTHER, stages, watched
from pyrometer.report.facts.measurement import KNOWN_PHASES
from pyrometer.report.payloads.block import Block, block_of

Doing: TypeAlias = Literal["making", "waiting", "handing over", "computing"]

MEANING = {
    "fetch": "waiting for storage or the network",
    "decode": "the rest of __getitem__: decoding and transforming",
    "collate": "samples become a batch",
    OTHER: "getting a batch beyond making it: sampling, the iterator, waiting for a CPU",
    "wait": "the training process waits until the batch is there",
    "receive": "taking a batch over from a worker",
    "pin": "copying the batch to page-locked memory",
    "h2d": "copying the batch to the device",
    "rest": "whatever else the step does",
}
DOING: dict[str, Doing] = {
    "fetch": "making",
    "decode": "making",
    "collate": "making",
    OTHER: "making",
    "wait": "waiting",
    "receive": "handing over",
    "pin": "handing over",
    "h2d": "handing over",
}
SLOTS = {
    "fetch": 0,
    "decode": 7,
    "collate": 9,
    "wait": 6,
    "receive": 8,
    "pin": 1,
}
"""Stations of the loader, and their place in the palette; phases of the step have those of all charts."""

OTHER_SLOT = 5

MAKING = ("fetch", "decode", "collate")
HOLDS_BACK: dict[LoadingVerdict, tuple[tuple[str, ...], str]] = {
    "starved-steady": (MAKING, "the step waits for this"),
    "serial": (MAKING, "the longest part of loading"),
    "handover-bound": (("receive",), "the step waits for this"),
    "bursty": (("wait",), "batches come unevenly"),
    "no-loader": ((*MAKING, "wait"), "the longest part of loading"),
}
"""Stations among which a verdict looks for the one that matters most, and what is said of the longest of them."""

GOOD: frozenset[LoadingVerdict] = frozenset({"healthy", "balanced"})

NO_QUEUE_SERIES = "How full the queue was from moment to moment is not in the record, only its mean."
NO_CURVE = "Other numbers of workers were not tried here; pm.tune_loader measures them and proves the gain."
NO_MAKING = "Where the batches are made could not be timed, so its stations are missing."


class Station(Record, frozen=True, kw_only=True):
    """One station on a batch's way."""

    name: str
    doing: Doing
    slot: Annotated[int, doc("colour in the palette")]
    meaning: str
    per_step_s: Annotated[Seconds, doc("for the batches of one step, in one process")]
    share: Annotated[float, doc("of the step")]
    cpu_share: Annotated[float | None, doc("of its time, on a CPU")] = None
    mark: Annotated[str, doc("why this station matters most; empty for the others")] = ""


class Lane(Record, frozen=True, kw_only=True):
    """Stations that one kind of process, thread or device goes through in turn."""

    where: Where
    title: str
    count: Annotated[int, doc("such processes that work beside each other")]
    stations: list[Station]
    total_s: Seconds
    pace_s: Annotated[Seconds, doc("from one step's batches to the next: total_s over count")]


class Queue(Record, frozen=True, kw_only=True):
    """Where batches wait until they are asked for."""

    batches: Annotated[int, doc("that it can hold")]
    occupancy: Annotated[float | None, doc("mean share of it that was full when a batch was asked for")]
    said: str


class Pace(Record, frozen=True, kw_only=True):
    """How long one part takes from step to step."""

    label: str
    step_s: Seconds
    note: str = ""
    kind: Literal["part", "measured", "predicted"] = "part"
    slowest: Annotated[bool, doc("of the parts")] = False


class Prospect(Record, frozen=True, kw_only=True):
    """What the step would be."""

    label: str
    step_s: Seconds
    ratio: Annotated[Ratio, doc("of the step as it is")]
    said: Annotated[str, doc("beside its figure; empty where an advice says it")]
    kind: Literal["now", "advice", "bound"]


class Epoch(Record, frozen=True, kw_only=True):
    """One pass over the data, in three parts."""

    batches: int
    start_s: Annotated[Seconds, doc("until the first batch is there")]
    data_s: Annotated[Seconds, doc("getting the batches after that")]
    work_s: Annotated[Seconds, doc("everything else")]
    note: str = ""


class LoadingView(Record, frozen=True, kw_only=True):
    """The way of the data as a picture."""

    verdict: LoadingVerdict
    good: bool
    sentence: str
    settings: str
    step_s: Seconds
    lanes: list[Lane]
    queue: Queue | None = None
    bottleneck: Annotated[str, doc("what holds the step back, in words")]
    steps: Annotated[str, doc("which steps the figures are of")]
    paces: list[Pace] = []
    prospects: list[Prospect] = []
    epoch: Epoch | None = None
    missing: Annotated[list[str], doc("what the record does not hold")] = []


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """Its data blocks."""
    del attachments
    if isinstance(document, (BenchDocument, CheckDocument)) and document.evidence.loading is not None:
        yield block_of("loading/0", loading_view(document.evidence.loading))


def loading_view(report: LoaderReport) -> LoadingView:
    """The picture of one loader."""
    held = _held_back(report)
    lanes = _lanes(report, held)
    return LoadingView(
        verdict=report.verdict,
        good=report.verdict in GOOD,
        sentence=report.sentence,
        settings=report.settings.label,
        step_s=report.measured_step_s,
        lanes=lanes,
        queue=_queue(report),
        bottleneck=_bottleneck(report, held),
        steps=watched(report),
        paces=_paces(report, lanes),
        prospects=_prospects(report),
        epoch=_epoch(report),
        missing=_missing(report),
    )


def _held_back(report: LoaderReport) -> StageTime | None:
    among, _ = HOLDS_BACK.get(report.verdict, ((), ""))
    candidates = [stage for stage in report.stages if stage.name in among and stage.per_step_s > 0]
    return max(candidates, key=lambda stage: stage.per_step_s, default=None)


def _lanes(report: LoaderReport, held: StageTime | None) -> list[Lane]:
    marks = {held.name: _mark(report)} if held is not None else {}
    order: tuple[Where, ...] = ("worker", "pin thread", "main", "device")
    return [
        _lane(where, times, report.settings.num_workers, marks)
        for where in order
        if (times := [stage for stage in stages(report) if stage.where == where])
    ]


def _mark(report: LoaderReport) -> str:
    return HOLDS_BACK[report.verdict][1]


def _lane(where: Where, stages: Sequence[StageTime], num_workers: int, marks: Mapping[str, str]) -> Lane:
    count = max(1, num_workers) if where == "worker" else 1
    titles = {
        "worker": counted(count, "worker"),
        "pin thread": "pinning thread",
        "main": "training process",
        "device": "device",
    }
    total_s = sum(stage.per_step_s for stage in stages)
    return Lane(
        where=where,
        title=titles[where],
        count=count,
        stations=[_station(stage, marks.get(stage.name, "")) for stage in stages],
        total_s=total_s,
        pace_s=total_s / count,
    )


def _station(stage: StageTime, mark: str) -> Station:
    doing = DOING.get(stage.name, "computing")
    return Station(
        name=stage.name,
        doing=doing,
        slot=_slot(stage.name),
        meaning=MEANING.get(stage.name, "a phase of the step"),
        per_step_s=stage.per_step_s,
        share=stage.share,
        cpu_share=stage.cpu_share,
        mark=mark,
    )


def _slot(name: str) -> int:
    if name in SLOTS:
        return SLOTS[name]
    return KNOWN_PHASES.index(name) if name in KNOWN_PHASES else OTHER_SLOT


def _queue(report: LoaderReport) -> Queue | None:
    if not report.queue_batches:
        return None
    room = f"room for {counted(report.queue_batches, 'batch')}"
    if report.occupancy is None:
        return Queue(
            batches=report.queue_batches, occupancy=None, said=f"{room}; how full it was is not known"
        )
    full = f"{format_percent(report.occupancy, 2)} full when a batch was asked for"
    return Queue(batches=report.queue_batches, occupancy=report.occupancy, said=f"{room}; {full}")


def _bottleneck(report: LoaderReport, held: StageTime | None) -> str:
    if report.verdict in GOOD:
        return "nothing in the way of the data holds the step back"
    if report.verdict == "slow-start":
        return (
            f"the start of the workers: {format_seconds(report.first_batch_s)} until the first batch is there"
        )
    if held is None:
        return "what holds the step back cannot be told from the stations"
    several = held.where == "worker" and report.settings.num_workers > 1
    each = " in each worker" if several else ""
    return f"{held.name} takes {format_seconds(held.per_step_s)} per step{each}: {_mark(report)}"


def _paces(report: LoaderReport, lanes: Sequence[Lane]) -> list[Pace]:
    """What workers and the rest of the step would take alone; the slower sets the pace. Without workers they take turns."""
    makers = [lane for lane in lanes if lane.where == "worker"]
    if not makers:
        return []
    work_s = max(0.0, report.measured_step_s * report.free_data_ratio)
    making, working = makers[0].pace_s, work_s
    each = f"{format_seconds(makers[0].total_s)} in each of them" if makers[0].count > 1 else ""
    paces = [
        Pace(
            label=f"making the batches, {makers[0].title}", step_s=making, note=each, slowest=making > working
        ),
        Pace(
            label="the step without waiting",
            step_s=working,
            note="everything but getting the batches",
            slowest=working >= making,
        ),
    ]
    if report.predicted_step_s is not None:
        paces.append(Pace(label="predicted from the parts", step_s=report.predicted_step_s, kind="predicted"))
    return [*paces, Pace(label="the step as measured", step_s=report.measured_step_s, kind="measured")]


def _prospects(report: LoaderReport) -> list[Prospect]:
    now_s = report.measured_step_s
    if not now_s:
        return []
    bound_s = now_s * report.free_data_ratio
    rows = [Prospect(label="as it is", step_s=now_s, ratio=1.0, said=report.settings.label, kind="now")]
    for advice in report.advice:
        if advice.saves_s:
            # No change of the loader brings more than data that costs nothing.
            step_s = max(bound_s, now_s - advice.saves_s)
            # Why and how stand with the advice itself.
            rows.append(
                Prospect(label=advice.title, step_s=step_s, ratio=step_s / now_s, said="", kind="advice")
            )
    text = "the most that any loader could bring"
    rows.append(
        Prospect(
            label="with free data", step_s=bound_s, ratio=report.free_data_ratio, said=text, kind="bound"
        )
    )
    return rows


def _epoch(report: LoaderReport) -> Epoch | None:
    if not report.epoch_batches or not report.measured_step_s:
        return None
    later = max(0, report.epoch_batches - 1)
    data_s = later * report.measured_step_s * report.data_share
    kept = report.settings.persistent_workers
    return Epoch(
        batches=report.epoch_batches,
        start_s=report.first_batch_s,
        data_s=data_s,
        work_s=report.epoch_batches * report.measured_step_s * (1 - report.data_share),
        note="workers outlive an epoch, so that only the first begins so" if kept else "",
    )


def _missing(report: LoaderReport) -> list[str]:
    made = any(stage.name in {"fetch", "decode", "collate"} for stage in report.stages)
    return [
        *([] if made else [NO_MAKING]),
        *([NO_QUEUE_SERIES] if report.queue_batches else []),
        *([NO_CURVE] if report.verdict != "no-loader" else []),
    ]
