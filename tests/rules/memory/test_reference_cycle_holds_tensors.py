"""PYR216: cycles with tensors in them."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from pyrometer.memory.profile import LeakSite
from pyrometer.rules.case import Case

CODE = "PYR216"

FUNCTION = """\
import torch

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        y = 2 * x
        {line}
        return {result}

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad
"""


def function(line: str, result: str = "y") -> str:
    return FUNCTION.format(line=line, result=result)


@pytest.mark.parametrize(("line", "result"), [("ctx.y = y  # <-", "y"), ("ctx.out = y  # <-", "y, x.sum()")])
def test_it_finds_results_that_are_stored_on_ctx(fires, line, result):
    fires(CODE, function(line, result))


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("ctx.save_for_backward(y)", "y"),
        ("ctx.shape = y.shape", "y"),
        ("ctx.x = x", "y"),
        ("ctx.y = y", "y.clone()"),
        ("other.y = y", "y"),
    ],
)
def test_it_is_silent_about_arguments_shapes_and_what_is_not_returned(silent, line, result):
    silent(CODE, function(line, result))


HOOK = """\
import torch

def watch(x: torch.Tensor) -> None:
    y = x * 2
    {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "y.register_hook(lambda grad: grad * y)  # <-",
        "def hook(grad):\n        return grad * y\n    y.register_hook(hook)  # <-",
    ],
)
def test_it_finds_hooks_that_read_their_own_tensor(fires, line):
    fires(CODE, HOOK.format(line=line))


@pytest.mark.parametrize(
    "line",
    [
        "y.register_hook(lambda grad: grad * 2)",
        "y.register_hook(lambda grad: grad * x)",
        "y.register_hook(lambda y: y * 2)",
        "y.register_hook(print)",
    ],
)
def test_it_is_silent_about_hooks_that_read_others(silent, line):
    silent(CODE, HOOK.format(line=line))


def test_what_is_stored_on_ctx_waits_for_the_collector_and_what_is_saved_does_not():
    alive = {}
    gc.disable()
    try:
        for line in ("ctx.y = y", "ctx.save_for_backward(y)"):
            names: dict[str, type[torch.autograd.Function]] = {}
            exec(function(line), names)
            result = names["Double"].apply(torch.ones(3, requires_grad=True))
            context = weakref.ref(result.grad_fn)
            del result
            alive[line] = context() is not None
    finally:
        gc.enable()
        gc.collect()
    assert alive == {"ctx.y = y": True, "ctx.save_for_backward(y)": False}


def test_a_cycle_that_a_leak_report_names_is_told(findings, leaking):
    site = LeakSite(
        file="train.py",
        line=8,
        holder="FBackward.y, in the cycle FBackward.y → Tensor.grad_fn → FBackward",
        root="reference cycle",
        bytes_per_step=800.0,
        graph_state="alive",
        fix="# for example: ctx.save_for_backward(y)",
    )
    (finding,) = findings(CODE, Case(target="t", memory=leaking(site)))
    assert finding.advice.sketch == site.fix.removeprefix("# for example: ")
    assert finding.resource == "leak:train.py:8"
    assert findings("PYR202", Case(target="t", memory=leaking(site))) == []


def test_cycles_that_wait_for_the_collector_are_worth_a_remark(findings, leaking):
    note = "reference cycles: 3.91 KiB per step wait for Python's garbage collector; breaking the cycles (weakref) frees them at once"
    memory = leaking(verdict="stable", unbounded=False, notes=["something else", note])
    (finding,) = findings(CODE, Case(target="t", memory=memory))
    assert finding.severity == "info"
    assert "3.91 KiB" in finding.message
    assert finding.links == ["/memory/leak/notes/1"]


def test_other_leaks_and_stable_runs_are_silent(findings, leaking):
    site = LeakSite(
        file="a.py",
        line=1,
        holder="the_wheel.in the cycle[…]",
        root="module global",
        container="dict of 3",
        bytes_per_step=4.0,
    )
    assert findings(CODE, Case(target="t", memory=leaking(site))) == []
    assert findings(CODE, Case(target="t", memory=leaking(verdict="stable"))) == []
