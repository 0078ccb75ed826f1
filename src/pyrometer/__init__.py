"""Pyrometer measures how hot the torch burns: the performance engineer for PyTorch programs.

Everything public is importable from here and loaded when it is first used, so that `import pyrometer` does not
import torch. With `PYROMETER_ATTACH=1` in the environment the import lets `pyrometer trace --attach` record the process.

>>> import torch
>>> import pyrometer as pm
>>> work = pm.Inference(torch.nn.Linear(8, 2), (torch.randn(4, 8),), unit="samples")
>>> pm.measure(work, budget_s=0.2).unit
'samples'
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyrometer.version import __version__

if TYPE_CHECKING:
    from pyrometer.bench.calibrate import calibrate as calibrate
    from pyrometer.bench.calibration import Calibration as Calibration
    from pyrometer.bench.comparison.compare import compare as compare
    from pyrometer.bench.comparison.compare import compare_many as compare_many
    from pyrometer.bench.comparison.verdict import Verdict as Verdict
    from pyrometer.bench.measure import measure as measure
    from pyrometer.bench.measurement import Measurement as Measurement
    from pyrometer.compiler.budget import CompileBudget as CompileBudget
    from pyrometer.compiler.budget import assert_compile_budget as assert_compile_budget
    from pyrometer.compiler.difference import diff_compile as diff_compile
    from pyrometer.compiler.inspecting.evaluation import evaluate_modes as evaluate_modes
    from pyrometer.compiler.inspecting.inspect import inspect_compile as inspect_compile
    from pyrometer.compiler.inspecting.observe import observe_compile as observe_compile
    from pyrometer.compiler.report import CompileReport as CompileReport
    from pyrometer.compiler.shapes.buckets import ShapeBuckets as ShapeBuckets
    from pyrometer.compiler.shapes.packing import pack_sequences as pack_sequences
    from pyrometer.compiler.shapes.recommend import recommend_shapes as recommend_shapes
    from pyrometer.compiler.shapes.sampler import BucketBatchSampler as BucketBatchSampler
    from pyrometer.hardware.environment import Environment as Environment
    from pyrometer.hardware.environment import read_environment as read_environment
    from pyrometer.trace.analysis.registry import analyses as analyses
    from pyrometer.trace.analysis.registry import analyze as analyze
    from pyrometer.trace.capture.attach import attach as attach
    from pyrometer.trace.capture.listening import disable_attach as disable_attach
    from pyrometer.trace.capture.listening import enable_attach as enable_attach
    from pyrometer.trace.capture.record import CaptureOptions as CaptureOptions
    from pyrometer.trace.capture.script import trace_script as trace_script
    from pyrometer.trace.capture.workload import record_trace as record_trace
    from pyrometer.trace.difference.compare import diff_traces as diff_traces
    from pyrometer.trace.export.formats import export_trace as export_trace
    from pyrometer.trace.reading.read import read_trace as read_trace
    from pyrometer.trace.span import span as span
    from pyrometer.trace.trace import Trace as Trace
    from pyrometer.workload.call import Call as Call
    from pyrometer.workload.inference import Inference as Inference
    from pyrometer.workload.training import Training as Training
    from pyrometer.workload.workload import Workload as Workload

_HOMES = {
    "BucketBatchSampler": "pyrometer.compiler.shapes.sampler",
    "Calibration": "pyrometer.bench.calibration",
    "Call": "pyrometer.workload.call",
    "CaptureOptions": "pyrometer.trace.capture.record",
    "CompileBudget": "pyrometer.compiler.budget",
    "CompileReport": "pyrometer.compiler.report",
    "Environment": "pyrometer.hardware.environment",
    "Inference": "pyrometer.workload.inference",
    "Measurement": "pyrometer.bench.measurement",
    "ShapeBuckets": "pyrometer.compiler.shapes.buckets",
    "Trace": "pyrometer.trace.trace",
    "Training": "pyrometer.workload.training",
    "Verdict": "pyrometer.bench.comparison.verdict",
    "Workload": "pyrometer.workload.workload",
    "analyses": "pyrometer.trace.analysis.registry",
    "analyze": "pyrometer.trace.analysis.registry",
    "assert_compile_budget": "pyrometer.compiler.budget",
    "attach": "pyrometer.trace.capture.attach",
    "calibrate": "pyrometer.bench.calibrate",
    "compare": "pyrometer.bench.comparison.compare",
    "compare_many": "pyrometer.bench.comparison.compare",
    "diff_compile": "pyrometer.compiler.difference",
    "diff_traces": "pyrometer.trace.difference.compare",
    "disable_attach": "pyrometer.trace.capture.listening",
    "enable_attach": "pyrometer.trace.capture.listening",
    "evaluate_modes": "pyrometer.compiler.inspecting.evaluation",
    "export_trace": "pyrometer.trace.export.formats",
    "inspect_compile": "pyrometer.compiler.inspecting.inspect",
    "measure": "pyrometer.bench.measure",
    "observe_compile": "pyrometer.compiler.inspecting.observe",
    "pack_sequences": "pyrometer.compiler.shapes.packing",
    "read_environment": "pyrometer.hardware.environment",
    "read_trace": "pyrometer.trace.reading.read",
    "recommend_shapes": "pyrometer.compiler.shapes.recommend",
    "record_trace": "pyrometer.trace.capture.workload",
    "span": "pyrometer.trace.span",
    "trace_script": "pyrometer.trace.capture.script",
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'pyrometer' has no attribute {name!r}") from None
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


if os.environ.get("PYROMETER_ATTACH", "") not in {"", "0"}:
    from pyrometer.trace.capture.listening import enable_if_asked

    enable_if_asked()
    del enable_if_asked
