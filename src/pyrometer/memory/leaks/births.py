"""Births and deaths of storages while a program runs, as light as a dispatch mode allows.

Unlike the recorder of the ledger, nothing is told apart but where and in which step a storage was made; no hooks are set, no
modules followed, nothing is kept alive, and what dies within its step is forgotten. Storages of all devices are followed.

What operators do not show in this thread (other threads, numpy arrays, batches of loader processes) is found by `scan`, which
asks the garbage collector for all tensors: such a storage counts as born in the step of the scan that finds it first.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from pyrometer.memory.leaks.cohorts import Birth
from pyrometer.memory.private.autograd_nodes import as_is
from pyrometer.memory.private.dispatch import DispatchMode, storage_key, storages
from pyrometer.quantity import Bytes
from pyrometer.workload.whereabouts.lines import CodePoint
from pyrometer.workload.whereabouts.nearest import nearest_point


class MadeAt(NamedTuple):
    """The line and the operator that made a storage."""

    point: CodePoint | None
    operator: str


class MadeUnseen(NamedTuple):
    """What is known of a storage that no operator of this thread made: a pseudo-site for those that look alike."""

    dtype: str
    nbytes: Bytes


class Storage:
    """One storage; holds it weakly.

    Attributes:
        step: in which it was made.
        site: where.
        nbytes: its size.
        died: the step in which it died.
    """

    __slots__ = ("died", "nbytes", "reference", "site", "step")

    def __init__(self, step: int, site: MadeAt | MadeUnseen, nbytes: Bytes) -> None:
        self.step = step
        self.site = site
        self.nbytes = nbytes
        self.died: int | None = None
        self.reference: _Reference | None = None

    @property
    def birth(self) -> Birth:
        """As the rules take it."""
        return Birth(self.step, self.site, self.nbytes, self.died)

    def get(self) -> torch.UntypedStorage | None:
        """The storage itself, while it lives."""
        return None if self.reference is None else self.reference()


class _Reference(weakref.ref):  # type: ignore[type-arg]
    """A weak reference that knows what it was to."""

    __slots__ = ("key", "storage")
    key: int
    storage: Storage


class BirthRecorder:
    """Follows storages from birth to death, step by step.

    Attributes:
        step: the step that is running.
        grown: what outlived the step in which it was made, and was made while watching.
        live_bytes: of all storages that are known now.

    >>> recorder = BirthRecorder()
    >>> kept = []
    >>> for _ in range(3):
    ...     with recorder.recording():
    ...         kept.append(torch.ones(256) + 1)
    ...     recorder.end_step()
    >>> [(storage.step, storage.nbytes, storage.died) for storage in recorder.grown]
    [(0, 1024, None), (1, 1024, None), (2, 1024, None)]
    """

    def __init__(self) -> None:
        self.step = 0
        self.grown: list[Storage] = []
        self.live_bytes = 0
        self._fresh: list[Storage] = []
        self._known: dict[int, _Reference] = {}

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Operators of this thread are seen inside."""
        with _Operators(self):
            yield

    def saw(self, result: torch.Tensor, arguments: Any, operator: Any) -> None:
        """An operator returned a tensor: if its storage is new, it was made here."""
        for storage, _ in storages(result):
            known = self._known.get(storage_key(storage))
            if known is not None and known.storage.nbytes == storage.nbytes():
                continue
            # A view of what nobody has seen being made is no birth; a tensor that is given a new storage is.
            if known is None and not str(operator).startswith("aten.set_") and _is_given(storage, arguments):
                continue
            if known is not None:
                self._died(known)  # it was resized
            if storage.device.type != "meta":
                self._add(storage, MadeAt(nearest_point(), str(operator)), self._fresh)

    def scan(self, tensors: Iterable[torch.Tensor], *, first: bool = False) -> None:
        """Find storages that no operator showed, among all `live_tensors()`; those of a first scan were there before."""
        addresses: set[int] = set()
        with as_is():
            for tensor in tensors:
                for storage, dtype in storages(tensor):
                    if storage.device.type == "meta":
                        continue
                    address = storage.data_ptr()
                    # Several storages over one numpy array or file share its memory; it counts once.
                    is_shared = address != 0 and address in addresses
                    addresses.add(address)
                    if storage_key(storage) not in self._known and not is_shared:
                        site = MadeUnseen(str(dtype).removeprefix("torch."), storage.nbytes())
                        self._add(storage, site, [] if first else self._fresh)

    def end_step(self) -> None:
        """The step is over."""
        self.grown += [storage for storage in self._fresh if storage.died is None]
        self._fresh.clear()
        self.step += 1

    def forget_dead(self) -> None:
        """Let go of the records of what has died."""
        self.grown = [storage for storage in self.grown if storage.died is None]

    def close(self) -> None:
        """Follow nothing any longer."""
        self._known.clear()
        self.grown, self._fresh = [], []

    def _add(self, storage: torch.UntypedStorage, site: MadeAt | MadeUnseen, born: list[Storage]) -> None:
        made = Storage(self.step, site, storage.nbytes())
        reference = _Reference(storage, self._died)
        reference.key, reference.storage = storage_key(storage), made
        made.reference = reference
        self._known[reference.key] = reference
        self.live_bytes += made.nbytes
        born.append(made)

    def _died(self, reference: Any) -> None:
        if reference.storage.died is not None:
            return
        reference.storage.died, reference.storage.reference = self.step, None
        self.live_bytes -= reference.storage.nbytes
        key = reference.key
        if self._known.get(key) is reference:  # keys are used again
            del self._known[key]


class _Operators(DispatchMode):
    """Shows results of operators to the recorder."""

    def __init__(self, recorder: BirthRecorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in (result,) if isinstance(result, torch.Tensor) else pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._recorder.saw(leaf, (args, kwargs), func)
        return result


def live_tensors() -> list[torch.Tensor]:
    """All tensors that Python knows of, also those that only an autograd graph holds."""
    everything = gc.get_objects()
    kinds = {kind for kind in set(map(type, everything)) if issubclass(kind, torch.Tensor)}
    return [one for one in everything if type(one) in kinds]


def _is_given(storage: torch.UntypedStorage, arguments: Any) -> bool:
    key = storage_key(storage)
    return any(
        storage_key(own) == key
        for leaf in pytree.tree_leaves(arguments)
        if isinstance(leaf, torch.Tensor)
        for own, _ in storages(leaf)
    )
