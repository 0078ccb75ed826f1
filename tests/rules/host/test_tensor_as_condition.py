"""PYR104: tensors that decide which branch is taken."""

from __future__ import annotations

from typing import Any

import pytest
import torch

CODE = "PYR104"


@pytest.mark.parametrize(
    "body",
    [
        "if loss > 3:  # <-\n    total = 1",
        "if torch.isnan(loss):  # <-\n    continue",
        "if not torch.isfinite(scores).all():  # <-\n    continue",
        "if step and (scores > 0).any():  # <-\n    total = 1",
        "while loss > 0.1:  # <-\n    loss = loss / 2",
        "assert (targets >= 0).all()  # <-",
        "ok = bool((scores > 0).all())  # <-",
        "total = 1 if loss < 2 else 0  # <-",
        "worst = max(loss, scores.sum())  # <-",
        "if torch.equal(scores, inputs):  # <-\n    total = 1",
        "if torch.allclose(scores, inputs):  # <-\n    total = 1",
        "seen = 3 in targets  # <-\nif 4 in targets:  # <-\n    total = 2",
        "chosen = [name for name in history if loss > 0]  # <-",
    ],
)
def test_finds_tensors_that_are_asked_for_their_truth(fires: Any, body: str) -> None:
    if "seen = 3 in targets" in body:
        body = body.replace("  # <-\nif", "\nif")  # outside of a condition the answer is a value of its own
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "if loss is None:\n    continue",
        "if inputs.shape[0] > 3:\n    continue",
        "if isinstance(loss, torch.Tensor):\n    total = 1",
        "if step % 100 == 0 and loss > 3:\n    total = 1",
        "if inputs.is_cuda and inputs.dim() == 2:\n    total = 1",
        "if history:\n    total = 1",
        "mask = (scores > 0) & (scores < 1)",
        "best = max(total, 3)",
        "if targets.dtype == torch.long:\n    total = 1",
        "if len(inputs) > 2:\n    total = 1",
        # training ends early, by the value of this step
        "if loss < args.goal:\n    break",
        # made on the host
        "if torch.rand([]) < 0.1:\n    continue",
        "chance = torch.rand(1)\nif chance < args.drop:\n    continue",
        # only at a few steps, or when something is not yet known
        "if step + 1 in stop_steps and (scores > 0).any():\n    total = 1",
        "if step not in cache:\n    assert (targets >= 0).all()",
    ],
)
def test_is_silent_about_questions_the_host_can_answer(silent: Any, body: str) -> None:
    silent(CODE, body)


def test_optional_arguments_are_asked_for_their_presence_only(lines: Any) -> None:
    text = """\
    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
            y = torch.relu(x)
            if mask is not None:
                y = y * mask
            return y
    """
    assert lines(CODE, text) == []


def test_a_flag_is_one_even_where_its_annotation_is_wrong(lines: Any) -> None:
    text = """\
    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x: torch.Tensor, output_attentions: torch.Tensor | None = None) -> torch.Tensor:
            y = torch.relu(x)
            if output_attentions:
                y = y * 2
            return y
    """
    assert lines(CODE, text) == []


def test_advice_fits_the_form_of_the_question(matches: Any, in_loop: Any) -> None:
    (worst,) = matches(CODE, in_loop("worst = max(loss, scores.sum())"))
    assert "torch.maximum" in worst.advice
    (check,) = matches(CODE, in_loop("assert (targets >= 0).all()"))
    assert "torch._assert_async" in check.advice


SOURCE = """\
import torch


def step(model, batch):
    loss = model(batch)
    if torch.isnan(loss):
        return None
    return loss
"""


def test_a_device_trace_and_the_source_name_the_condition(
    builder: Any, stalling: Any, evidence_of: Any, only: Any
) -> None:
    finding = only(CODE, evidence_of(stalling(builder, "aten::is_nonzero"), "train.py", SOURCE))
    assert finding.where.line == 6
    assert "`torch.isnan(loss)` in step (train.py:6)" in finding.message
    assert finding.severity == "warning"


def test_a_number_read_for_a_condition_is_still_a_condition(
    builder: Any, stalling: Any, evidence_of: Any, only: Any, findings: Any
) -> None:
    evidence = evidence_of(stalling(builder, "aten::item"), "train.py", SOURCE)
    assert only(CODE, evidence).where.line == 6
    assert findings("PYR101", evidence) == []


def test_choosing_on_the_device_gives_the_same_and_asks_nothing(ops_of: Any) -> None:
    losses = [torch.tensor(value) for value in (1.0, float("nan"), 2.0)]

    def on_host() -> float:
        total = torch.zeros(())
        for loss in losses:
            if torch.isnan(loss):
                continue
            total = total + loss
        return total.item()

    def on_device() -> float:
        total = torch.zeros(())
        for loss in losses:
            total = total + torch.where(torch.isnan(loss), 0.0, loss)
        return total.item()

    expected, before = ops_of(on_host)
    result, after = ops_of(on_device)
    assert expected == result
    assert before["_local_scalar_dense"] == 4
    assert after["_local_scalar_dense"] == 1


def test_the_maximum_of_two_tensors_needs_no_question(ops_of: Any) -> None:
    a, b = torch.tensor(1.0), torch.tensor(2.0)
    expected, before = ops_of(lambda: max(a, b))
    result, after = ops_of(lambda: torch.maximum(a, b))
    assert torch.equal(expected, result)
    assert before["_local_scalar_dense"] + before["is_nonzero"] > 0 == after["_local_scalar_dense"]


def test_an_assertion_on_the_device_still_fails() -> None:
    torch._assert_async(torch.tensor(1))
    with pytest.raises(RuntimeError):
        torch._assert_async(torch.tensor(0))
