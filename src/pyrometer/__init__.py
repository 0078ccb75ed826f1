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

from pyrometer.record import NotebookView, show_in_notebooks
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
    from pyrometer.compiler.inspection.evaluation import evaluate_modes as evaluate_modes
    from pyrometer.compiler.inspection.inspect import inspect_compile as inspect_compile
    from pyrometer.compiler.inspection.observe import observe_compile as observe_compile
    from pyrometer.compiler.report import CompileReport as CompileReport
    from pyrometer.hardware.environment import Environment as Environment
    from pyrometer.hardware.environment import read_environment as read_environment
    from pyrometer.loading.pipeline import observe_loading as observe_loading
    from pyrometer.loading.profiling.profile import profile_samples as profile_samples
    from pyrometer.loading.report import LoaderReport as LoaderReport
    from pyrometer.memory.difference import diff_memory as diff_memory
    from pyrometer.memory.leaks.watch import MemoryWatch as MemoryWatch
    from pyrometer.memory.leaks.watch import assert_no_leak as assert_no_leak
    from pyrometer.memory.leaks.watch import watch_memory as watch_memory
    from pyrometer.memory.prediction.fits import largest_batch_that_fits as largest_batch_that_fits
    from pyrometer.memory.prediction.predict import predict_memory as predict_memory
    from pyrometer.memory.profile import MemoryProfile as MemoryProfile
    from pyrometer.memory.profiling import profile_memory as profile_memory
    from pyrometer.memory.snapshots.build import report_snapshot as report_snapshot
    from pyrometer.memory.snapshots.difference import diff_snapshots as diff_snapshots
    from pyrometer.memory.snapshots.read import read_snapshot as read_snapshot
    from pyrometer.memory.snapshots.recording import record_snapshot as record_snapshot
    from pyrometer.memory.tracking import track_memory as track_memory
    from pyrometer.numerics.report import NumericsReport as NumericsReport
    from pyrometer.numerics.watch import watch_numerics as watch_numerics
    from pyrometer.rules.diagnose import diagnose as diagnose
    from pyrometer.rules.diagnosis import Diagnosis as Diagnosis
    from pyrometer.rules.finding import Finding as Finding
    from pyrometer.rules.settings import RuleSettings as RuleSettings
    from pyrometer.rules.settings import load_rule_settings as load_rule_settings
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
    from pyrometer.tuning.batching.largest import largest_batch as largest_batch
    from pyrometer.tuning.batching.micro import micro_batched as micro_batched
    from pyrometer.tuning.checkpointing.adaptive import AdaptiveCheckpoint as AdaptiveCheckpoint
    from pyrometer.tuning.checkpointing.plan import plan_checkpoints as plan_checkpoints
    from pyrometer.tuning.checkpointing.record import CheckpointPlan as CheckpointPlan
    from pyrometer.tuning.loader.tune import tune_loader as tune_loader
    from pyrometer.tuning.loop.loop import TrainingLoop as TrainingLoop
    from pyrometer.tuning.prefetch.prefetcher import DevicePrefetcher as DevicePrefetcher
    from pyrometer.tuning.shapes.buckets import ShapeBuckets as ShapeBuckets
    from pyrometer.tuning.shapes.packing import pack_sequences as pack_sequences
    from pyrometer.tuning.shapes.recommend import recommend_shapes as recommend_shapes
    from pyrometer.tuning.shapes.sampler import BucketBatchSampler as BucketBatchSampler
    from pyrometer.workload.call import Call as Call
    from pyrometer.workload.inference import Inference as Inference
    from pyrometer.workload.training import Training as Training
    from pyrometer.workload.workload import Workload as Workload

_HOMES = {
    "AdaptiveCheckpoint": "pyrometer.tuning.checkpointing.adaptive",
    "BucketBatchSampler": "pyrometer.tuning.shapes.sampler",
    "Calibration": "pyrometer.bench.calibration",
    "Call": "pyrometer.workload.call",
    "CaptureOptions": "pyrometer.trace.capture.record",
    "CheckpointPlan": "pyrometer.tuning.checkpointing.record",
    "CompileBudget": "pyrometer.compiler.budget",
    "CompileReport": "pyrometer.compiler.report",
    "DevicePrefetcher": "pyrometer.tuning.prefetch.prefetcher",
    "Diagnosis": "pyrometer.rules.diagnosis",
    "Environment": "pyrometer.hardware.environment",
    "Finding": "pyrometer.rules.finding",
    "Inference": "pyrometer.workload.inference",
    "LoaderReport": "pyrometer.loading.report",
    "Measurement": "pyrometer.bench.measurement",
    "MemoryProfile": "pyrometer.memory.profile",
    "MemoryWatch": "pyrometer.memory.leaks.watch",
    "NumericsReport": "pyrometer.numerics.report",
    "RuleSettings": "pyrometer.rules.settings",
    "ShapeBuckets": "pyrometer.tuning.shapes.buckets",
    "Trace": "pyrometer.trace.trace",
    "TrainingLoop": "pyrometer.tuning.loop.loop",
    "Training": "pyrometer.workload.training",
    "Verdict": "pyrometer.bench.comparison.verdict",
    "Workload": "pyrometer.workload.workload",
    "analyses": "pyrometer.trace.analysis.registry",
    "analyze": "pyrometer.trace.analysis.registry",
    "assert_compile_budget": "pyrometer.compiler.budget",
    "assert_no_leak": "pyrometer.memory.leaks.watch",
    "attach": "pyrometer.trace.capture.attach",
    "calibrate": "pyrometer.bench.calibrate",
    "compare": "pyrometer.bench.comparison.compare",
    "compare_many": "pyrometer.bench.comparison.compare",
    "diagnose": "pyrometer.rules.diagnose",
    "diff_compile": "pyrometer.compiler.difference",
    "diff_memory": "pyrometer.memory.difference",
    "diff_snapshots": "pyrometer.memory.snapshots.difference",
    "diff_traces": "pyrometer.trace.difference.compare",
    "disable_attach": "pyrometer.trace.capture.listening",
    "enable_attach": "pyrometer.trace.capture.listening",
    "evaluate_modes": "pyrometer.compiler.inspection.evaluation",
    "export_trace": "pyrometer.trace.export.formats",
    "inspect_compile": "pyrometer.compiler.inspection.inspect",
    "largest_batch": "pyrometer.tuning.batching.largest",
    "largest_batch_that_fits": "pyrometer.memory.prediction.fits",
    "load_rule_settings": "pyrometer.rules.settings",
    "measure": "pyrometer.bench.measure",
    "micro_batched": "pyrometer.tuning.batching.micro",
    "observe_compile": "pyrometer.compiler.inspection.observe",
    "observe_loading": "pyrometer.loading.pipeline",
    "pack_sequences": "pyrometer.tuning.shapes.packing",
    "plan_checkpoints": "pyrometer.tuning.checkpointing.plan",
    "predict_memory": "pyrometer.memory.prediction.predict",
    "profile_memory": "pyrometer.memory.profiling",
    "profile_samples": "pyrometer.loading.profiling.profile",
    "read_environment": "pyrometer.hardware.environment",
    "read_snapshot": "pyrometer.memory.snapshots.read",
    "read_trace": "pyrometer.trace.reading.read",
    "recommend_shapes": "pyrometer.tuning.shapes.recommend",
    "record_snapshot": "pyrometer.memory.snapshots.recording",
    "record_trace": "pyrometer.trace.capture.workload",
    "report_snapshot": "pyrometer.memory.snapshots.build",
    "span": "pyrometer.trace.span",
    "trace_script": "pyrometer.trace.capture.script",
    "track_memory": "pyrometer.memory.tracking",
    "tune_loader": "pyrometer.tuning.loader.tune",
    "watch_memory": "pyrometer.memory.leaks.watch",
    "watch_numerics": "pyrometer.numerics.watch",
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


def _notebook_view() -> NotebookView:
    from pyrometer.report.notebook import bundle

    return bundle


show_in_notebooks(_notebook_view)

if os.environ.get("PYROMETER_ATTACH", "") not in {"", "0"}:
    from pyrometer.trace.capture.listening import enable_if_asked

    enable_if_asked()
    del enable_if_asked
