"""Optimizers with less scratch memory, and with less state."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from pyrometer.advice import Advice
from pyrometer.memory.advice.case import WORTH, Case, Saving
from pyrometer.memory.advice.lives import Life
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.quantity import Bytes, format_bytes

QUANTISED_FROM = 4096
"""Elements from which on 8-bit optimizers quantise a parameter's state."""

_EIGHT_BIT_LIBRARIES = {
    "bitsandbytes": "import bitsandbytes as bnb\noptimizer = bnb.optim.{name}8bit(model.parameters(), lr={lr})",
    "torchao": "from torchao.optim import {name}8bit\noptimizer = {name}8bit(model.parameters(), lr={lr})",
}

_SMALLER = {
    "Adafactor": (
        "Adafactor(model.parameters(), lr=1e-2)",
        "one row and one column of second moments per matrix instead of two whole ones; another algorithm, to be tuned anew",
    ),
    "SGD momentum": (
        "SGD(model.parameters(), lr=0.1, momentum=0.9)",
        "one state per parameter instead of two; another algorithm, to be tuned anew, which seldom trains transformers as well",
    ),
}
"""Optimizers that remember less: how they are made, and what that costs."""


def implementation(case: Case) -> Iterator[Advice]:
    """The same optimizer as one fused operator, or one parameter after the other."""
    work = case.training
    if work is None or case.phase != "optimizer":
        return
    optimizer = work.parts.optimizer
    best: tuple[str, Saving] | None = None
    for options in ({"foreach": False, "fused": True}, {"foreach": False, "fused": False}):
        if not _takes(optimizer, options):
            continue
        what = "a fused optimizer" if options["fused"] else "an optimizer without foreach"
        make = partial(remade, type(optimizer), optimizer.param_groups, options)
        changed = partial(predict_memory, work, optimizer=make)
        saving = case.tried(what, ("temporaries",), changed, silent=not options["fused"])
        if saving is not None and (best is None or (saving.nbytes or 0) > (best[1].nbytes or 0)):
            best = ("fused=True" if options["fused"] else "foreach=False"), saving
    if best is None:
        return
    name = type(optimizer).__name__
    yield Advice(
        slug="optimizer-implementation",
        fix_class="tolerance",
        lever="fused_optimizer" if best[0] == "fused=True" else None,
        title=f"{name}(…, {best[0]})",
        why=f"{case.where}, where {case.holds('temporaries')}, made by the optimizer itself",
        sketch=f"optimizer = torch.optim.{name}(model.parameters(), lr={_lr(optimizer)}, {best[0]})",
        effect="the same update to rounding"
        + (
            ", in one operator without temporaries; usually faster"
            if best[0] == "fused=True"
            else ", with temporaries for one parameter at a time; on a GPU many small parameters take longer"
        ),
        gain=best[1].gain,
    )


def less_state(case: Case) -> Iterator[Advice]:
    """Another optimizer, which remembers less about each parameter."""
    work = case.training
    if work is None or case.held("optimizer") < WORTH * case.peak_bytes:
        return
    optimizer = work.parts.optimizer
    for choice, (text, effect) in _SMALLER.items():
        name = choice.split()[0]
        if type(optimizer).__name__ == name or not hasattr(torch.optim, name):
            continue
        changed = partial(predict_memory, work, optimizer=choice)
        saving = case.tried(choice, ("optimizer",), changed, silent=True)
        if saving is None:
            continue
        yield Advice(
            slug=f"optimizer-{name.lower()}",
            fix_class="semantic",
            title=f"train with {choice} instead of {type(optimizer).__name__}",
            why=f"{case.where}, where {case.holds('optimizer')}",
            sketch=f"optimizer = torch.optim.{text}",
            effect=effect,
            gain=saving.gain,
        )


def eight_bits(case: Case) -> Iterator[Advice]:
    """State in 8 bits, where a library for it is installed."""
    work = case.training
    name = type(work.parts.optimizer).__name__ if work is not None else ""
    library = next(
        (
            eight_bit_library
            for eight_bit_library in _EIGHT_BIT_LIBRARIES
            if importlib.util.find_spec(eight_bit_library) is not None
        ),
        None,
    )
    if work is None or library is None or name not in {"Adam", "AdamW"} or case.observed is None:
        return
    assert case.lives is not None
    changed: dict[int, list[Life]] = {}
    for index, allocation in enumerate(case.observed.log.allocations):
        if (
            allocation.category == "optimizer"
            and allocation.dtype == "float32"
            and allocation.nbytes >= 4 * QUANTISED_FROM
        ):
            changed[index] = [case.lives[index]._replace(nbytes=_quantised(allocation.nbytes))]
    saving = case.relived(changed)
    if saving is None:
        return
    yield Advice(
        slug="optimizer-8bit",
        fix_class="semantic",
        title=f"keep the state of {name} in 8 bits",
        why=f"{case.where}, where {case.holds('optimizer')}, in float32",
        sketch=_EIGHT_BIT_LIBRARIES[library].format(name=name, lr=_lr(work.parts.optimizer)),
        effect=f"state of parameters with at least {QUANTISED_FROM} elements is quantised in blocks; trains as well in most reports, "
        f"{format_bytes(saving.nbytes)} less",
        gain=saving.gain,
    )


def remade(
    kind: type[torch.optim.Optimizer],
    groups: Sequence[dict[str, Any]],
    options: dict[str, Any],
    tensors: Sequence[torch.Tensor],
) -> torch.optim.Optimizer:
    """A new optimizer with the settings of given groups over other tensors, and some options changed.

    Args:
        kind: its class.
        groups: as in `param_groups`.
        options: such as `{"fused": True}`.
        tensors: in the order of those in the groups.
    """
    left = iter(tensors)
    own = [group | options | {"params": [next(left) for _ in group["params"]]} for group in groups]
    make: Any = kind
    return make(own, **{"lr": own[0].get("lr", 1e-3)} | options)  # type: ignore[no-any-return]


def _takes(optimizer: torch.optim.Optimizer, options: dict[str, Any]) -> bool:
    """Whether the class knows the options, and does not have them already."""
    groups = optimizer.param_groups
    known = all(name in group for group in groups for name in options)
    same = all(bool(group.get(name)) == value for group in groups for name, value in options.items())
    return known and not (same and (options["fused"] or groups[0]["foreach"] is False))


def _quantised(nbytes: Bytes) -> Bytes:
    """One byte per element, and a float32 scale per block of 256."""
    elements = nbytes // 4
    return elements + 4 * (elements // 256)


def _lr(optimizer: torch.optim.Optimizer) -> str:
    lr = optimizer.param_groups[0].get("lr", 1e-3)
    return f"{float(lr):g}"
