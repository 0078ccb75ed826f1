"""Which operation lets padding into the result: the first whose inputs still agree with the unpadded run but not its output.

Both runs are watched call by call through `torch.overrides.TorchFunctionMode`, and each output of the padded run is
compared, cut to the shape that it has in the other, with its counterpart. Where a result was reshaped across the padding
nothing can be said of it, nor of what is computed from it unless that agrees.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from pyrometer.bench.matrix.numerics import numeric_error

MAX_CALLS = 4000
MAX_BYTES = 2**31
"""Beyond so many calls, or bytes of copies, watching stops; what was seen until then still counts."""

ADVICE = (
    (("conv", "unfold", "pool", "interpolate"), "reads over the edge into the padding"),
    (("batch_norm",), "takes its statistics over the padding too"),
    (("instance_norm", "group_norm"), "takes its statistics over the padding too"),
    (("softmax", "attention"), "attends to the padding: it needs a mask"),
    (("lstm", "gru", "rnn"), "runs on into the padding: its last state is that of padding"),
    (("mean", "sum", "max", "min", "prod", "norm", "std", "var", "logsumexp", "any", "all", "median"),
     "reduces over the padding: it needs a mask"),
    (("flip", "roll", "cumsum", "sort", "argsort", "topk"), "moves padding to where real values were"),
    (("getitem", "select", "index", "gather"), "picks from the end, which is padding now"),
)  # fmt: skip
MERGES = "merges the padded dimension with another, so that padding comes to lie between real values"
_VIEWS = {"view", "reshape", "flatten", "unflatten", "view_as", "reshape_as", "unfold", "repeat_interleave"}


@dataclass(frozen=True)
class Culprit:
    """An operation that lets padding into the result."""

    operation: str
    module: str
    """Path and class of the module that it belongs to; empty outside of any."""
    reason: str

    @property
    def text(self) -> str:
        """In words."""
        where = f"{self.module}: " if self.module else ""
        return f"{where}{self.operation} {self.reason}"


@dataclass
class _Seen:
    """One call: its name, module, the calls that its inputs come from, and its output."""

    operation: str
    module: str
    sources: list[int]
    output: Any


@dataclass
class Watch(TorchFunctionMode):
    """The calls of one run, with copies of their outputs."""

    calls: list[_Seen] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    num_bytes: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self._made: dict[int, int] = {}
        self._alive: list[Any] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        if len(self.calls) < MAX_CALLS and self.num_bytes < MAX_BYTES:
            self._note(func, (args, kwargs), output)
        return output

    def _note(self, func: Callable[..., Any], inputs: Any, output: Any) -> None:
        tensors = [leaf for leaf in pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor)]
        if not tensors:
            return
        sources = [
            self._made[id(leaf)]
            for leaf in pytree.tree_leaves(inputs)
            if isinstance(leaf, torch.Tensor) and id(leaf) in self._made
        ]
        name = getattr(func, "__name__", str(func)).strip("_")
        module = self.modules[-1] if self.modules else ""
        copies = [tensor.detach().clone() for tensor in tensors]
        self.num_bytes += sum(copy.numel() * copy.element_size() for copy in copies)
        for tensor in tensors:
            self._made[id(tensor)] = len(self.calls)
        self._alive += tensors  # an id is only good as long as its object lives
        self.calls.append(_Seen(name, module, sources, copies))


def find_culprit(plain: Watch, padded: Watch, tolerance: float) -> Culprit | None:
    """The operation that lets padding in; `None` when it cannot be told."""
    states: list[str] = []
    merging: Culprit | None = None
    for ours, theirs in zip(padded.calls, plain.calls, strict=False):
        if ours.operation != theirs.operation:
            break  # the sizes decide what is computed; from here on nothing corresponds
        before = {states[source] for source in ours.sources}
        state = _state(ours, theirs, tolerance)
        if state == "differs" and not before & {"differs", "unknown"}:
            if ours.operation not in _VIEWS:
                return Culprit(ours.operation, ours.module, _reason(ours.operation))
            merging = merging or Culprit(ours.operation, ours.module, MERGES)
        states.append("unknown" if state == "differs" and merging is not None else state)
    return merging


@contextlib.contextmanager
def watching(model: Callable[..., Any], watch: Watch) -> Iterator[None]:
    """Watch what runs meanwhile, with the names of the model's modules."""
    with _named(model, watch.modules), watch:
        yield


@contextlib.contextmanager
def _named(model: Callable[..., Any], stack: list[str]) -> Iterator[None]:
    """Keep the path of the module that runs on a stack."""
    with contextlib.ExitStack() as hooks:
        for name, module in model.named_modules() if isinstance(model, nn.Module) else ():
            label = f"{name or 'the model'} ({type(module).__name__})"
            hooks.enter_context(module.register_forward_pre_hook(lambda *_, label=label: stack.append(label)))
            hooks.enter_context(
                module.register_forward_hook(lambda *_: stack.pop() and None, always_call=True)
            )
        yield


def _state(ours: _Seen, theirs: _Seen, tolerance: float) -> str:
    cut = []
    for actual, expected in zip(ours.output, theirs.output, strict=False):
        if actual.dim() != expected.dim():
            return "unknown"
        for dim, size in enumerate(expected.shape):
            if actual.shape[dim] < size:
                return "unknown"
            actual = actual.narrow(dim, 0, size)  # noqa: PLW2901 - cut dimension by dimension
        cut.append(actual)
    return "agrees" if numeric_error(cut, theirs.output, tolerance).within_tolerance else "differs"


def _reason(operation: str) -> str:
    lowered = operation.lower()
    return next(
        (why for words, why in ADVICE if any(word in lowered for word in words)),
        "gives other values where there is padding",
    )
