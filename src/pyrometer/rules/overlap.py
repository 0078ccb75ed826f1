"""Which findings account for the same cost: of one resource, at one place, or of more time than a step has."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyrometer.place import Place
from pyrometer.rules.finding import Finding
from pyrometer.rules.joining import function_at, module_of
from pyrometer.rules.rule import Module

MOST = 0.5
"""Share of a symptom's cost from which on what takes that much explains it."""

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def explains(
    cause: Finding, symptom: Finding, modules: Sequence[Module] = (), *, one_track: bool = False
) -> bool:
    """Whether one finding accounts for most of what another costs.

    Args:
        cause: the more specific one.
        symptom: the other.
        modules: source files, which say how far the statement at a line reaches.
        one_track: all time is spent one thing after the other, so that shares that add up to more than a step overlap.
    """
    if not _is_large_enough(cause, symptom):
        return False
    return (
        (_of_one_resource(cause.resource, symptom.resource) and _wins_enough(cause, symptom))
        or stands_within(symptom.where, cause.where, modules)
        or (_adds_up(cause, symptom) and _in_one_function(symptom.where, cause.where, modules))
        or (one_track and _must_overlap(cause, symptom))
    )


def _is_large_enough(cause: Finding, symptom: Finding) -> bool:
    """Whether it takes most of what the symptom takes, as far as both are known."""
    if cause.cost is None or symptom.cost is None:
        return True
    if cause.cost.share is not None and symptom.cost.share is not None:
        return max(cause.cost.share, _saved(cause)) >= MOST * symptom.cost.share
    if cause.cost.bytes is not None and symptom.cost.bytes is not None:
        return cause.cost.bytes >= MOST * symptom.cost.bytes
    return True


def _wins_enough(cause: Finding, symptom: Finding) -> bool:
    """Whether its advice saves, at best, most of what the other's does, as far as both are predicted: else there is more to mend."""
    best, wanted = _best(cause), _best(symptom)
    return best is None or wanted is None or best >= MOST * wanted


def _best(finding: Finding) -> float | None:
    """The share of a step that its advice is predicted to save at best; null where nothing is."""
    gain = finding.advice.gain
    return None if gain is None or gain.ratio_low is None else 1 - gain.ratio_low


def _saved(finding: Finding) -> float:
    """The middle of the share of a step that its advice is predicted to save."""
    gain = finding.advice.gain
    if gain is None or gain.ratio_low is None:
        return 0.0
    return 1 - (gain.ratio_low + (1.0 if gain.ratio_high is None else gain.ratio_high)) / 2


def _of_one_resource(first: str | None, second: str | None) -> bool:
    """The same, or one a part of the other, as `leak:model.py:4` is of `leak`."""
    if first is None or second is None:
        return False
    return first == second or first.startswith(f"{second}:") or second.startswith(f"{first}:")


def stands_within(inner: Place, outer: Place, modules: Sequence[Module]) -> bool:
    """Whether a line is one of the statement, or of the loop, that begins at another."""
    if inner.line is None or outer.line is None or inner.file is None or outer.file is None:
        return False
    module = module_of(outer.file, modules)
    if module is None or module_of(inner.file, modules) is not module:
        return inner.file == outer.file and inner.line == outer.line
    first, last = _reach(module, outer.line)
    return first <= inner.line <= last


def _adds_up(cause: Finding, symptom: Finding) -> bool:
    """Whether the one adds up the time of a function in which the other takes a known part."""
    return symptom.scope == "general" and None not in {
        None if finding.cost is None else finding.cost.share for finding in (cause, symptom)
    }


def _in_one_function(one: Place, other: Place, modules: Sequence[Module]) -> bool:
    """Whether both are in the body of the same function."""
    function = function_at(one, modules)
    return function is not None and function == function_at(other, modules)


def _reach(module: Module, line: int) -> tuple[int, int]:
    """First and last line of the statement at a line; of what has a body only a loop's and a function's count."""
    around = [node for node in module.nodes(ast.stmt) if _begins(node) <= line <= (node.end_lineno or line)]
    innermost = max(around, key=lambda node: (_begins(node), -(node.end_lineno or 0)), default=None)
    if innermost is None:
        return line, line
    whole = isinstance(innermost, (*_LOOPS, ast.FunctionDef, ast.AsyncFunctionDef)) or not hasattr(
        innermost, "body"
    )
    return _begins(innermost), (innermost.end_lineno or line) if whole else line


def _begins(node: ast.AST) -> int:
    return node.lineno  # type: ignore[attr-defined,no-any-return]  # a statement


def _must_overlap(cause: Finding, symptom: Finding) -> bool:
    """Whether both shares of one step leave no room for them to be apart."""
    if cause.cost is None or symptom.cost is None or not cause.cost.share or not symptom.cost.share:
        return False
    return cause.cost.share + symptom.cost.share - 1 >= MOST * symptom.cost.share
