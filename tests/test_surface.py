"""The public surface is pinned: a change to it is a decision."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import pydoc
import re
import subprocess
import sys

import pytest

import pyrometer as pm
from pyrometer import errors
from pyrometer.errors import ExitCode, PyrometerError

PUBLIC = [
    "Calibration",
    "Lever",
    "guard_check",
    "parametrize",
    "compare_runs",
    "Recipe",
    "Router",
    "serve",
    "lever",
    "load_recipe",
    "tune",
    "check_initialisation",
    "distil",
    "find_shared_weights",
    "prune_magnitude",
    "train_quantised",
    "Call",
    "CaptureOptions",
    "BucketBatchSampler",
    "CompileBudget",
    "CompileReport",
    "Environment",
    "Inference",
    "ShapeBuckets",
    "assert_compile_budget",
    "Diagnosis",
    "Finding",
    "NumericsReport",
    "RuleSettings",
    "diagnose",
    "load_rule_settings",
    "watch_numerics",
    "diff_compile",
    "evaluate_modes",
    "inspect_compile",
    "observe_compile",
    "pack_sequences",
    "recommend_shapes",
    "Measurement",
    "Trace",
    "Training",
    "TrainingLoop",
    "Verdict",
    "Workload",
    "__version__",
    "analyses",
    "analyze",
    "attach",
    "audit",
    "calibrate",
    "check",
    "compare",
    "compare_many",
    "diff_traces",
    "disable_attach",
    "enable_attach",
    "export_trace",
    "lint",
    "measure",
    "read_environment",
    "read_trace",
    "record_trace",
    "span",
    "trace_script",
    "AdaptiveCheckpoint",
    "CheckpointPlan",
    "DevicePrefetcher",
    "LoaderReport",
    "MemoryProfile",
    "MemoryWatch",
    "Monitor",
    "assert_no_leak",
    "diff_memory",
    "diff_snapshots",
    "largest_batch",
    "largest_batch_that_fits",
    "micro_batched",
    "observe_loading",
    "observe_steps",
    "plan_checkpoints",
    "predict_memory",
    "profile_memory",
    "profile_samples",
    "read_snapshot",
    "record_snapshot",
    "report_snapshot",
    "track_memory",
    "tune_loader",
    "watch_memory",
]

ERRORS = {
    "PyrometerError": ("Exception", ExitCode.FAILURE),
    "UsageError": ("PyrometerError", ExitCode.FAILURE),
    "InputError": ("PyrometerError", ExitCode.FAILURE),
    "TargetError": ("InputError", ExitCode.FAILURE),
    "NotApplicableError": ("InputError", ExitCode.FAILURE),
    "IncomparableError": ("PyrometerError", ExitCode.FAILURE),
    "StoreError": ("PyrometerError", ExitCode.FAILURE),
    "BudgetExceededError": ("PyrometerError", ExitCode.FOUND),
    "ContractError": ("PyrometerError", ExitCode.FOUND),
    "UserProgramError": ("PyrometerError", ExitCode.USER_PROGRAM),
}


def test_exported_names():
    assert dir(pm) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(pm, name) is not None


def test_help_is_a_page_that_names_everything():
    page = pydoc.render_doc(pm, renderer=pydoc.plaintext)
    assert page.count("\n") <= 200
    assert [name for name in PUBLIC if not re.search(rf"\b{name}\b", page) and name != "__version__"] == []


def test_a_star_import_takes_nothing():
    namespace = {}
    exec("from pyrometer import *", namespace)
    assert set(namespace) == {"__builtins__"}


def test_no_name_hides_a_part_of_the_package():
    parts = {part.name for part in pkgutil.iter_modules(pm.__path__)}
    assert parts.isdisjoint(PUBLIC)
    for name in PUBLIC:  # also once it has been used
        getattr(pm, name)
    for part in ("bench", "memory", "trace", "rules"):
        assert importlib.import_module(f"pyrometer.{part}") is sys.modules[f"pyrometer.{part}"]
        assert getattr(pm, part) is sys.modules[f"pyrometer.{part}"]


@pytest.mark.parametrize("use", ["pass", "pm.lint", "pm.load_rule_settings", "help(pm.lint)"])
def test_what_reads_text_imports_no_torch(use):
    code = f"import sys, pyrometer as pm; {use}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_name_that_does_not_exist_is_an_ordinary_attribute_error():
    with pytest.raises(AttributeError, match="measrue"):
        _ = pm.measrue


def test_the_error_tree():
    found = {
        name: (value.__bases__[0].__name__, value.exit_code)
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, PyrometerError)
    }
    assert found == ERRORS
    for name in ERRORS:
        assert name in (errors.__doc__ or ""), "the tree is drawn in the module's docstring"


def test_exit_codes_are_a_contract():
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0,
        "FOUND": 1,
        "FAILURE": 2,
        "UNDECIDED": 3,
        "USER_PROGRAM": 4,
    }


def test_signatures_that_others_call():
    compare = inspect.signature(pm.compare).parameters
    assert {"a", "b", "budget_s", "margin", "seed", "confidence", "thorough"} <= set(compare)
    for verb in (pm.check, pm.audit):
        assert {"work", "inputs", "budget_s", "rules", "store"} <= set(inspect.signature(verb).parameters)
    assert {"paths", "select", "ignore", "rules", "jobs"} == set(inspect.signature(pm.lint).parameters)
    assert {"name", "skip", "store"} <= set(inspect.signature(pm.observe_steps).parameters)
    assert {"work", "budget_s", "confidence"} <= set(inspect.signature(pm.measure).parameters)
    assert list(inspect.signature(pm.Inference).parameters)[:4] == ["model", "inputs", "unit", "per_step"]
    assert list(inspect.signature(pm.Training).parameters)[:4] == ["model", "loss", "optimizer", "batches"]
    assert {"work", "steps", "options", "path"} <= set(inspect.signature(pm.record_trace).parameters)
    assert list(inspect.signature(pm.analyze).parameters)[:3] == ["trace", "name", "rank"]
    assert next(iter(inspect.signature(pm.inspect_compile).parameters)) == "work"
    assert list(inspect.signature(pm.ShapeBuckets).parameters)[:2] == ["model", "dims"]
    assert {"work", "steps", "predict", "leak_steps"} <= set(inspect.signature(pm.profile_memory).parameters)
    assert {"work", "batch", "sequence", "dtype", "optimizer", "checkpoint", "accumulate"} <= set(
        inspect.signature(pm.predict_memory).parameters
    )
    assert {"work", "steps"} <= set(inspect.signature(pm.watch_memory).parameters)
    assert {"work", "budget"} <= set(inspect.signature(pm.plan_checkpoints).parameters)
    assert {"work", "budget", "latency_s"} <= set(inspect.signature(pm.largest_batch).parameters)
    assert {"batches", "device", "depth"} <= set(inspect.signature(pm.DevicePrefetcher).parameters)
    assert next(iter(inspect.signature(pm.TrainingLoop).parameters)) == "work"
    assert {"paths", "strict", "cache", "workers"} == set(inspect.signature(pm.read_trace).parameters)


def test_importing_listens_only_when_the_environment_says_so(tmp_path):
    code = "import threading, pyrometer; print([thread.name for thread in threading.enumerate()])"
    heard = {}
    for asked in ("", "0", "1"):
        environment = os.environ | {"PYROMETER_ATTACH": asked, "XDG_RUNTIME_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        heard[asked] = "pyrometer attach" in done.stdout
    assert heard == {"": False, "0": False, "1": True}
