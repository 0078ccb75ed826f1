"""Pyrometer measures how hot the torch burns: the performance engineer for PyTorch programs.

>>> import torch
>>> import pyrometer as pm
>>> model, x = torch.nn.Linear(8, 2), torch.randn(4, 8)
>>> pm.measure(model, x, budget_s=0.2).unit
'samples'

A workload is one repeatable step: `pm.Inference(model, inputs)`, `pm.Training(model, loss, optimizer, batches)` or
`pm.Call(function)`; a model with its inputs does for most functions. A result prints its short answer, and
`.save("report.html")`, `.save("result.json")` or `.save("result.md")` writes it; `.to_json()` is the data. `help(pm.check)` explains one.

The verbs of the command line
  check(work)               pyrometer check: measure, observe and explain; a document with evidence and diagnosis
  measure(work)             pyrometer bench: how long a step takes, with its interval
  compare(a, b)             pyrometer bench --vs: faster, slower, the same or undecided; paired and interleaved
  compare_runs(a, b)        pyrometer compare: two stored runs side by side, of bench, check or tune
  record_trace(work)        pyrometer trace TARGET: what ran when; read_trace("rank*.json.gz") opens files
  inspect_compile(work)     pyrometer compile: graphs, breaks, guards, recompilations, costs
  profile_memory(work)      pyrometer memory: the ledger at the peak, leaks
  tune(work)                pyrometer tune: what makes it faster, proved; a recipe
  lint(paths)               pyrometer lint: what makes code slow or wrong, in its text
  audit(work)               pyrometer audit: the checklist, with a score
  guard_check(base)         pyrometer guard check: what a change makes worse; parametrize(…) varies a benchmark
  calibrate()               pyrometer calibrate: what difference this machine can resolve; its peaks
  read_environment()        pyrometer env: machine, versions, settings
  diagnose(work)            the diagnosis of check alone, with the checklist

Workloads
  Inference, Training, Call, Workload           one repeatable step, and what a step is worth
  observe_steps()                               a loop of your own or trainer.train(), observed as it runs
  integrations.transformers.PyrometerCallback   for the Trainer of Hugging Face
  integrations.lightning.PyrometerCallback      for the Trainer of Lightning

Measuring
  Measurement, Verdict, Calibration, Environment   the results
  compare_many(a, others)                          several, each against the first

Traces
  Trace, CaptureOptions                    the result, and what to record
  analyses(), analyze(trace, name)         every analysis by name, and one of them
  diff_traces(a, b)                        what changed between two ranks
  export_trace(trace, path)                for Perfetto, speedscope, Parquet and others
  trace_script(argv)                       some steps of a script that runs unchanged
  attach(pid, path)                        of a process that runs already; enable_attach(), disable_attach()
  span(name)                               a name of your own in every trace

torch.compile
  CompileReport, CompileBudget             the result, and limits on it
  observe_compile()                        what a block of your own compiles
  assert_compile_budget(report, …)         for tests
  diff_compile(before, after)              what changed
  evaluate_modes(work)                     eager against each mode
  recommend_shapes(work, sample)           static, buckets or dynamic
  ShapeBuckets(model, dims)                pads varying sizes to few
  BucketBatchSampler, pack_sequences       batches of like length; rows of one length

Memory
  MemoryProfile, MemoryWatch, CheckpointPlan   the results
  predict_memory(work), largest_batch(work), largest_batch_that_fits(work)   before it runs; what fits
  watch_memory(work), assert_no_leak(step)     whether something stays, and who holds it
  track_memory()                               what a block does to memory
  diff_memory(before, after)                   what changed
  plan_checkpoints(work, budget=)              what to compute again; AdaptiveCheckpoint
  micro_batched(work, n)                       the same step from parts of each batch
  record_snapshot(path), read_snapshot(path), report_snapshot(s), diff_snapshots(a, b)   of CUDA's allocator

Tuning
  Recipe, load_recipe(path)                the proved levers; recipe.apply(model)
  Lever, lever                             a lever of your own, and its registration
  TrainingLoop(work)                       a loop that survives kills, for those who have none
  train_quantised(train)                   weights that learn to be right in int8
  distil(student, teacher)                 a small model that learns from a large one
  prune_magnitude(model, share)            a copy without its smallest weights, to see how much is redundant
  find_shared_weights(model), check_initialisation(model)   weights that could be one; at an unfit scale

Production
  Monitor(model=…)                         watches calls in half a microsecond each; figures, exports, alarms
  serve(model, inputs)                     pyrometer serve: a model behind HTTP, with dynamic batching
  Router(weights)                          which version answers a unit or batch: by a keyed hash, or by chance; pyrometer rollout

Data and numbers
  observe_loading(train), LoaderReport     how the data arrives
  profile_samples(loader)                  what samples and collation cost
  tune_loader(loader), DevicePrefetcher    settings that are proved; copies beside the computation
  watch_numerics(work), NumericsReport     what is not finite, gradients, precision

Rules
  Diagnosis, Finding                       what evidence means: findings with cost, advice and gain
  RuleSettings, load_rule_settings()       which rules to ask, with which limits

Everything is loaded when it is first used: `import pyrometer` does not import torch. With `PYROMETER_ATTACH=1` in the
environment the import lets `pyrometer trace --attach` record the process.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyrometer.record import NotebookView, show_in_notebooks
from pyrometer.version import __version__ as __version__

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
    from pyrometer.guard.parameters import parametrize as parametrize
    from pyrometer.hardware.environment import read_environment as read_environment
    from pyrometer.hardware.record import Environment as Environment
    from pyrometer.integrations.steps import observe_steps as observe_steps
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
    from pyrometer.monitor.monitor import Monitor as Monitor
    from pyrometer.numerics.report import NumericsReport as NumericsReport
    from pyrometer.numerics.watch import watch_numerics as watch_numerics
    from pyrometer.rollout.router import Router as Router
    from pyrometer.rules.diagnose import diagnose as diagnose
    from pyrometer.rules.diagnosis import Diagnosis as Diagnosis
    from pyrometer.rules.finding import Finding as Finding
    from pyrometer.rules.settings import RuleSettings as RuleSettings
    from pyrometer.rules.settings import load_rule_settings as load_rule_settings
    from pyrometer.serving.serve import serve as serve
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
    from pyrometer.tuning.distilling import distil as distil
    from pyrometer.tuning.levers.lever import Lever as Lever
    from pyrometer.tuning.levers.lever import lever as lever
    from pyrometer.tuning.loader.tune import tune_loader as tune_loader
    from pyrometer.tuning.loop.loop import TrainingLoop as TrainingLoop
    from pyrometer.tuning.prefetch.prefetcher import DevicePrefetcher as DevicePrefetcher
    from pyrometer.tuning.pruning.magnitude import prune_magnitude as prune_magnitude
    from pyrometer.tuning.quantising import train_quantised as train_quantised
    from pyrometer.tuning.recipe.recipe import Recipe as Recipe
    from pyrometer.tuning.recipe.recipe import load_recipe as load_recipe
    from pyrometer.tuning.shapes.buckets import ShapeBuckets as ShapeBuckets
    from pyrometer.tuning.shapes.packing import pack_sequences as pack_sequences
    from pyrometer.tuning.shapes.recommend import recommend_shapes as recommend_shapes
    from pyrometer.tuning.shapes.sampler import BucketBatchSampler as BucketBatchSampler
    from pyrometer.tuning.tune import tune as tune
    from pyrometer.tuning.weights.initialising import check_initialisation as check_initialisation
    from pyrometer.tuning.weights.sharing import find_shared_weights as find_shared_weights
    from pyrometer.verbs.check import audit as audit
    from pyrometer.verbs.check import check as check
    from pyrometer.verbs.compare import compare_runs as compare_runs
    from pyrometer.verbs.guard import guard_check as guard_check
    from pyrometer.verbs.lint import lint as lint
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
    "Environment": "pyrometer.hardware.record",
    "Finding": "pyrometer.rules.finding",
    "Inference": "pyrometer.workload.inference",
    "Lever": "pyrometer.tuning.levers.lever",
    "LoaderReport": "pyrometer.loading.report",
    "Measurement": "pyrometer.bench.measurement",
    "MemoryProfile": "pyrometer.memory.profile",
    "MemoryWatch": "pyrometer.memory.leaks.watch",
    "Monitor": "pyrometer.monitor.monitor",
    "NumericsReport": "pyrometer.numerics.report",
    "Recipe": "pyrometer.tuning.recipe.recipe",
    "Router": "pyrometer.rollout.router",
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
    "audit": "pyrometer.verbs.check",
    "calibrate": "pyrometer.bench.calibrate",
    "check": "pyrometer.verbs.check",
    "check_initialisation": "pyrometer.tuning.weights.initialising",
    "compare": "pyrometer.bench.comparison.compare",
    "compare_many": "pyrometer.bench.comparison.compare",
    "compare_runs": "pyrometer.verbs.compare",
    "diagnose": "pyrometer.rules.diagnose",
    "diff_compile": "pyrometer.compiler.difference",
    "diff_memory": "pyrometer.memory.difference",
    "diff_snapshots": "pyrometer.memory.snapshots.difference",
    "diff_traces": "pyrometer.trace.difference.compare",
    "disable_attach": "pyrometer.trace.capture.listening",
    "distil": "pyrometer.tuning.distilling",
    "enable_attach": "pyrometer.trace.capture.listening",
    "evaluate_modes": "pyrometer.compiler.inspection.evaluation",
    "export_trace": "pyrometer.trace.export.formats",
    "find_shared_weights": "pyrometer.tuning.weights.sharing",
    "guard_check": "pyrometer.verbs.guard",
    "inspect_compile": "pyrometer.compiler.inspection.inspect",
    "largest_batch": "pyrometer.tuning.batching.largest",
    "largest_batch_that_fits": "pyrometer.memory.prediction.fits",
    "lever": "pyrometer.tuning.levers.lever",
    "lint": "pyrometer.verbs.lint",
    "load_recipe": "pyrometer.tuning.recipe.recipe",
    "load_rule_settings": "pyrometer.rules.settings",
    "measure": "pyrometer.bench.measure",
    "micro_batched": "pyrometer.tuning.batching.micro",
    "observe_compile": "pyrometer.compiler.inspection.observe",
    "observe_loading": "pyrometer.loading.pipeline",
    "observe_steps": "pyrometer.integrations.steps",
    "pack_sequences": "pyrometer.tuning.shapes.packing",
    "parametrize": "pyrometer.guard.parameters",
    "plan_checkpoints": "pyrometer.tuning.checkpointing.plan",
    "predict_memory": "pyrometer.memory.prediction.predict",
    "profile_memory": "pyrometer.memory.profiling",
    "profile_samples": "pyrometer.loading.profiling.profile",
    "prune_magnitude": "pyrometer.tuning.pruning.magnitude",
    "read_environment": "pyrometer.hardware.environment",
    "read_snapshot": "pyrometer.memory.snapshots.read",
    "read_trace": "pyrometer.trace.reading.read",
    "recommend_shapes": "pyrometer.tuning.shapes.recommend",
    "record_snapshot": "pyrometer.memory.snapshots.recording",
    "record_trace": "pyrometer.trace.capture.workload",
    "report_snapshot": "pyrometer.memory.snapshots.build",
    "serve": "pyrometer.serving.serve",
    "span": "pyrometer.trace.span",
    "trace_script": "pyrometer.trace.capture.script",
    "track_memory": "pyrometer.memory.tracking",
    "train_quantised": "pyrometer.tuning.quantising",
    "tune": "pyrometer.tuning.tune",
    "tune_loader": "pyrometer.tuning.loader.tune",
    "watch_memory": "pyrometer.memory.leaks.watch",
    "watch_numerics": "pyrometer.numerics.watch",
}

__all__: list[str] = []
"""Empty on purpose: names are used as `pm.measure`. `help(pm)` shows the page above instead of every class in full,
and a star import takes nothing; `dir(pm)` lists all names."""


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'pyrometer' has no attribute {name!r}") from None
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", *sorted(_HOMES)]


def _notebook_view() -> NotebookView:
    from pyrometer.report.notebook import bundle

    return bundle


show_in_notebooks(_notebook_view)

if os.environ.get("PYROMETER_ATTACH", "") not in {"", "0"}:
    from pyrometer.trace.capture.listening import enable_if_asked

    enable_if_asked()
    del enable_if_asked
