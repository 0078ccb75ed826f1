"""Recording every operator of a script's first steps, such that the script notices nothing.

The recorder is entered and left where the script does not expect it: in the midst of its own blocks. It is only left while
nothing of the script's is on top of it, and what fails in it never reaches the script.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.memory.private.dispatch import storage_key, storages
from pyrometer.memory.private.stacks import in_transform, top_dispatch_mode, top_pack_hook
from pyrometer.memory.recording.allocation import Allocation, AllocationLog
from pyrometer.memory.recording.recorder import AllocationRecorder
from pyrometer.memory.scripts.phases import SETUP
from pyrometer.quantity import counted
from pyrometer.workload.whereabouts.modules import ModuleStack

MOST_EVENTS = 600_000
"""Allocations and frees that are recorded, in about 100 MB; a script without steps may go on for ever."""

MOST_FAILURES = 1000
"""After so many operators that could not be followed, it is not tried any longer."""

_COMPUTING = ("forward", "backward")


class Survivor(NamedTuple):
    """A storage, not held, and what is known of it."""

    storage: weakref.ref[torch.UntypedStorage]
    allocation: Allocation


class Recording:
    """The recorder, and a way in and out of it at any time.

    Attributes:
        device: whose memory is counted.
        survivors: what lived when it was left.
    """

    def __init__(self, device: torch.device) -> None:
        self._recorder = _Shielded(device)
        self._saved = SavedTensors(self._recorder.pack)
        self._stack = contextlib.ExitStack()
        self._mode: Any = None
        self.device = device
        self.survivors: list[Survivor] = []

    @property
    def log(self) -> AllocationLog:
        """What was recorded."""
        return self._recorder.log

    @property
    def trouble(self) -> str | None:
        """What could not be recorded."""
        return self._recorder.trouble

    @property
    def on_top(self) -> bool:
        """Whether it can be left: nothing that the script has entered since is still open."""
        return top_dispatch_mode() is self._mode and self._saved.on_top and not in_transform()

    def enter(self, before: Recording | None = None) -> None:
        """Record from here on; of what one before has seen being made, and what still lives, the lines are known."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._recorder)
            self._mode = top_dispatch_mode()
            stack.enter_context(self._saved)
            self._stack = stack.pop_all()
        if before is not None and before.device.type == self.device.type:
            self._recorder.take_over(before.survivors)
            self.end_phase(SETUP, 0)

    def leave(self) -> None:
        """Record no longer; where it is not on top, it is as good as left, and stays as an empty shell."""
        self.survivors = self.survivors or self._recorder.alive()
        if self.on_top:
            self._stack.close()
        else:
            self._recorder.stop()

    def end_phase(self, name: str, step: int) -> None:
        """What was allocated since the last phase ended belongs to this one."""
        self._recorder.end_phase(name, step=step)

    def fetch(self, fetching: bool) -> None:
        """A batch is being fetched from here on, or no longer; what it is taken from is the dataset."""
        self._recorder.fetching = fetching


class SavedTensors:
    """Has a function pack what autograd saves, and gives way to transforms of `torch.func`, which refuse that."""

    def __init__(self, pack: Callable[[torch.Tensor], Any]) -> None:
        self._pack = pack
        self._hooks: contextlib.AbstractContextManager[None] | None = None
        self._plain = torch.autograd.graph.disable_saved_tensors_hooks

    @property
    def on_top(self) -> bool:
        """Whether ours are the innermost hooks."""
        return self._hooks is not None and top_pack_hook() == self._pack

    def __enter__(self) -> Self:
        self._plain = torch.autograd.graph.disable_saved_tensors_hooks
        self._push()
        torch.autograd.graph.disable_saved_tensors_hooks = self._giving_way  # type: ignore[assignment]
        return self

    def __exit__(self, *exc: object) -> None:
        torch.autograd.graph.disable_saved_tensors_hooks = self._plain
        self._pop()

    def _push(self) -> None:
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack)
        self._hooks.__enter__()

    def _pop(self) -> None:
        if self._hooks is not None:
            self._hooks.__exit__(None, None, None)
            self._hooks = None

    @contextlib.contextmanager
    def _giving_way(self, message: str) -> Iterator[None]:
        ours = self.on_top
        if ours:
            self._pop()
        try:
            with self._plain(message):
                yield
        finally:
            if ours:
                self._push()


class _Shielded(AllocationRecorder):
    """A recorder that passes over what it cannot follow, and stops when it grows too large."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, saved=False)
        self.trouble: str | None = None
        self.fetching = False
        self._stopped = False
        self._failures = 0

    def _module_stack(self) -> ModuleStack:
        return _ModulesOfThread(self._found, self._entered)

    def stop(self) -> None:
        """See nothing from now on."""
        self._stopped = True

    def alive(self) -> list[Survivor]:
        """What lives."""
        found = [(reference(), self.log.allocations[index]) for index, reference in self._references.items()]
        return [Survivor(weakref.ref(storage), one) for storage, one in found if storage is not None]

    def take_over(self, survivors: Iterable[Survivor]) -> None:
        """Know what lives still."""
        for reference, allocation in survivors:
            storage = reference()
            if storage is not None and storage_key(storage) not in self._known:
                self._add(storage, getattr(torch, allocation.dtype), allocation.origin, preexisting=True)

    def saw(self, results: Any, arguments: Any, operator: Any) -> None:
        """An operator ran."""
        if self._stopped:
            return
        with self._shield():
            if self.fetching:
                self._taken_from(arguments)
            super().saw(results, arguments, operator)
        if len(self.log.events) > MOST_EVENTS:
            self.trouble = f"only the first {MOST_EVENTS:,} allocations and frees were recorded"
            self.stop()

    def _taken_from(self, arguments: Iterable[Any]) -> None:
        for storage, _ in self._storages(arguments):
            index = self._known.get(storage_key(storage))
            if index is not None and self.log.allocations[index].phase == SETUP:
                self.log.allocations[index].category = self.log.allocations[index].category or "inputs"

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Autograd saves a tensor."""
        if not self._stopped:
            with self._shield():
                super()._pack(tensor)
        return tensor.detach()

    def _accumulated(self, tensor: torch.Tensor) -> None:
        if not self._stopped:
            with self._shield():
                super()._accumulated(tensor)

    def _optimizer_steps(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        if not self._stopped:
            with self._shield():
                super()._optimizer_steps(optimizer, _args, _kwargs)

    def _found(self, model: nn.Module) -> None:
        if not self._stopped and not in_transform():
            with self._shield():
                self.know_model(model)

    def _entered(self, arguments: Sequence[Any]) -> None:
        """A model was called: of what it was given, what was not computed by another is the batch."""
        if self._stopped or in_transform():
            return
        with self._shield():
            tensors = [leaf for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
            self.register([tensor for tensor in tensors if not self._is_computed(tensor)], "inputs")

    def _is_computed(self, tensor: torch.Tensor) -> bool:
        known = [self._known.get(storage_key(storage)) for storage, _ in storages(tensor)]
        return any(index is not None and self.log.allocations[index].phase in _COMPUTING for index in known)

    @contextlib.contextmanager
    def _shield(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the script comes first; the profile says what happened
            self._failures += 1
            self.trouble = (
                f"{counted(self._failures, 'event')} could not be followed: {type(error).__name__}: {error}"
            )
            if self._failures >= MOST_FAILURES:
                self.stop()


class _ModulesOfThread(ModuleStack):
    """Modules that run in the thread of the recording; those of others are left alone.

    Args:
        found: told of every model that was not known when its forward began.
        entered: told of what the outermost module was given.
    """

    def __init__(self, found: Callable[[nn.Module], None], entered: Callable[[Sequence[Any]], None]) -> None:
        super().__init__(found)
        self._entered = entered
        self._thread = threading.get_ident()

    def _begin(self, module: nn.Module, args: Any) -> None:
        if threading.get_ident() == self._thread:
            outermost = not self._running
            super()._begin(module, args)
            if outermost:
                self._entered(args)

    def _end(self, module: nn.Module, _args: Any, _output: Any) -> None:
        if threading.get_ident() == self._thread:
            super()._end(module, _args, _output)


def _unpack(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
