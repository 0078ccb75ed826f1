"""Calls in hot code that could just go: where they stand, what they took in a trace, and the finding."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.finding import Finding
from pyrometer.rules.joining import function_at
from pyrometer.rules.match import Fix, Match, match
from pyrometer.rules.memory.patterns.spent import Spent, calls_of, has_device
from pyrometer.rules.rule import Case, Limit, Module, Rule
from pyrometer.rules.untraced import untraced
from pyrometer.source.edit import delete_statement
from pyrometer.source.index import last_name
from pyrometer.source.rare import conditions

MIN_SHARE = Limit("min_share", 0.01, "below one percent of the step no measurement can tell whether it went")


class Told(NamedTuple):
    """How a rule speaks of a call."""

    does: str
    """What each call does, as a predicate: gives the cached memory back."""
    advice: str


def matches(module: Module, calls: Callable[[Module], Iterator[ast.Call]], told: Told) -> Iterator[Match]:
    """Calls in code that runs in every step, and not seldom within it."""
    for call in calls(module):
        hot, region = module.hot(call), module.region(call)
        if hot is None or _is_meant(module, call) or region.test or region.scripted or module.is_rare(call):
            continue
        statement = module.statement_of(call)
        alone = isinstance(statement, ast.Expr) and statement.value is call
        fix = (
            Fix(fix_class="semantic", title="Delete it", edits=[delete_statement(module, statement)])
            if alone
            else None
        )
        message = f"`{module.source(call)}` {told.does}{hot.during}"
        yield match(call, message, advice=told.advice, fix=fix, hot=hot.why)


def _is_meant(module: Module, call: ast.Call) -> bool:
    """Whether a function exists to do this, called where memory runs short, or an option of the user's asks for it."""
    function = module.function_of(call)
    if function is not None and MEANT.search(function.name):
        return True
    tests = [above.test for above in module.ancestors(call) if isinstance(above, ast.If)]
    names = {getattr(part, "id", getattr(part, "attr", "")) for test in tests for part in ast.walk(test)}
    if any(OPTION.search(name) for name in names):
        return True
    return any(_is_option(part) for test in tests for part in conditions(test))


def _is_option(condition: ast.expr) -> bool:
    """Whether a condition is a switch of the program's: `self.preserve_memory`, but not whether there is a device."""
    name = last_name(condition)
    return name is not None and not isinstance(condition, ast.Call) and DEVICES.search(name) is None


MEANT = re.compile(r"memory|cache|clear|free|clean|release", re.IGNORECASE)
DEVICES = re.compile(r"cuda|gpu|mps|xpu|device|accelerator", re.IGNORECASE)
OPTION = re.compile(r"save_mem|low_?mem|offload|empty_cache|clear_cache|threshold|oom", re.IGNORECASE)


def findings(
    rule: Rule, case: Case, pattern: str, calls: Callable[[Module], Iterator[ast.Call]], told: Told
) -> Iterator[Finding]:
    """Calls whose time shows in the call tree of a trace.

    Args:
        rule: whose finding it is.
        case: with a trace.
        pattern: of the name of the call in the tree.
        calls: finds them in source text, for the exact line.
        told: what to say.
    """
    trace = case.trace
    assert trace is not None
    for spent in calls_of(case, pattern):
        known_hot = bool(case.modules) or spent.calls_per_step * case.num_traced_steps > 1
        if spent.share < case.limit(rule, MIN_SHARE.name) or spent.calls_per_step < 1 or not known_hot:
            continue
        where = _line(spent, case, calls)
        yield rule.finding(
            message=f"{spent.calls_per_step:.3g}×{case.per_step}, {format_percent(spent.share, 2)} of the time: each call {told.does}",
            where=where,
            evidence={"calls_per_step": spent.calls_per_step, "share": round(spent.share, 4)},
            links=[f"/trace/call_tree/{spent.node}"],
            cost=case.cost_of(spent.share, "host time of the calls in the trace"),
            gain=untraced(case, spent.share).gain(
                "removal of the calls; at worst the device hides them, or half of the work comes back elsewhere",
                worst=0.0 if has_device(trace) else 0.5,
            ),
            confidence="high",
            advice=told.advice,
            resource=f"host:{where.file}:{where.line}",
        )


def _line(spent: Spent, case: Case, calls: Callable[[Module], Iterator[ast.Call]]) -> Place:
    """The line of the call, where the source of its function is there; else that of the function."""
    found = function_at(spent.function, case.modules)
    if found is None:
        return spent.function
    module, function = found
    for call in calls(module):
        if module.function_of(call) is function:
            return Place(file=module.path, line=call.lineno, function=spent.function.function)
    return spent.function
