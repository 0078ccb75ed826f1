"""What autograd records, and the optimizer remembers, though nobody needs it."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pyrometer.advice import Advice
from pyrometer.errors import PyrometerError
from pyrometer.memory.advice.case import WORTH, Case, measured, predicted
from pyrometer.memory.advice.rules.checkpointing import shown
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.private.dispatch import storages
from pyrometer.memory.profile import PredictedMemory
from pyrometer.memory.recording.steps import record_steps
from pyrometer.quantity import Bytes, counted, format_bytes
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.call import Call
from pyrometer.workload.training import Training


def untrained_parameters(case: Case) -> Iterator[Advice]:
    """Parameters that want gradients, and that no optimizer updates."""
    work = case.training
    if work is None:
        return
    trained = {id(tensor) for tensor in work.parts.trained()}
    idle = {
        name: parameter
        for module in work.parts.modules
        for name, parameter in module.named_parameters()
        if parameter.requires_grad and id(parameter) not in trained
    }
    if not idle:
        return
    saving = case.tried(
        "freezing parameters that are not trained",
        ("gradients", "activations", "temporaries"),
        lambda: _frozen(work, idle.values()),
    )
    if saving is None:
        return
    size = sum(tensor.numel() * tensor.element_size() for tensor in idle.values())
    owners = list(dict.fromkeys(name.rpartition(".")[0] or name for name in idle))
    yield Advice(
        slug="freeze-untrained",
        fix_class="semantic",
        title="say that parameters are not trained",
        why=f"{case.where}; {counted(len(idle), 'parameter')} with {format_bytes(size)} want gradients, but are in no group of the "
        f"optimizer: {shown(owners)}",
        sketch="trained = {p for group in optimizer.param_groups for p in group['params']}\n"
        "for p in model.parameters():\n"
        "    p.requires_grad_(p in trained)",
        effect="the same training; their gradients are neither computed nor kept, and what only they need is not recorded, which "
        "also saves time",
        gain=saving.gain,
    )


def frozen_trunk(case: Case) -> Iterator[Advice]:
    """A batch that wants gradients, so that layers are recorded which train nothing."""
    work = case.training
    if work is None or not _wants_gradients(work):
        return
    detached = copy.copy(work)
    detached.batches = _Detached(work.batches)
    saving = case.tried(
        "inputs without gradients",
        ("activations", "gradients", "temporaries"),
        lambda: predict_memory(detached),
    )
    if saving is None:
        return
    frozen = sum(
        not parameter.requires_grad for module in work.parts.modules for parameter in module.parameters()
    )
    yield Advice(
        slug="no-grad-trunk",
        fix_class="semantic",
        title="do not record what trains nothing",
        why=f"{case.where}; the batch has requires_grad=True, so the {counted(frozen, 'frozen parameter')} are passed backwards "
        "through, and all activations on the way are kept",
        sketch="inputs = inputs.detach()\nwith torch.no_grad():\n    features = trunk(inputs)  # the frozen part\nloss = loss_fn(head(features), targets)",
        effect="the same gradients of all parameters; the batch itself gets none any more",
        gain=saving.gain,
    )


def stale_state(case: Case) -> Iterator[Advice]:
    """State of parameters that were frozen after the optimizer had begun to train them."""
    work = case.training
    if work is None:
        return
    optimizer = work.parts.optimizer
    stale = [tensor for tensor in optimizer.state if not tensor.requires_grad]
    nbytes = _distinct_bytes(pytree.tree_leaves([optimizer.state[tensor] for tensor in stale]))
    if nbytes < WORTH * case.peak_bytes:
        return
    yield Advice(
        slug="stale-optimizer-state",
        fix_class="semantic",
        title="drop optimizer state of parameters that no longer train",
        why=f"{counted(len(stale), 'parameter')} in the optimizer have requires_grad=False, and their state of {format_bytes(nbytes)} "
        f"is held all the time; {case.where}",
        sketch="for p in [p for p in optimizer.state if not p.requires_grad]:\n    del optimizer.state[p]",
        effect="the same training; when they train again, their moments begin at zero",
        gain=predicted(nbytes),
    )


def no_grad(case: Case) -> Iterator[Advice]:
    """A graph that nothing goes backwards through."""
    work, observed = case.work, case.observed
    if not isinstance(work, Call) or observed is None or observed.backward:
        return
    saved = [index for index in observed.alive_at_peak() if case.allocation(index).saved]
    if not any(not case.allocation(index).preexisting for index in saved):
        return
    unrecorded = copy.copy(work)
    unrecorded.function = _without_gradients(work.function)
    after = record_steps(unrecorded).peak_bytes
    before = observed.log.peak_bytes
    if before - after < WORTH * before:
        return
    indices = [index for index in saved if not case.allocation(index).preexisting]
    yield Advice(
        slug="no-grad",
        fix_class="semantic",
        lever="inference_mode",
        title="run under torch.no_grad()",
        why=f"{case.where}; autograd keeps {format_bytes(sum(case.allocation(index).nbytes for index in indices))} for a backward pass "
        f"that does not come, of {case.lines(indices)}",
        sketch="with torch.no_grad():  # or torch.inference_mode()\n    ...",
        effect="the same results, without a graph; only where nobody calls backward() on them later",
        gain=measured(before - after),
        where=case.main_line(indices),
    )


class _Detached:
    """Batches without gradients."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        with contextlib.closing(BatchStream(self._batches)) as stream:
            while True:
                yield pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, stream.next())


def _wants_gradients(work: Training) -> bool:
    try:
        with contextlib.closing(BatchStream(work.batches)) as stream:
            leaves = pytree.tree_leaves(stream.next())
    except PyrometerError:
        return False
    return any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves)


def _frozen(work: Training, parameters: Iterable[torch.Tensor]) -> PredictedMemory:
    """The training predicted with parameters frozen, which they are only meanwhile."""
    with contextlib.ExitStack() as stack:
        for parameter in parameters:
            stack.callback(parameter.requires_grad_, True)
            parameter.requires_grad_(False)
        return predict_memory(work)


def _without_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        with torch.no_grad():
            return function(*args)

    return run


def _distinct_bytes(leaves: Iterable[Any]) -> Bytes:
    """What the storages behind tensors take, each once."""
    found = {
        id(storage): storage.nbytes()
        for leaf in leaves
        if isinstance(leaf, torch.Tensor)
        for storage, _ in storages(leaf)
    }
    return sum(found.values())
