"""Records the operators of a few steps, with the values that they read and write."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils import _pytree as pytree

from pyrometer.dataflow.graph import Call, FlowGraph, Ref, Value
from pyrometer.dataflow.looking import has_memory, look, look_at_input
from pyrometer.dataflow.modes import Escapes, Operators
from pyrometer.dataflow.operators import is_overwritten, name_of, written
from pyrometer.dataflow.steadying import steady
from pyrometer.place import Place
from pyrometer.workload.failure import described
from pyrometer.workload.whereabouts.autograd_sequence import current_node, last_number
from pyrometer.workload.whereabouts.lines import site_of
from pyrometer.workload.whereabouts.modules import ModuleStack
from pyrometer.workload.whereabouts.nearest import nearest_point

MOST_CALLS = 40_000
"""Operators that are kept; a step with more is not recorded to its end."""

Key = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Offset, sizes and strides: what a view sees of its memory."""


class _Memory:
    """A storage, by a reference that keeps its address from being used again, and what is known to lie in it."""

    def __init__(self, number: int, storage: torch.UntypedStorage) -> None:
        self.number = number
        self.reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        self.known: dict[Key, int] = {}
        self.last_written: int | None = None


class _Seen(NamedTuple):
    """An operator that ran; `read` holds the tensors of the values that it was given."""

    operator: Any
    arguments: tuple[Any, ...]
    read: dict[int, torch.Tensor]
    written: list[torch.Tensor]
    result: Any


class _Here(NamedTuple):
    """Where an operator ran: its line, whether it computes a gradient, the autograd node, and the call of the forward pass."""

    where: Place
    backward: bool
    node: str | None
    forward: int | None


class Recorder:
    """Records what runs in `recording`, step by step; `graph` holds it afterwards.

    Args:
        clock: gives seconds.
        settle: waits until what was launched on a device is done.
    """

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, settle: Callable[[], None] = lambda: None
    ) -> None:
        self.graph = FlowGraph()
        self._clock = clock
        self._settle = settle
        self._memories: dict[int, _Memory] = {}
        self._number_of_memories = 0
        self._forward: dict[int, int] = {}
        self._leaves: dict[int, weakref.ref[torch.Tensor]] = {}
        self._updated: set[int] = set()
        self._modules = ModuleStack(self._know)
        self._in_optimizer = 0
        self._paused = False
        self._torn = False
        self._pid = os.getpid()

    @contextlib.contextmanager
    def recording(self, *, hooks: bool = True) -> Iterator[None]:
        """Record the operators of one step; modes and hooks are gone at the end, also on exceptions.

        Args:
            hooks: learn of optimizers by hooks of torch; else somebody tells of them.
        """
        handles = (
            [
                register_optimizer_step_pre_hook(self.optimizer_begins),
                register_optimizer_step_post_hook(self.optimizer_ends),
            ]
            if hooks
            else []
        )
        handles.append(register_module_forward_pre_hook(self._fed))
        if not self._paused:
            self.graph.step_seconds.append(0.0)
        try:
            with self._modules.followed(), Escapes(self.escape), Operators(self.saw):
                handles.append(
                    register_module_forward_hook(self._answered)
                )  # after the hooks that follow modules
                yield
        finally:
            self._in_optimizer = 0
            for handle in handles:
                handle.remove()
            self._forward.clear()

    @property
    def is_paused(self) -> bool:
        """Whether nothing is recorded any more."""
        return self._paused

    def pause(self) -> None:
        """Record no more."""
        self._paused = True

    def returned(self, output: Any) -> None:
        """Note what a step returns: somebody may read it."""
        self.escape(pytree.tree_leaves(output))

    def finish(self) -> FlowGraph:
        """The graph, with what is still held after the last step."""
        self.graph.held = self._held()
        unwanted = self._gradients_of_nobody()
        for address, memory in self._memories.items():
            if address in unwanted or memory.reference.expired():  # type: ignore[no-untyped-call]
                continue
            for number in memory.known.values():
                self.graph.values[number].is_alive = True
            if memory.last_written is not None:
                self.graph.values[memory.last_written].is_alive = True
        self._leaves.clear()
        self._memories.clear()
        self._drop_torn_step()
        steady(self.graph)
        return self.graph

    def _drop_torn_step(self) -> None:
        """Where recording was given up within a step, only the whole ones before count, if there are any."""
        last = len(self.graph.step_seconds) - 1
        if not self._torn or last < 1:
            return
        self.graph.step_seconds.pop()
        self.graph.calls = [call for call in self.graph.calls if call.step < last]
        self.graph.fed = [(step, value) for step, value in self.graph.fed if step < last]
        self.graph.answers = [(step, value) for step, value in self.graph.answers if step < last]
        for value in self.graph.values:
            if value.maker is not None and value.maker >= len(self.graph.calls):
                value.maker = None

    def _fed(self, _module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        """Look at what a model is given."""

        def look_at(value: Value, tensor: torch.Tensor) -> None:
            look_at_input(value, tensor)
            self.graph.fed.append((len(self.graph.step_seconds) - 1, value.number))

        self._passed(args, look_at)

    def _answered(self, _module: torch.nn.Module, _args: Any, output: Any) -> None:
        """Note what a model returns."""
        step = len(self.graph.step_seconds) - 1
        self._passed(output, lambda value, _tensor: self.graph.answers.append((step, value.number)))

    def _passed(self, given: Any, note: Callable[[Value, torch.Tensor], None]) -> None:
        """Note the tensors that pass between the program and a model; none within a model."""
        if self._modules.innermost is not None or self._paused:
            return
        try:
            with self._resting():
                for tensor in pytree.tree_leaves(given):
                    if has_memory(tensor):
                        note(self.graph.values[self._value_of(tensor)], tensor)
        except Exception as error:  # noqa: BLE001 - the program comes first; the notes say what happened
            self._give_up(f"what a model is given or returns could not be followed: {described(error)}")

    def _know(self, model: torch.nn.Module) -> None:
        self._modules.know(model)

    def _held(self) -> set[int]:
        """Memory of what belongs to the modules that ran."""
        tensors = (
            tensor
            for part in self._modules.known
            for tensor in (
                *part.parameters(recurse=False),
                *part.buffers(recurse=False),
                *vars(part).values(),
            )
        )
        addresses = {
            tensor.untyped_storage()._cdata  # noqa: SLF001 - the address is public nowhere else
            for tensor in tensors
            if has_memory(tensor)
        }
        return {memory.number for address, memory in self._memories.items() if address in addresses}

    def _gradients_of_nobody(self) -> set[int]:
        """Memory of gradients of leaves that none of the optimizers holds, where one made a step."""
        if not self._updated:
            return set()
        leaves = [leaf() for leaf in self._leaves.values()]
        return {
            leaf.grad.untyped_storage()._cdata  # noqa: SLF001 - the address is public nowhere else
            for leaf in leaves
            if leaf is not None
            and id(leaf) not in self._updated
            and leaf.grad is not None
            and has_memory(leaf.grad)
        }

    def escape(self, tensors: Sequence[Any]) -> None:
        """Note that these are read by something that is no operator."""
        if self._paused or os.getpid() != self._pid:
            return
        with self._resting():
            for tensor in tensors:
                if has_memory(tensor):
                    self.graph.values[self._value_of(tensor)].is_escaped = True

    def saw(self, operator: Any, args: Any, named: Any, run: Callable[[], Any]) -> Any:
        """Run an operator, and record it."""
        if self._paused or os.getpid() != self._pid or _is_captured():
            return run()
        if len(self.graph.calls) >= MOST_CALLS:
            self._give_up(f"after {MOST_CALLS:,} operators no more were recorded")
            return run()
        try:
            given, read = self._given(args, named)
        except Exception as error:  # noqa: BLE001 - the program comes first; the notes say what happened
            self._give_up(f"{name_of(operator)} could not be followed: {described(error)}")
            return run()
        self._settle()
        began = self._clock()
        result = run()
        self._settle()
        spent = self._clock() - began
        try:
            here = self._here(len(self.graph.calls))
            with self._resting():
                arguments = tuple(_referred(each, given) for each in (*args, *named.values()))
                seen = _Seen(operator, arguments, read, written(operator, args, named), result)
                self._note(seen, given, here, spent)
        except Exception as error:  # noqa: BLE001 - see above
            self._give_up(f"{name_of(operator)} could not be followed: {described(error)}")
        return result

    def _given(self, args: Any, named: Any) -> tuple[dict[int, int], dict[int, torch.Tensor]]:
        """The values of the arguments by the identity of their tensors, and the tensors by value."""
        given: dict[int, int] = {}
        read: dict[int, torch.Tensor] = {}
        with self._resting():
            for leaf in pytree.arg_tree_leaves(*args, **named):
                if has_memory(leaf):
                    given[id(leaf)] = self._value_of(leaf)
                    read[given[id(leaf)]] = leaf
                elif isinstance(leaf, torch.Tensor):
                    self.graph.complete = False
        return given, read

    def _give_up(self, why: str) -> None:
        """Record no more, and say why."""
        self.graph.complete = False
        self.graph.notes.append(why)
        self._paused = self._torn = True

    def _note(self, seen: _Seen, given: dict[int, int], here: _Here, spent: float) -> None:
        number, values = len(self.graph.calls), self.graph.values
        where, backward, node, forward = here
        overwritten = {given[id(tensor)] for tensor in seen.written if is_overwritten(seen.operator, tensor)}
        writes = [
            self._make(tensor, number, keeps=given[id(tensor)] not in overwritten) for tensor in seen.written
        ]
        changed = {id(tensor) for tensor in seen.written}
        read = {values[value].storage for value in seen.read}
        tensors = dict(seen.read)
        for tensor in pytree.tree_leaves(seen.result):
            if has_memory(tensor) and id(tensor) not in changed:
                is_view = self._memory_of(tensor).number in read
                writes.append(self._viewed(tensor, number) if is_view else self._make(tensor, number))
                tensors[writes[-1]] = tensor
        call = Call(
            number=number,
            step=len(self.graph.step_seconds) - 1,
            name=name_of(seen.operator),
            arguments=seen.arguments,
            reads=tuple(value for value in seen.read if value not in overwritten),
            writes=tuple(writes),
            mutates=bool(seen.written),
            where=where,
            caller=_here_in_code() if backward else None,
            backward=backward,
            node=node,
            forward=forward,
            seconds=spent,
            optimizer=self._in_optimizer > 0,
        )
        self.graph.calls.append(call)
        self.graph.step_seconds[-1] += spent
        look(call, values, tensors)

    def _here(self, number: int) -> _Here:
        node = current_node()
        if node is not None and not torch.is_grad_enabled():
            forward = self._forward.get(node[0])
            where = self.graph.calls[forward].where if forward is not None else Place()
            return _Here(where, True, node[1], forward)
        made = last_number() if torch.is_grad_enabled() else None
        if made is not None:
            self._forward.setdefault(made, number)
        where = _here_in_code() or Place()
        where = msgspec.structs.replace(where, module=self._modules.innermost)
        return _Here(where, False, None if node is None else node[1], None)

    def _memory_of(self, tensor: torch.Tensor) -> _Memory:
        storage = tensor.untyped_storage()
        memory = self._memories.get(storage._cdata)  # noqa: SLF001 - the address is public nowhere else
        if memory is None:
            memory = _Memory(self._number_of_memories, storage)
            self._memories[storage._cdata] = memory  # noqa: SLF001
            self._number_of_memories += 1
        return memory

    def _value_of(self, tensor: torch.Tensor) -> int:
        """What a tensor holds now."""
        memory, key = self._memory_of(tensor), _key_of(tensor)
        number = memory.known.get(key)
        if number is None:
            number = memory.known[key] = self._new(tensor, memory, base=memory.last_written)
            if memory.last_written is None:
                memory.last_written = number
        return number

    def _viewed(self, tensor: torch.Tensor, maker: int) -> int:
        """A view that an operator made; its memory stays as it was."""
        memory = self._memory_of(tensor)
        number = memory.known[_key_of(tensor)] = self._new(tensor, memory, maker=maker)
        return number

    def _make(self, tensor: torch.Tensor, maker: int, *, keeps: bool = False) -> int:
        """What an operator wrote; `keeps`: something of what was there before is still there."""
        memory = self._memory_of(tensor)
        number = self._new(tensor, memory, maker=maker, base=memory.last_written if keeps else None)
        memory.known = {_key_of(tensor): number}
        memory.last_written = number
        return number

    def _new(
        self, tensor: torch.Tensor, memory: _Memory, *, maker: int | None = None, base: int | None = None
    ) -> int:
        is_leaf = tensor.requires_grad and tensor.is_leaf
        if is_leaf:
            self._leaves.setdefault(id(tensor), weakref.ref(tensor))
        value = Value(
            number=len(self.graph.values),
            storage=memory.number,
            shape=tuple(tensor.shape),
            dtype=str(tensor.dtype).removeprefix("torch."),
            maker=maker,
            base=base,
            is_leaf=is_leaf,
            layout=_key_of(tensor),
        )
        self.graph.values.append(value)
        return value.number

    @contextlib.contextmanager
    def _resting(self) -> Iterator[None]:
        """Take no notice of what is computed meanwhile."""
        before, self._paused = self._paused, True
        try:
            with torch.no_grad():
                yield
        finally:
            self._paused = before

    def optimizer_begins(self, optimizer: Any, _args: Any = (), _named: Any = None) -> None:
        """An optimizer begins its step."""
        self._in_optimizer += 1
        self._updated.update(id(each) for group in optimizer.param_groups for each in group["params"])

    def optimizer_ends(self, _optimizer: Any = None, _args: Any = (), _named: Any = None) -> None:
        """An optimizer has ended its step."""
        self._in_optimizer = max(0, self._in_optimizer - 1)


def _is_captured() -> bool:
    """Whether a graph of a device is being captured, in which nothing may wait for the device."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]


def _here_in_code() -> Place | None:
    point = nearest_point()
    if point is None:
        return None
    site = site_of(point)
    return Place(file=site.file, line=site.line, function=site.function)


def _key_of(tensor: torch.Tensor) -> Key:
    return int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride()


def _referred(argument: Any, given: dict[int, int]) -> Any:
    """An argument with a `Ref` for each tensor."""
    if isinstance(argument, torch.Tensor):
        return Ref(given[id(argument)]) if id(argument) in given else None
    if isinstance(argument, (list, tuple)):
        return tuple(_referred(each, given) for each in argument)
    return argument
