"""Items about the data pipeline."""

from __future__ import annotations

from pyrometer.rules.audit.applicable import needs_device, needs_loader
from pyrometer.rules.audit.item import Item, proof_of
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Value


def _workers(case: Case) -> dict[str, Value] | None:
    loading = case.loading
    if loading is None or loading.worker_busy is None:
        return None
    return {"worker_busy": loading.worker_busy, "queue_batches": loading.queue_batches}


def _stages(case: Case) -> dict[str, Value] | None:
    loading = case.loading
    return (
        {"stages_observed": [stage.name for stage in loading.stages]} if loading and loading.stages else None
    )


def _padding(case: Case) -> dict[str, Value] | None:
    measured = case.measurement
    if measured is None or measured.padding_ratio is None:
        return None
    return {"padding_share": measured.padding_ratio}


def _unpadded(case: Case) -> str | None:
    measured = case.measurement
    if measured is not None and measured.padding_ratio is None:
        return "the batches say nothing of lengths or a mask"
    return None


DATA = (
    Item(
        code="A401",
        title="The step does not wait for its data",
        rules=("PYR301",),
        proof=proof_of("loading", data_share=lambda loading: loading.data_share),
        applies=needs_loader,
        needed="the loader of a training",
    ),
    Item(
        code="A402",
        title="Workers load beside the step, as many as help",
        rules=("PYR302", "PYR303", "PYR305", "PYR306", "PYR312", "PYR315", "PYR316"),
        proof=_workers,
        applies=needs_loader,
        needed="a loader with workers",
    ),
    Item(
        code="A403",
        title="Batches reach the device from pinned memory, beside the computing",
        rules=("PYR112", "PYR113", "PYR114", "PYR115", "PYR117", "PYR119", "PYR304"),
        proof=proof_of("trace", copies=lambda trace: trace.copies.num_copies),
        applies=lambda case: needs_device(case) or needs_loader(case),
        needed="a trace of an accelerator",
    ),
    Item(
        code="A404",
        title="Preprocessing is done once, and not in each epoch or each collate",
        rules=("PYR307", "PYR308", "PYR309", "PYR314"),
        family="data",
        proof=_stages,
        applies=needs_loader,
        needed="the stages of a loader",
    ),
    Item(
        code="A405",
        title="The format can be read in parallel",
        rules=("PYR313",),
        proof=_stages,
        applies=needs_loader,
        needed="the stages of a loader",
    ),
    Item(
        code="A406",
        title="Little of a batch is padding",
        rules=("PYR310", "PYR007"),
        proof=_padding,
        applies=_unpadded,
        needed="a measurement",
    ),
)
