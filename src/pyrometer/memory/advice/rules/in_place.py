"""Results that could be written where their operand is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torch import nn

from pyrometer.advice import Advice
from pyrometer.memory.advice.case import Case
from pyrometer.memory.advice.lives import Life
from pyrometer.memory.advice.observing import Observed, Use
from pyrometer.memory.advice.rules.checkpointing import shown
from pyrometer.quantity import counted, format_bytes
from pyrometer.workload.inference import Inference


class Instead(NamedTuple):
    """How an operator is written, and how it is written in place."""

    written: str  # as a regular expression
    use: str


OPERATORS = {
    "relu": Instead("relu", "F.relu(x, inplace=True)"),
    "leaky_relu": Instead("leaky_relu", "F.leaky_relu(x, inplace=True)"),
    "elu": Instead("elu", "F.elu(x, inplace=True)"),
    "hardtanh": Instead("hardtanh|relu6", "F.hardtanh(x, inplace=True)"),
    "hardswish": Instead("hardswish", "F.hardswish(x, inplace=True)"),
    "hardsigmoid": Instead("hardsigmoid", "F.hardsigmoid(x, inplace=True)"),
    "silu": Instead("silu", "F.silu(x, inplace=True)"),
    "mish": Instead("mish", "F.mish(x, inplace=True)"),
    "native_dropout": Instead("dropout", "F.dropout(x, training=self.training, inplace=True)"),
    "sigmoid": Instead("sigmoid", "x.sigmoid_()"),
    "tanh": Instead("tanh", "x.tanh_()"),
    "exp": Instead(r"exp\(", "x.exp_()"),
    "sqrt": Instead("sqrt", "x.sqrt_()"),
    "clamp": Instead("clamp|clip", "x.clamp_(…)"),
    "clamp_min": Instead("clamp", "x.clamp_(min=…)"),
    "masked_fill": Instead("masked_fill", "x.masked_fill_(mask, value)"),
    "add": Instead(r"\+|add\(", "x += y"),
    "sub": Instead(r"-|sub\(", "x -= y"),
    "mul": Instead(r"\*|mul\(", "x *= y"),
    "div": Instead("/|div", "x /= y"),
}
"""Operators that can write into what they read."""


def in_place(case: Case) -> Iterator[Advice]:
    """Activations and arithmetic whose operand nothing reads again, and autograd has not saved."""
    observed, lives = case.observed, case.lives
    if observed is None or lives is None:
        return
    peak = observed.log.peak_event
    changed: dict[int, list[Life]] = {}
    merged: dict[int, int] = {}  # result → the allocation that it is written into
    at_peak: list[tuple[Use, int]] = []
    for use, operand, result in _pairs(observed):
        if not _is_writable(case, use, result):
            continue
        home = merged.get(operand, operand)
        merged[result] = home
        whole = changed.get(home, [lives[home]])[0]
        changed[home] = [whole._replace(died=max(whole.died, lives[result].died))]
        changed[result] = []
        if case.allocation(operand).alive_after(peak) and case.allocation(result).alive_after(peak):
            at_peak.append((use, result))
    saving = case.relived(changed)
    if saving is None or not at_peak:
        return
    results = [result for _, result in at_peak]
    nbytes = sum(case.allocation(index).nbytes for index in results)
    yield Advice(
        slug="in-place",
        fix_class="exact",
        title="write results in place where nothing else reads the operand",
        why=f"{case.where}; then {counted(len(results), 'result')} with {format_bytes(nbytes)} stand beside operands that are not "
        f"read again and not saved for the backward pass: {case.lines(results)}",
        sketch=_use(case, at_peak),
        effect="the same values; at the peak one buffer instead of two. Autograd raises an error where a saved value would be "
        "overwritten",
        gain=saving.gain,
        where=case.main_line(results),
    )


def _pairs(observed: Observed) -> Iterator[tuple[Use, int, int]]:
    """Operator, operand and result, where the operand could be overwritten."""
    last = observed.last_uses()
    log = observed.log
    for use in observed.uses:
        new = [index for index in use.results if index not in use.arguments]
        if use.backward or _name(use) not in OPERATORS or not new:
            continue
        result = log.allocations[new[0]]
        for operand in use.arguments:
            allocation = log.allocations[operand]
            free = (
                allocation.category is None
                and not allocation.saved
                and not allocation.preexisting
                and allocation.settled != "inputs"
            )
            fits = allocation.nbytes == result.nbytes and allocation.dtype == result.dtype
            if free and fits and last[operand] == use.event and operand not in observed.returned:
                yield use, operand, new[0]
                break


def _is_writable(case: Case, use: Use, result: int) -> bool:
    """Whether a module has a switch for it, or the user's line itself says it."""
    site = case.site(result)
    if hasattr(_module(case, case.allocation(result).origin.module), "inplace"):
        return True
    return site is not None and re.search(OPERATORS[_name(use)].written, site.source or "") is not None


def _name(use: Use) -> str:
    return use.operator.split(".")[1]


def _use(case: Case, at_peak: list[tuple[Use, int]]) -> str:
    """What to write, by module where a module has the switch."""
    modules: dict[str, list[str]] = {}
    lines: dict[str, None] = {}
    for use, result in at_peak:
        path = case.allocation(result).origin.module
        module = _module(case, path)
        if path is not None and hasattr(module, "inplace"):
            modules.setdefault(type(module).__name__, []).append(path)
        else:
            site = case.site(result)
            place = f"  # {site.place}" if site is not None else ""
            lines[f"{OPERATORS[_name(use)].use}{place}"] = None
    switched = [
        f"nn.{kind}(inplace=True)  # {shown(list(dict.fromkeys(paths)))}" for kind, paths in modules.items()
    ]
    return "\n".join([*switched, *lines])


def _module(case: Case, path: str | None) -> nn.Module | None:
    """The module at a path, of the model or the loss."""
    work = case.work
    if path is None:
        return None
    models: list[nn.Module] = case.training.parts.modules if case.training is not None else []
    if isinstance(work, Inference):
        models = [work.model]
    for model in models:
        plain: nn.Module = getattr(model, "_orig_mod", model)
        module: nn.Module | None = dict(plain.named_modules()).get(path)
        if module is not None:
            return module
    return None
