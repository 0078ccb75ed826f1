"""PYR117: tensors that are made on the host and moved at once."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch

from pyrometer.source.edit import apply_edits

CODE = "PYR117"


@pytest.mark.parametrize(
    "body",
    [
        "mask = torch.ones(4, 4).to(device)  # <-",
        "mask = torch.zeros(4).cuda()  # <-",
        "mask = torch.zeros(4).to(inputs.device)  # <-",
        'mask = torch.eye(4).to("cuda", non_blocking=True)  # <-',
        "mask = torch.full((2, 2), 7).to(device=device)  # <-",
        "noise = torch.randn(4, 4).to(device)  # <-",
        "positions = torch.arange(inputs.shape[1]).to(device)  # <-",
    ],
)
def test_finds_factories_whose_result_is_moved(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "mask = torch.ones(4, 4, device=device)",
        "mask = torch.ones(4, 4).to(torch.float16)",
        "mask = torch.ones(4, 4).to(inputs)",
        'mask = torch.ones(4, 4).to("cpu")',
        "weight = torch.zeros(4, requires_grad=True).to(device)",
        "mask = torch.zeros(4, **options).to(device)",
        "mask = inputs.to(device)",
        "import torch\n\nmask = torch.zeros(4).to('cuda')",
        "if step == 0:\n    mask = torch.zeros(4).to(device)",
    ],
)
def test_is_silent_where_nothing_is_moved_or_more_is_changed(silent: Any, body: str) -> None:
    silent(CODE, body)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.ones(4, 4).to(device)", "torch.ones(4, 4, device=device)"),
        ("torch.zeros(4).cuda()", 'torch.zeros(4, device="cuda")'),
        ("torch.full((2, 2), 7,).to(device=device)", "torch.full((2, 2), 7, device=device)"),
        ("torch.zeros(*inputs.shape).to(inputs.device)", "torch.zeros(*inputs.shape, device=inputs.device)"),
        ("torch.arange(inputs.size(1)).to(device)", "torch.arange(inputs.size(1), device=device)"),
        (
            "torch.zeros(\n    4,\n).to(device)",
            "torch.zeros(\n            4, device=device)",
        ),
    ],
)
def test_the_fix_puts_the_device_into_the_call(matches: Any, in_loop: Any, before: str, after: str) -> None:
    text = in_loop(f"mask = {before}")
    (match,) = matches(CODE, text)
    assert match.fix.fix_class == "exact"
    fixed = apply_edits(text, match.fix.edits)
    ast.parse(fixed)
    assert after in fixed
    assert matches(CODE, fixed) == []


@pytest.mark.parametrize(
    "call",
    [
        "torch.randn(4).to(device)",  # other numbers
        "torch.arange(0, 1, 0.1).to(device)",  # may round otherwise
        "torch.linspace(0, 1, 5).to(device)",
        "torch.zeros(\n    4,  # rows\n).to(device)",  # a comment in the way
    ],
)
def test_no_fix_where_it_is_not_right_by_construction(matches: Any, in_loop: Any, call: str) -> None:
    (match,) = matches(CODE, in_loop(f"mask = {call}"))
    assert match.fix is None
    assert "device=device" in match.advice


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.ones(3, 4).to(d)", "torch.ones(3, 4, device=d)"),
        ("torch.full((2,), 7).to(d)", "torch.full((2,), 7, device=d)"),
        ("torch.eye(3, dtype=torch.float64).to(d)", "torch.eye(3, dtype=torch.float64, device=d)"),
        ("torch.arange(5).to(d)", "torch.arange(5, device=d)"),
    ],
)
def test_both_forms_give_the_same_tensor_and_one_of_them_moves_nothing(
    ops_of: Any, before: str, after: str
) -> None:
    device = torch.device("meta")  # another device than the host's, on any machine
    for form, copies in ((before, 1), (after, 0)):
        result, counts = ops_of(lambda form=form: eval(form, {"torch": torch, "d": device}))
        assert result.device == device
        assert counts["_to_copy"] == copies
    names = {"torch": torch, "d": torch.device("cpu")}
    assert torch.equal(eval(before, names), eval(after, names))
