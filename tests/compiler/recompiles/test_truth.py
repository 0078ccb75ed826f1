"""Every guard that is listed as failing does fail: torch's own guards are asked, one by one, with the new values."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from representative import every
from torch import Tensor, nn

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.private.cache_entries import entries_of
from pyrometer.compiler.recompiles.live import failing_guards
from pyrometer.compiler.recompiles.read import read_recompiles


class Config:
    """A plain object with attributes."""

    def __init__(self, width: int, name: str) -> None:
        self.width, self.name = width, name


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.dropout = nn.Linear(4, 4), nn.Dropout(0.25)
        self.repeats, self.scale, self.parts = 1, 1.5, [1.0, 2.0]

    def forward(self, x: Tensor, y: Any = None, k: Any = 2, config: Any = None, items: Any = ()) -> Tensor:
        x = self.dropout(self.linear(x)) * self.repeats * self.scale * k + sum(self.parts)
        if y is not None:
            x = x + y
        if config is not None and config.name == "wide":
            x = x * config.width
        for item in items.values() if isinstance(items, dict) else items:
            x = x + item
        return x * 2 if x.shape[0] > 3 else x


class Step(NamedTuple):
    """One call: its arguments, attributes to set before it, and a context around it."""

    arguments: dict[str, Any]
    attributes: dict[str, Any] = {}
    context: Callable[[], Any] = contextlib.nullcontext


@contextlib.contextmanager
def _double_by_default() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


X = torch.ones(2, 4)
CASES = {
    "sizes": [Step({"x": torch.ones(n, 4)}) for n in (2, 3, 5, 2)],
    "two sizes": [Step({"x": torch.ones(n, 4), "y": torch.ones(m, 4)}) for n, m in ((2, 2), (3, 3), (6, 1), (1, 1))],
    "strides": [Step({"x": X}), Step({"x": torch.ones(4, 2).t()}), Step({"x": torch.ones(4, 4)[::2]})],
    "gradients": [Step({"x": X}), Step({"x": torch.ones(2, 4, requires_grad=True)}), Step({"x": X}, {}, torch.no_grad)],
    "parameter": [Step({"x": X}), Step({"x": nn.Parameter(torch.ones(2, 4))})],
    "numbers": [Step({"x": X, "k": k}) for k in (2, 3, 1.5, True, 2.5)],
    "attributes": [Step({"x": X}), Step({"x": X}, {"repeats": 2, "scale": 2.5}), Step({"x": X, "k": 5}, {"repeats": 3})],
    "lists of a module": [Step({"x": X}), Step({"x": X}, {"parts": [1.0]}), Step({"x": X}, {"parts": (3.0, 4.0)})],
    "none and tensor": [Step({"x": X}), Step({"x": X, "y": torch.ones(4)}), Step({"x": X, "y": 3})],
    "object": [Step({"x": X, "config": c}) for c in (None, Config(2, "wide"), Config(3, "wide"), Config(3, "slim"))],
    "items": [Step({"x": X, "items": i}) for i in ([1.0], [1.0, 2.0], {"a": 1.0}, {"b": 1.0}, {"b": 1.0, "c": 2.0}, (1.0,))],
    "training": [Step({"x": X}), Step({"x": X}, {"training": False}), Step({"x": torch.ones(5, 4)}, {"training": True})],
    "states": [Step({"x": X}), Step({"x": X}, {}, torch.no_grad), Step({"x": X}, {}, lambda: torch.autocast("cpu")), Step({"x": X}, {}, _double_by_default)],
    "many": [Step({"x": X, "k": 2}), Step({"x": torch.ones(3, 4), "k": 4, "y": 2}, {"repeats": 7, "training": False}, torch.no_grad)],
}  # fmt: skip


def _set(module: Block, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        if name == "training":
            module.train(value)
        else:
            setattr(module, name, value)


def _locals(module: Block, arguments: dict[str, Any]) -> dict[str, Any]:
    bound = inspect.signature(Block.forward).bind(module, **arguments)
    bound.apply_defaults()
    return dict(bound.arguments)


@pytest.mark.parametrize("name", every(2, CASES))
def test_listed_guards_fail_and_no_failing_guard_is_missing(name: str) -> None:
    """Exactly the guards that fail when asked alone are listed, but for those that torch's log cannot decide."""
    module = Block()
    compiled = torch.compile(module, backend="eager")
    truths: dict[int, dict[str, set[str]]] = {}
    with collect() as collector:
        for step in CASES[name]:
            _set(module, step.attributes)
            with step.context():
                f_locals = _locals(module, step.arguments)
                entries = entries_of(Block.forward.__code__)
                truths[len(entries)] = {e.compile_id: set(failing_guards(e, f_locals)) for e in entries}
                compiled(**step.arguments)
    recompiles = read_recompiles(collector.log())
    assert recompiles
    for recompile in recompiles:
        truth = truths[int(recompile.compile_id.rpartition("/")[2])]
        for cause in recompile.causes:
            listed, failing = (_comparable(texts) for texts in (cause.all_failing, truth[cause.entry]))
            assert cause.guard == cause.all_failing[0]
            assert listed <= failing, f"{recompile.compile_id} against {cause.entry}: listed, but holds"
            missing = {text for text in failing - listed if not _undecidable(text)}
            assert not missing, f"{recompile.compile_id} against {cause.entry}: fails, but is not listed"


def _comparable(texts: Any) -> set[str]:
    """Without the key set of tensors under autocast: asked alone, a guard does not word it."""
    return {text for text in texts if "dispatch key set" not in text and not text.startswith("check_tensor")}


def _undecidable(text: str) -> bool:
    """What the guards of the new compilation do not speak of: it never came to look there."""
    return "_dynamo_" in text
