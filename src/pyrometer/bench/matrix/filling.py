"""What a matrix asks of its fresh processes: first a look at the workload, then one cell each."""

from __future__ import annotations

import os
import tempfile
from typing import Annotated, Any

import msgspec
import torch
from torch import nn

from pyrometer.bench.comparison.compare import compare
from pyrometer.bench.dynamo import graph_counts
from pyrometer.bench.matrix.cell import Cell, Settings, settings_label
from pyrometer.bench.matrix.numerics import output_error, tolerance_for, with_fixed_inputs
from pyrometer.bench.measure import measure
from pyrometer.errors import PyrometerError
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc
from pyrometer.series import thinned
from pyrometer.workload.inference import Inference, devices_of
from pyrometer.workload.loading import load_workload
from pyrometer.workload.state import module_tensors, tensor_bytes
from pyrometer.workload.target import TargetSpec
from pyrometer.workload.training import Training
from pyrometer.workload.variant import is_compiled
from pyrometer.workload.workload import Workload

MAX_SAMPLES = 200
REFERENCE: Settings = {"dtype": "float32", "mode": "eager"}


class SurveyRequest(Record, frozen=True, kw_only=True):
    """A workload and the settings that will be asked of it."""

    spec: TargetSpec
    cells: list[Settings]


class Survey(Record, frozen=True, kw_only=True):
    """What a workload is before anything is varied."""

    name: str
    unit: str
    is_reference: Annotated[list[bool], doc("which of the cells are eager float32")]
    reference: Annotated[Settings, doc("what to call eager float32, where no cell is")]


class CellRequest(Record, frozen=True, kw_only=True):
    """One cell to fill."""

    spec: TargetSpec
    settings: Settings
    is_reference: bool
    measure_s: Annotated[Seconds, doc("time to measure, beyond the first call")]
    compare_s: Annotated[Seconds, doc("time to compare, beyond the first calls")]


def survey(request: SurveyRequest) -> Survey:
    """Load the workload and check that every setting is one that it has.

    Raises:
        InputError: a setting that this kind of workload does not have.
        TargetError: the target does not lead to a workload.
        UserProgramError: the factory raised.
    """
    work = load_workload(request.spec.target())
    for settings in request.cells:
        work.variant(**settings)
    reference = {name: value for name, value in REFERENCE.items() if name not in work.unsupported}
    if "autocast" in _written(work):
        reference["autocast"] = "off"
    return Survey(
        name=work.name,
        unit=work.unit,
        is_reference=[
            _changes(work, settings) == _reference_changes(work, settings) for settings in request.cells
        ],
        reference=reference,
    )


def fill_cell(request: CellRequest) -> Cell:
    """Measure a configuration, check its output, and compare it with eager float32 at the same batch size.

    Inductor's cache is a fresh one, so that the compile time is that of a machine which has not seen the program yet. A
    comparison that fails is noted; the measurement stays.

    Raises:
        InputError: the configuration cannot be prepared.
        UserProgramError: the very first step raised.
    """
    with tempfile.TemporaryDirectory(prefix="pyrometer-cell-", ignore_cleanup_errors=True) as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        work = load_workload(request.spec.target())
        name = settings_label(request.settings)
        changes = (_reference_changes if request.is_reference else _changes)(work, request.settings)
        variant = work.variant(**changes)
        measured = measure(variant, budget_s=request.measure_s, phases=False, beyond_first_call=True)
        cell = Cell(
            label=name,
            settings=request.settings,
            is_reference=request.is_reference,
            measurement=msgspec.structs.replace(
                measured,
                config=name,
                samples_s=[measured.samples_s[i] for i in thinned(len(measured.samples_s), MAX_SAMPLES)],
            ),
            graphs=graph_counts(),
            held_bytes=_held_bytes(variant),
        )
        if request.is_reference or not measured.complete:
            return cell
        try:
            return _compared(cell, work, request)
        except PyrometerError as error:
            return msgspec.structs.replace(cell, failure=str(error))


def _compared(cell: Cell, work: Workload, request: CellRequest) -> Cell:
    changes, reference = _changes(work, request.settings), _reference_changes(work, request.settings)
    fixed = with_fixed_inputs(work)
    error = output_error(
        fixed.variant(**changes), fixed.variant(**reference), _tolerance(work, request.settings)
    )
    cell = msgspec.structs.replace(cell, error=error)
    verdict = compare(work.variant(**reference), work.variant(**changes), budget_s=request.compare_s)
    return msgspec.structs.replace(cell, verdict=verdict)


def _changes(work: Workload, settings: Settings) -> dict[str, Any]:
    """The settings that differ from how the workload is written; the others would only cost a copy of the model."""
    written = _written(work)
    return {name: value for name, value in settings.items() if written.get(name) != value}


def _reference_changes(work: Workload, settings: Settings) -> dict[str, Any]:
    """What makes the workload eager float32 at the batch size of these settings."""
    written = _written(work)
    wanted = {name: value for name, value in settings.items() if name == "batch_size"}
    changed = {name: value for name, value in REFERENCE.items() if written.get(name, value) != value}
    # What the user wrote to be cast automatically is not float32.
    return {**wanted, **changed, **({"autocast": None} if "autocast" in written else {})}


def _written(work: Workload) -> Settings:
    """How the user wrote the workload; no dtype where there are no floating-point parameters."""
    model = _model(work)
    parts = list(model.modules()) if model is not None else []
    written: Settings = {"mode": "compiled" if any(map(is_compiled, parts)) else "eager"}
    dtypes = _dtypes(work)
    if dtypes:
        written["dtype"] = "+".join(dtypes)
    chosen = msgspec.structs.asdict(work.config)
    return written | {name: value for name, value in chosen.items() if value is not None}


def _tolerance(work: Workload, settings: Settings) -> float:
    """The tolerance of the coarsest dtype that something is computed in."""
    model = _model(work)
    device = next(iter(devices_of(model)), torch.device("cpu")) if model is not None else torch.device("cpu")
    chosen = [settings.get("autocast") or work.config.autocast, settings.get("dtype")]
    dtypes = [str(dtype) for dtype in chosen if dtype] or _dtypes(work) or ["float32"]
    return max(tolerance_for(dtype, device) for dtype in dtypes)


def _dtypes(work: Workload) -> list[str]:
    model = _model(work)
    tensors = module_tensors(model, parameters=True) if model is not None else []
    return sorted({str(t.dtype).removeprefix("torch.") for t in tensors if t.is_floating_point()})


def _held_bytes(variant: Workload) -> Bytes:
    """The user's own model, where the session runs a converted copy beside it."""
    model = _model(variant)
    if model is None or not variant.config.changes_parameters:
        return 0
    return tensor_bytes(module_tensors(model, parameters=True))


def _model(work: Workload) -> nn.Module | None:
    if isinstance(work, Training):
        return work.parts.model
    return work.model if isinstance(work, Inference) else None
