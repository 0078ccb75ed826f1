"""What a leak report says of each place whose tensors stay, sorted by cause."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pyrometer.advice import Cost
from pyrometer.place import Place
from pyrometer.quantity import format_bytes
from pyrometer.rules.finding import Finding, Severity
from pyrometer.rules.rule import Case, Module, Rule

if TYPE_CHECKING:
    from pyrometer.memory.profile import LeakReport, LeakSite

Cause = Literal["cycle", "graph", "container", "other"]

GROWING = ("append", "appendleft", "extend", "add", "insert", "update", "setdefault", "put")
"""Methods that put something into a container."""

LASTS_STEPS = 1e9
"""Memory that lasts for so many steps lasts for any run."""

EXAMPLE = "# for example: "
"""Begins a line with a name that is not known."""

_NAMES = re.compile(r"[A-Za-z_]\w*")


def cause_of(site: LeakSite) -> Cause:
    """Why what a site makes stays."""
    if site.root == "reference cycle":
        return "cycle"
    if site.graph_bytes or site.nodes_per_step or site.graph_state in ("alive", "hooked", "shell"):
        return "graph"
    return "container" if site.container is not None else "other"


def sites(case: Case, *causes: Cause) -> Iterator[tuple[int, LeakSite]]:
    """The sites of these causes, with their numbers in the report."""
    leak = case.memory.leak if case.memory is not None else None
    if leak is not None and leak.verdict in ("leak", "growing cache"):
        for number, site in enumerate(leak.sites):
            if cause_of(site) in causes:
                yield number, site


def severity_of(leak: LeakReport, lasts_steps: float = LASTS_STEPS) -> Severity:
    """An error only where it will end in one."""
    ends = leak.unbounded and (leak.eta_steps is None or leak.eta_steps < lasts_steps)
    return "error" if ends else "warning"


def leak_finding(
    rule: Rule, case: Case, number: int, site: LeakSite, *, message: str, advice: str
) -> Finding:
    """A finding about one site, at the line where its holder takes what stays."""
    leak = case.memory.leak if case.memory is not None else None
    return rule.finding(
        severity="warning" if leak is None else severity_of(leak),
        message=message,
        where=held_at(site, case) or Place(file=site.file, line=site.line, op=site.operator),
        evidence={
            "bytes_per_step": site.bytes_per_step,
            "nodes_per_step": site.nodes_per_step,
            "holder": site.holder,
            "container": site.container,
            "made_at": f"{site.file}:{site.line}" if site.file else None,
            "chain": site.chain,
        },
        links=[f"/memory/leak/sites/{number}"],
        cost=Cost(bytes=round(site.bytes_per_step), method="live tensor bytes that stay with each step"),
        confidence="high" if site.kind in ("leak", "cache") else "medium",
        advice=advice,
        **fix_fields(site),
        resource=f"leak:{site.file}:{site.line}",
    )


def fix_fields(site: LeakSite) -> dict[str, str | None]:
    """The line that lets go, as a rewrite; as a sketch where a name in it is not the program's own."""
    fix = site.fix or ""
    return {"sketch": fix.removeprefix(EXAMPLE)} if fix.startswith(EXAMPLE) else {"rewrite": fix or None}


def rate(site: LeakSite) -> str:
    """By how much it grows, in words."""
    text = (
        format_bytes(site.bytes_per_step)
        if site.bytes_per_step
        else f"{site.nodes_per_step:.3g} nodes of its graph"
    )
    return f"{text} per step"


def held_at(site: LeakSite, case: Case) -> Place | None:
    """The one line of the source where the holder is added to; nothing where there are several, or none."""
    names = _NAMES.findall((site.holder or "").partition("[")[0])
    if not names:
        return None
    owner = names[-2] if len(names) > 1 else None
    definitions = {
        (module.path, node.lineno): module.class_of(node)
        for module in case.modules
        for node in _growing(module, names[-1])
    }
    own = [place for place, around in definitions.items() if around is not None and around.name == owner]
    chosen = own if len(definitions) > 1 else list(definitions)
    return Place(file=chosen[0][0], line=chosen[0][1]) if len(chosen) == 1 else None


def _growing(module: Module, name: str) -> Iterator[ast.stmt | ast.Call]:
    for call in module.method_calls(*GROWING):
        if isinstance(call.func, ast.Attribute) and last_name(call.func.value) == name:
            yield call
    for assignment in module.nodes(ast.Assign):
        if any(
            isinstance(target, ast.Subscript) and last_name(target.value) == name
            for target in assignment.targets
        ):
            yield assignment
    for addition in module.nodes(ast.AugAssign):
        if last_name(addition.target) == name:
            yield addition


def last_name(expression: ast.expr) -> str | None:
    """The last part of a dotted name, `buffer` of `self.buffer` and of `self.buffer[key]`.

    >>> last_name(ast.parse("self.buffer[0]", mode="eval").body)
    'buffer'
    """
    if isinstance(expression, ast.Subscript):
        return last_name(expression.value)
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else None
