"""Recording allocations while a program runs, on real or on fake tensors alike.

Every operator passes through a dispatch mode; each storage that is new in its results is an allocation, and the death
of the storage is its free. What a storage is *for* is known by identity: it was registered as a parameter or an input,
autograd saved it, a gradient was accumulated into it, or it is found in the optimizer's state.

Torch's own tools ascribe everything that is allocated while the optimizer runs to its state; here what is in the state
afterwards counts as state, and the rest as temporaries.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeAlias

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils import _pytree as pytree

from pyrometer.memory.category import Category
from pyrometer.memory.private.dispatch import (
    DispatchMode,
    is_composite,
    run_composite,
    storage_key,
    storages,
    without_copy,
)
from pyrometer.memory.recording.allocation import Allocation, AllocationLog, Origin
from pyrometer.quantity import Bytes
from pyrometer.workload.state import optimizer_tensors
from pyrometer.workload.whereabouts.autograd_sequence import current_node
from pyrometer.workload.whereabouts.following import Following
from pyrometer.workload.whereabouts.modules import ModuleStack

Workspace: TypeAlias = Callable[[str, Sequence[Any], Sequence[Any]], Bytes]

_PRESENT = Origin("", None, None)


class AllocationRecorder:
    """Records allocations on one device.

    Use it as a context manager around the steps, `register` before what is there already, and `end_phase` between.
    Models and optimizers that nobody told of are recognised when they first run.

    Args:
        device: whose memory is counted; storages elsewhere are left out.
        saved: follow what autograd saves, which `torch.func` transforms do not allow.
        workspace: bytes that an operator takes for itself while it runs, from its name, arguments and results, where no
            allocator tells.

    >>> with AllocationRecorder(torch.device("cpu")) as recorder:
    ...     a = torch.ones(1024)
    ...     del a
    ...     recorder.end_phase("forward", step=0)
    >>> recorder.log.peak_bytes, recorder.log.live_bytes, recorder.log.allocations[0].phase
    (4096, 0, 'forward')
    """

    def __init__(
        self, device: torch.device, *, saved: bool = True, workspace: Workspace | None = None
    ) -> None:
        self.log = AllocationLog()
        self._workspace = workspace
        self.modules = self._module_stack()
        self._following = Following(self.modules)
        self.device = device.type
        self._saved = saved
        self._known: dict[int, int] = {}
        self._references: dict[int, weakref.ref[torch.UntypedStorage]] = {}
        self._hooked: dict[int, torch.Tensor] = {}  # kept, so that ids are not used again
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.modules.followed())
            stack.callback(register_optimizer_step_pre_hook(self._optimizer_steps).remove)
            stack.callback(register_optimizer_step_post_hook(self._optimizer_steps).remove)
            if self._saved:
                stack.enter_context(torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack))
            stack.enter_context(_Operators(self))
            self._stack.push(stack.pop_all())
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()
        self._notice_resized()
        self._hooked.clear()
        self._references.clear()  # frees from now on are not of the recording

    def register(self, tensors: Iterable[torch.Tensor], category: Category) -> None:
        """Tell what tensors are that are there already, or that have just been made."""
        for tensor in tensors:
            if tensor.device.type == self.device:  # the storage of a tensor without data says another one
                for storage, dtype in storages(tensor):
                    self._mark(storage, dtype, category)

    def allocations_of(self, tensor: torch.Tensor) -> list[Allocation]:
        """What is known of the storages behind a tensor."""
        keys = [storage_key(storage) for storage, _ in storages(tensor)]
        return [self.log.allocations[self._known[key]] for key in keys if key in self._known]

    def register_inputs(self, inputs: Any) -> None:
        """`register` for the tensors in nested lists, tuples and dicts, and one level into other objects."""
        self.register([leaf for part in pytree.tree_leaves(inputs) for leaf in _inside(part)], "inputs")

    def know_model(self, model: nn.Module) -> None:
        """Name a model's modules, and tell its parameters, buffers and gradients from other tensors."""
        self.modules.know(model)
        parameters = list(model.parameters())
        self.register([*parameters, *model.buffers()], "parameters")
        self.follow_gradients(parameters)

    def know_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Tell an optimizer's state, and the copies of weights that only the optimizer knows."""
        for state in optimizer.state.values():
            named = state.items() if isinstance(state, dict) else ()
            self.register(
                [v for k, v in named if isinstance(v, torch.Tensor) and "master" in str(k)], "master"
            )
        self.register(optimizer_tensors(optimizer), "optimizer")
        trained = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        self.register(trained, "master")  # those of a model are known as parameters already
        self.follow_gradients(trained)

    def follow_gradients(self, tensors: Iterable[torch.Tensor]) -> None:
        """Tell gradients from temporaries: of leaf tensors, as they are accumulated."""
        for tensor in tensors:
            if tensor.grad is not None:
                self.register([tensor.grad], "gradients")
            if tensor.requires_grad and tensor.is_leaf and id(tensor) not in self._hooked:
                handle = tensor.register_post_accumulate_grad_hook(self._accumulated)  # type: ignore[no-untyped-call]
                self._stack.callback(handle.remove)
                self._hooked[id(tensor)] = tensor

    def end_phase(self, name: str, *, step: int) -> None:
        """What was allocated since the last phase ended belongs to this one."""
        self._notice_resized()
        self.log.end_phase(name, step)
        if name == "optimizer":
            self._following.forget()

    def saw(self, results: Any, arguments: Any, operator: Any) -> None:
        """An operator ran: what is new in its results was allocated; what is new in its arguments was there."""
        for storage, dtype in self._storages(arguments):
            if storage_key(storage) not in self._known:
                self._add(storage, dtype, _PRESENT, preexisting=True)
        origin: Origin | None = None
        for storage, dtype in self._storages(results):
            if self._is_new(storage):
                origin = origin or self._origin(operator)
                self._add(storage, dtype, origin)
        if origin is None and torch.is_grad_enabled():
            self._following.here()  # for the backward pass
        if self._workspace is not None:
            self._take(self._workspace(str(operator), arguments, results), origin)

    def _module_stack(self) -> ModuleStack:
        return ModuleStack(self.know_model)

    def _storages(self, values: Any) -> Iterator[tuple[torch.UntypedStorage, torch.dtype]]:
        """The storages of the tensors on the device."""
        for value in values:
            if isinstance(value, torch.Tensor) and value.device.type == self.device:
                yield from storages(value)

    def _take(self, nbytes: Bytes, origin: Origin | None) -> None:
        """An operator took scratch memory beside its results, and gave it back."""
        if nbytes:
            own = Allocation(nbytes, 0, origin or _PRESENT, "uint8", category="workspace")
            self.log.died(self.log.born(own))

    def _is_new(self, storage: torch.UntypedStorage) -> bool:
        index = self._known.get(storage_key(storage))
        if index is None:
            return True
        if self.log.allocations[index].nbytes == storage.nbytes():
            return False
        self._free(storage_key(storage), index)  # resized
        return True

    def _notice_resized(self) -> None:
        """A storage may be resized without any operator, as sharding does to free parameters."""
        for index, reference in list(self._references.items()):
            storage, known = reference(), self.log.allocations[index]
            if storage is not None and storage.nbytes() != known.nbytes:
                self._free(storage_key(storage), index)
                if storage.nbytes():
                    again = self._add(storage, torch.uint8, known.origin)
                    again.dtype, again.category, again.saved = known.dtype, known.category, known.saved

    def _origin(self, operator: Any) -> Origin:
        here = self._following.here()
        return Origin(str(operator), here.point, here.module, here.node)

    def _add(
        self, storage: torch.UntypedStorage, dtype: torch.dtype, origin: Origin, *, preexisting: bool = False
    ) -> Allocation:
        allocation = Allocation(
            nbytes=storage.nbytes(),
            born=0,
            origin=origin,
            dtype=str(dtype).removeprefix("torch."),
            recomputed=origin.node is not None and torch.is_grad_enabled(),
            preexisting=preexisting,
        )
        key, index = storage_key(storage), self.log.born(allocation)
        self._known[key] = index
        self._references[index] = weakref.ref(storage, lambda _: self._free(key, index))
        return allocation

    def _free(self, key: int, index: int) -> None:
        if self._references.pop(index, None) is None:
            return
        if self._known.get(key) == index:  # keys are used again
            del self._known[key]
        self.log.died(index)

    def _mark(self, storage: torch.UntypedStorage, dtype: torch.dtype, category: Category) -> None:
        index = self._known.get(storage_key(storage))
        allocation = self.log.allocations[index] if index is not None else None
        if allocation is None:
            allocation = self._add(storage, dtype, _PRESENT, preexisting=True)
        if allocation.category is None:
            allocation.category = category

    def _accumulated(self, tensor: torch.Tensor) -> None:
        if tensor.grad is not None:
            self.register([tensor.grad], "gradients")

    def _optimizer_steps(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        self.know_optimizer(optimizer)

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type == self.device:
            for storage, _ in storages(tensor):
                index = self._known.get(storage_key(storage))
                if index is not None:
                    self.log.allocations[index].saved = True
        # Returning the argument itself would tie its graph into a reference cycle that is never freed.
        return tensor.detach()


class _Operators(DispatchMode):
    """Shows every operator to the recorder."""

    def __init__(self, recorder: AllocationRecorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.is_inference_mode_enabled() and is_composite(func, self._recorder.device):
            # Without autograd torch hands over operators that only call others; these are what allocates.
            with self:
                return run_composite(func, args, kwargs or {})
        if _takes_over(func, args):
            return without_copy(args[0])
        result = func(*args, **(kwargs or {}))
        results = (result,) if isinstance(result, torch.Tensor) else pytree.tree_leaves(result)
        self._recorder.saw(results, pytree.arg_tree_leaves(*args, **(kwargs or {})), func)
        return result


def _takes_over(func: Any, args: Any) -> bool:
    """Whether autograd is about to copy a sparse gradient that it would keep as it is if nobody watched."""
    if func is not torch.ops.aten.clone.default or args[0].layout != torch.sparse_coo:
        return False
    node = current_node()
    return node is not None and "AccumulateGrad" in node[1]


def _inside(leaf: Any) -> list[torch.Tensor]:
    """A tensor, or those that an object such as a dataclass or a batch encoding has as attributes."""
    if isinstance(leaf, torch.Tensor):
        return [leaf]
    attributes = getattr(leaf, "__dict__", {})
    return [value for value in attributes.values() if isinstance(value, torch.Tensor)]


def _unpack(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
