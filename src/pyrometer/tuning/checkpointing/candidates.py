"""Which modules may be checkpointed: what can be computed again without a difference, and is worth it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from pyrometer.errors import InputError
from pyrometer.tuning.checkpointing.record import ExcludedModule
from pyrometer.tuning.checkpointing.trace import StepTrace
from pyrometer.workload.changes.checkpointing import module_at, plain_model

GRANULARITIES = ("auto", "blocks", "all")
SMALL_SHARE = 0.005
"""Of all saved bytes: modules below are left out unless every module is asked for."""

MOST_MODULES = 80
"""Candidates by themselves; more do not make better plans, but longer measurements."""

_TRANSPARENT_SHARE = 0.5


def choose_candidates(
    model: nn.Module, trace: StepTrace, granularity: str | Sequence[str]
) -> tuple[list[str], list[ExcludedModule]]:
    """Candidates in the order in which they run, and what is no candidate though it holds activations.

    Raises:
        InputError: another granularity, or a path without a module.
    """
    order = list(dict.fromkeys(call.module for call in trace.calls))
    wanted = _wanted(model, trace, granularity, order)
    reasons = {path: reason_against(trace, path) for path in wanted}
    excluded = [ExcludedModule(module=path, why=why) for path, why in reasons.items() if why is not None]
    out = {module.module for module in excluded}
    return [path for path in wanted if path not in out], excluded


def blocks_of(model: nn.Module, trace: StepTrace) -> list[str]:
    """The outermost parts of a model in the order in which they run, as one would checkpoint by hand.

    Lists and sequences of blocks are looked through, and so is what stands by itself and holds more than half of what
    is saved, such as the encoder below a head.
    """
    order = list(dict.fromkeys(call.module for call in trace.calls))
    everything = sum(trace.saved_bytes(path) for path in order if "." not in path) or 1
    root = plain_model(model)
    parts = _parts(root, "", trace, everything, among_equals=_lists_blocks(root))
    return sorted((path for path in parts if path in order), key=order.index)


def _parts(
    module: nn.Module, path: str, trace: StepTrace, everything: int, *, among_equals: bool
) -> list[str]:
    parts = []
    for name, child in module.named_children():
        inner = f"{path}.{name}" if path else name
        lists = _lists_blocks(child)
        stands_out = not among_equals and trace.saved_bytes(inner) > _TRANSPARENT_SHARE * everything
        if lists or (stands_out and any(True for _ in child.children())):
            parts += _parts(child, inner, trace, everything, among_equals=lists)
        else:
            parts.append(inner)
    return parts


def _lists_blocks(module: nn.Module) -> bool:
    """Whether a module is a list of others, or a sequence of blocks rather than of single layers."""
    if isinstance(module, (nn.ModuleList, nn.ModuleDict)):
        return True
    composite = [any(True for _ in child.children()) for child in module.children()]
    return isinstance(module, nn.Sequential) and sum(composite) > len(composite) / 2


def _wanted(
    model: nn.Module, trace: StepTrace, granularity: str | Sequence[str], order: Sequence[str]
) -> list[str]:
    if not isinstance(granularity, str):
        for path in granularity:
            module_at(model, path)
        return sorted(granularity, key=lambda path: order.index(path) if path in order else len(order))
    if granularity not in GRANULARITIES:
        raise InputError(
            f"granularity: got {granularity!r}; legal are {', '.join(GRANULARITIES)}, or a list of module paths"
        )
    if granularity == "blocks":
        return blocks_of(model, trace)
    saved = {path: trace.saved_bytes(path) for path in order}
    if granularity == "all":
        return [path for path in order if saved[path] or path in trace.unfit]
    least = SMALL_SHARE * sum(saved[path] for path in order if "." not in path)
    large = sorted((path for path in order if saved[path] > least), key=lambda path: -saved[path])
    return sorted(large[:MOST_MODULES], key=order.index)


def reason_against(trace: StepTrace, path: str) -> str | None:
    """Why a module must not, or need not, be computed again; `None` when it may."""
    if path in trace.unfit:
        return trace.unfit[path]
    if not trace.calls_of(path):
        return "did not run in the step"
    for inner in sorted(trace.within(path) - {path}):
        why = trace.unfit.get(inner)
        # An inner module may change what an outer one has made: that is made anew.
        if why is not None and not why.startswith("changes its input"):
            return f"{inner} inside {why}"
    if not trace.saved_bytes(path):
        return "keeps nothing for the backward pass that it makes itself"
    return None
