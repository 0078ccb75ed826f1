"""`no_graph_retained`: what a step leaves behind has no autograd graph."""

from __future__ import annotations

import contextvars
import gc
import weakref

import torch

from pyrometer.bench.garbage import settled
from pyrometer.guard.pytest.program import Operators, opened
from pyrometer.guard.pytest.result import ContractResult
from pyrometer.memory.holders.find import find_holders
from pyrometer.memory.leaks.births import live_tensors
from pyrometer.memory.leaks.nodes import count_nodes
from pyrometer.memory.leaks.watch import users_objects
from pyrometer.memory.private.autograd_nodes import as_is, grad_fn_of
from pyrometer.memory.private.dispatch import storage_key
from pyrometer.place import place_text
from pyrometer.quantity import counted
from pyrometer.workload.failure import user_code
from pyrometer.workload.whereabouts.lines import site_of
from pyrometer.workload.workload import Session, Workload

STEPS = 3
MOST_NAMED = 5


@settled()
def keeps_no_graph(work: Workload) -> ContractResult:
    """Run a few steps, and look for tensors that they made and that still have their autograd graph.

    Raises:
        UserProgramError: a step raised.
    """
    with opened(work) as session:
        _step(session)  # what is made once for all steps is there after the first
        before = _with_graph()
        with Operators() as seen:
            for _ in range(STEPS):
                _step(session)
        left = [tensor for tensor in _alive(_with_graph()) if tensor is not _still(before, tensor)]
        left = _without_weights(left, work)
        where = _graph_places(left, seen, work)
        nodes = count_nodes(left)
        num_left = len(left)
        del left
    return ContractResult(
        contract="no_graph_retained",
        workload=work.name,
        outcome="broken" if num_left else "kept",
        promised="no tensor outlives its step together with its autograd graph",
        measured=f"{counted(num_left, 'tensor')} with {counted(nodes, 'node')} of graph after {counted(STEPS, 'step')}",
        limit=0.0,
        value=float(num_left),
        unit="tensors",
        where=where,
        advice="keep loss.item() or loss.detach() instead of the tensor" if num_left else None,
    )


def _step(session: Session) -> None:
    with user_code("the step"):
        session.step(session.prepare())
    gc.collect()


def _with_graph() -> dict[int, weakref.ref[torch.Tensor]]:
    """All live tensors with a graph behind them, held weakly."""
    with as_is():
        return {
            id(tensor): weakref.ref(tensor) for tensor in live_tensors() if grad_fn_of(tensor) is not None
        }


def _alive(found: dict[int, weakref.ref[torch.Tensor]]) -> list[torch.Tensor]:
    return [tensor for reference in found.values() if (tensor := reference()) is not None]


def _still(before: dict[int, weakref.ref[torch.Tensor]], tensor: torch.Tensor) -> torch.Tensor | None:
    reference = before.get(id(tensor))
    return None if reference is None else reference()


def _without_weights(left: list[torch.Tensor], work: Workload) -> list[torch.Tensor]:
    """Without weights that `weight_norm` and `spectral_norm` compute anew in each forward, and keep as attributes."""
    model = getattr(getattr(work, "parts", work), "model", None)
    parts = model.modules() if isinstance(model, torch.nn.Module) else ()
    made = {
        id(getattr(part, name, None))
        for part in parts
        for hook in part._forward_pre_hooks.values()  # noqa: SLF001 - nothing public tells of them
        if isinstance(name := getattr(hook, "name", None), str)
    }
    return [tensor for tensor in left if id(tensor) not in made]


def _graph_places(left: list[torch.Tensor], seen: Operators, work: Workload) -> list[str]:
    """Who holds them, and the lines that made them; each once."""
    texts = []
    holders = contextvars.copy_context().run(_holders, left[:MOST_NAMED], work)
    for tensor, holder in zip(left[:MOST_NAMED], holders, strict=True):
        point = seen.points.get(storage_key(tensor.untyped_storage()))
        site = None if point is None else site_of(point)
        made = "" if site is None else f", made at {place_text(site.file, site.line)}: {site.source}"
        texts.append(f"held by {holder}{made}")
    return list(dict.fromkeys(texts))


def _holders(left: list[torch.Tensor], work: Workload) -> list[str]:
    """Names of what holds them; the search also begins at what the workload consists of."""
    for name, value in users_objects(work).items():
        contextvars.ContextVar(name).set(value)
    found = find_holders(left, ignore=[left])
    return ["nobody that can be named" if holder is None else holder.name for holder in found]
