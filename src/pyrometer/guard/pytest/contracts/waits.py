"""`no_sync_in_step`: nothing in a step makes the host wait for a device.

Without a device, what would wait for one is found all the same: a value that is read, a result whose size depends on values,
a copy to the host. What lies on the host with a device, too, does not count: what optimizers and loaders read.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from pyrometer.guard.pytest.program import Operators, opened
from pyrometer.guard.pytest.result import ContractResult
from pyrometer.place import place_text
from pyrometer.quantity import counted
from pyrometer.workload.failure import user_code
from pyrometer.workload.whereabouts.lines import CodePoint, site_of
from pyrometer.workload.whereabouts.nearest import nearest_point
from pyrometer.workload.workload import Workload

STEPS = 4
WARM_STEPS = 2
MOST_NAMED = 5

READS = frozenset({"item", "_local_scalar_dense", "is_nonzero", "equal", "allclose"})
"""Operators that read a value on the host; where no gradient is recorded, torch shows the outer one of two."""

SIZED = frozenset({
    "nonzero", "nonzero_numpy", "argwhere", "where", "masked_select", "_unique2", "unique_dim", "unique_consecutive",
    "bincount", "repeat_interleave.Tensor", "repeat_interleave.self_Tensor",
})  # fmt: skip
"""Operators whose result is as large as the values say; `where` with a condition alone."""

MASKED = frozenset({"index", "index_put_", "_index_put_impl_", "index_put"})
"""Operators that wait where an index is a mask."""

TO_HOST = {
    torch.Tensor.cpu: "cpu()",
    torch.Tensor.numpy: "numpy()",
    torch.Tensor.__array__: "numpy()",
    torch.Tensor.tolist: "tolist()",
    torch.Tensor.__repr__: "printing",
}
"""Methods that copy to the host, of which no operator tells where the tensor lies there already."""

ON_HOST = ("/torch/optim/", "/torch/utils/data/")
"""Code of torch whose tensors lie on the host with a device, too."""


class Wait(NamedTuple):
    """A line and what it does there."""

    point: CodePoint | None
    what: str


def keeps_no_sync(work: Workload) -> ContractResult:
    """Watch every operator of some steps.

    Raises:
        UserProgramError: a step raised.
    """
    with opened(work) as session:
        seen = _Waits(session.device)
        for number in range(WARM_STEPS + STEPS):
            if number == WARM_STEPS:
                seen.found.clear()
            with user_code("the step"), seen, _Copies(seen):
                session.step(session.prepare())
    waits = seen.found.most_common()
    per_step = sum(number for _, number in waits) / STEPS
    return ContractResult(
        contract="no_sync_in_step",
        workload=work.name,
        outcome="broken" if waits else "kept",
        promised="no step makes the host wait for a device",
        measured=f"{per_step:g} {'wait' if per_step == 1 else 'waits'} per step, of {counted(STEPS, 'step')} on {session.device.type}",
        limit=0.0,
        value=per_step,
        unit="waits per step",
        where=[_text(wait, number) for wait, number in waits[:MOST_NAMED]],
        advice="keep the tensor and read it every 100 steps, after the loop, or with non_blocking=True"
        if waits
        else None,
    )


class _Waits(Operators):
    """Notes what waits, and the line that asked for it."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.found: Counter[Wait] = Counter()
        self._device = device.type

    def saw(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """An operator has run."""
        what = self._what(str(func.name()).rpartition("::")[2], args, kwargs, result)
        if what is not None:
            self.note(what)

    def note(self, what: str) -> None:
        """Something waited; on the host alone, only where it would with a device."""
        if self._device != "cpu" or not _stays_on_host(sys._getframe(1)):  # noqa: SLF001 - the documented way
            self.found[Wait(nearest_point(), what)] += 1

    def concerns(self, tensor: Any) -> bool:
        """Whether a tensor lies where the work is done."""
        return isinstance(tensor, torch.Tensor) and tensor.device.type == self._device

    def _what(self, name: str, args: Any, kwargs: Any, result: Any) -> str | None:
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        plain = name.partition(".")[0]
        if plain in READS and any(map(self.concerns, tensors)):
            return "reads a value"
        if (name in SIZED or name.removesuffix(".dim") in SIZED) and any(map(self.concerns, tensors)):
            return f"{plain} reads how large its result is"
        if plain in MASKED and any(index.dtype in {torch.bool, torch.uint8} for index in _indices(args)):
            return "an index by a mask reads how large its result is"
        if plain in {"to", "_to_copy", "copy_"} and not _is_asynchronous(plain, args, kwargs):
            places = {one.device.type for one in [*tensors, result] if isinstance(one, torch.Tensor)}
            return "copies between host and device" if len(places) > 1 else None
        return None


class _Copies(TorchFunctionMode):
    """Sees methods that copy to the host where the tensor lies there already, so that no operator runs."""

    def __init__(self, waits: _Waits) -> None:
        super().__init__()
        self._waits = waits

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = TO_HOST.get(func)
        is_seen = func is torch.Tensor.cpu and args[0].device.type != "cpu"
        if name is not None and not is_seen and self._waits.concerns(args[0]):
            self._waits.note(f"{name} copies to the host")
        return func(*args, **(kwargs or {}))


def _is_asynchronous(name: str, args: Any, kwargs: Any) -> bool:
    return bool(kwargs.get("non_blocking") or (name == "copy_" and args[2:] and args[2]))


def _indices(args: Any) -> list[torch.Tensor]:
    given = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
    return [index for index in given if isinstance(index, torch.Tensor)]


def _stays_on_host(frame: FrameType | None) -> bool:
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in ON_HOST):
            return True
        frame = frame.f_back
    return False


def _text(wait: Wait, number: int) -> str:
    site = None if wait.point is None else site_of(wait.point)
    place = "a line that is not known" if site is None else place_text(site.file, site.line)
    source = f": {site.source}" if site is not None and site.source else ""
    return f"{place}{source} ({wait.what}, {number / STEPS:g} per step)"
