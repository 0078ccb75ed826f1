"""Seeing every operator of a step: its place in the program, what it was given and what it gave."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from pyrometer.numerics.nonfinite import Made, StepTensors
from pyrometer.numerics.private.dispatch import DispatchMode, name_of, writes
from pyrometer.numerics.tensors import has_values, memory_key
from pyrometer.workload.whereabouts.following import Following
from pyrometer.workload.whereabouts.lines import CodePoint, Site, site_of
from pyrometer.workload.whereabouts.modules import ModuleStack

UNWRITTEN = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "empty_permuted"}
)
"""Operators whose results hold whatever was in memory."""


class Seen(NamedTuple):
    """One operator as it ran."""

    op: str
    arguments: Sequence[Any]
    leaves: Sequence[Any]
    results: Sequence[Any]
    module: str | None
    point: CodePoint | None
    phase: str

    @property
    def site(self) -> Site | None:
        """The user's line, where there is one."""
        return site_of(self.point) if self.point is not None else None

    @property
    def made(self) -> Made:
        """Its result, as ledgers and reports name it."""
        return Made(f"aten::{self.op}", "operator", None, self.module, self.point, self.phase)


Listener = Callable[[Seen], None]


class Operators(DispatchMode):
    """Notes the result of each operator among the tensors of the step, and tells listeners of it.

    What `torch.compile` made runs eagerly meanwhile: torch leaves compiled code alone under a dispatch mode.
    """

    def __init__(self, tensors: StepTensors, modules: ModuleStack, listeners: Sequence[Listener]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tensors = tensors
        self._following = Following(modules)
        self._listeners = listeners
        self.paused = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        leaves = () if self.paused else pytree.arg_tree_leaves(*args, **(kwargs or {}))
        parents = self._tensors.parents_of(leaves)  # before it writes in place
        result = func(*args, **(kwargs or {}))
        if not self.paused:
            results = (result,) if isinstance(result, torch.Tensor) else pytree.tree_leaves(result)
            self._saw(func, args, leaves, results, parents)
        return result

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """Take no notice of what is computed meanwhile: by the watcher itself, or by an optimizer."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def new_step(self) -> None:
        """Forget the operators of the last step."""
        self._following.forget()

    def _saw(
        self, func: Any, args: Any, leaves: Sequence[Any], results: Sequence[Any], parents: Sequence[int]
    ) -> None:
        name, in_place = name_of(func), writes(func)
        here = self._following.here()
        phase = "backward" if here.backward else "forward"
        label = f"aten::{name} of {here.node}" if here.backward else f"aten::{name}"
        given = {memory_key(leaf) for leaf in leaves if has_values(leaf)}
        for result in results:
            if not has_values(result) or (memory_key(result) in given and not in_place):
                continue
            made = Made(label, "operator", None, here.module, here.point, phase, parents)
            self._tensors.note(result, made, written=name not in UNWRITTEN)
        seen = Seen(name, args, leaves, results, here.module, here.point, phase)
        for listener in self._listeners:
            listener(seen)
