"""Items with checks of their own: each with a program that has the fault, and one that has not."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from msgspec.structs import replace
from torch import nn

import pyrometer as pm
from pyrometer.rules.audit.audit import audit
from pyrometer.rules.audit.record import AuditItem
from pyrometer.rules.case import Case
from pyrometer.source.module import Module
from pyrometer.workload.program.describe import describe


def judged(code: str, case: Case) -> AuditItem:
    return next(item for group in audit(case, []).groups for item in group.items if item.code == code)


def model_of(*layers: nn.Module, features: int = 8) -> Case:
    work = pm.Inference(nn.Sequential(*layers), (torch.randn(2, features),))
    return Case(target="t", program=describe(work))


def zeroed() -> nn.Linear:
    layer = nn.Linear(8, 8)
    nn.init.zeros_(layer.weight)
    return layer


def many(*kinds: Callable[[], nn.Module]) -> list[nn.Module]:
    return [make() for make in kinds]


@pytest.mark.parametrize(
    ("code", "bad", "good"),
    [
        (
            "A101",
            [part for _ in range(4) for part in many(lambda: nn.Linear(8, 8), nn.Sigmoid)],
            [part for _ in range(4) for part in many(lambda: nn.Linear(8, 8), nn.ReLU)],
        ),
        ("A102", [nn.Linear(8, 8), nn.Linear(8, 8)], [nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)]),
        (
            "A103",
            [nn.Linear(8, 2), nn.Linear(2, 2000), nn.Linear(2000, 2), nn.Linear(2, 2), nn.Linear(2, 90_000)],
            [nn.Linear(8, 8) for _ in range(4)],
        ),
        ("A104", [zeroed()], [nn.Linear(8, 8)]),
    ],
)
def test_the_model_itself(code: str, bad: list[nn.Module], good: list[nn.Module]) -> None:
    broken, whole = judged(code, model_of(*bad)), judged(code, model_of(*good))
    assert (broken.status, whole.status) == ("fail", "pass"), (broken.reason, whole.reason)
    assert broken.advice


def test_a_layer_in_training_mode_and_a_dropout_that_is_on_fail_inference(served: Case) -> None:
    program = served.program
    assert program is not None
    assert judged("A801", served).status == "pass"
    random = msgspec.structs.replace(program, active_dropouts=2)
    assert judged("A801", replace(served, program=random)).status == "fail"
    layer = msgspec.structs.replace(program.modules[0], training=True)
    assert (
        judged("A801", replace(served, program=msgspec.structs.replace(program, modules=[layer]))).status
        == "fail"
    )
    unseen = msgspec.structs.replace(program, active_dropouts=None)
    assert judged("A801", replace(served, program=unseen)).status == "unknown"


def test_that_whoever_measures_switches_gradients_off_proves_nothing(served: Case) -> None:
    assert judged("A201", served).evidence["switched_off_at"]
    silent = replace(served, modules=(Module.parse("app.py", "import torch\n"),))
    assert judged("A201", silent).status == "unknown"


@pytest.mark.parametrize(("unknown", "status"), [(0, "pass"), (40, "pass"), (60, "unknown")])
def test_what_is_known_of_the_peak(unknown: int, status: str) -> None:
    memory: Any = SimpleNamespace(peak_bytes=1000, ledger_bytes={"unknown": unknown}, leak=None, levels=None)
    assert judged("A204", Case(target="t", memory=memory)).status == status


@pytest.mark.parametrize(
    ("verdict", "status"),
    [("stable", "pass"), ("allocator warm-up", "pass"), ("leak", "unknown"), ("unknown", "unknown")],
)
def test_only_a_watched_level_proves_that_nothing_grows(verdict: str, status: str) -> None:
    leak = SimpleNamespace(verdict=verdict, num_steps=40)
    memory: Any = SimpleNamespace(peak_bytes=1000, ledger_bytes={}, leak=leak, levels=None)
    assert judged("A203", Case(target="t", memory=memory)).status == status


def service(text: str) -> Case:
    source = "from fastapi import FastAPI\n" + textwrap.dedent(text)
    return Case(target="t", modules=(Module.parse("app.py", source),))


@pytest.mark.parametrize(
    ("code", "text", "without"),
    [
        ("A803", "from prometheus_client import Counter", "fail"),
        ("A804", "import sentry_sdk", "unknown"),
        (
            "A805",
            "def f(x):\n    try:\n        return g(x)\n    except TimeoutError:\n        return 0",
            "unknown",
        ),
        ("A806", "import structlog", "fail"),
        ("A807", "import mlflow.pytorch", "unknown"),
    ],
)
def test_what_the_source_of_a_service_shows(code: str, text: str, without: str) -> None:
    assert judged(code, service(text)).status == "pass"
    assert judged(code, service("import statistics")).status == without
    assert judged(code, Case(target="t", modules=(Module.parse("a.py", text),))).status == "not applicable"


def test_handlers_that_do_not_answer_or_catch_something_else_are_no_fallback() -> None:
    for handler in ("except TimeoutError:\n        raise", "except ValueError:\n        return 0"):
        text = f"def f(x):\n    try:\n        return g(x)\n    {handler}"
        assert judged("A805", service(text)).status == "unknown"


@pytest.mark.parametrize("code", ["A501", "A502", "A503", "A505"])
def test_items_about_compiling_need_a_report(code: str) -> None:
    report: Any = SimpleNamespace(
        graphs=1, breaks=[], recompiles=[], evaluation=object(), error=SimpleNamespace(max_abs=1e-6)
    )
    assert judged(code, Case(target="t", compiled=report)).status == "pass"
    assert judged(code, Case(target="t")).status == "not applicable"


@pytest.mark.parametrize("code", ["A701", "A704"])
def test_items_about_ranks_need_the_traces_of_all(code: str) -> None:
    job: Any = SimpleNamespace(ranks=[0, 1])
    assert judged(code, Case(target="t", job=job)).status == "pass"
    assert judged(code, Case(target="t")).status == "not applicable"
