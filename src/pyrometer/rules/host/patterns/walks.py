"""Loops of the user's that take a good part of a step, by the profile of the host, and what their rounds are made of."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.quantity import Ratio, format_percent
from pyrometer.rules.host.patterns.spending import MOST_NAMES, is_certain, removal
from pyrometer.rules.host.patterns.suppression import suppressions
from pyrometer.rules.joining import function_at, module_of
from pyrometer.rules.places import place_of, spoken
from pyrometer.source.index import Loop
from pyrometer.text import one_line

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLoop
    from pyrometer.rules.case import Case
    from pyrometer.rules.finding import Finding
    from pyrometer.rules.rule import Rule
    from pyrometer.source.module import Module
    from pyrometer.trace.reporting.totals import LineTotal

OPERATORS = frozenset({"operator", "allocation"})
"""Kinds of leaves that are calls of torch."""

ELSEWHERE = frozenset({
    "backward", "data", "logging", "print", "file", "fsync", "process", "network",
    "torch.save", "pickle", "json", "copy", "regex", "hash", "lock", "sleep", "import", "garbage",
})  # fmt: skip
"""Kinds of leaves that another rule speaks of, or that no rewriting of a loop makes shorter."""

FEWEST_ROUNDS = 16.0
"""Per step, of a loop over elements: fewer are layers, heads or levels."""

FEWEST_AT_ONCE = 8.0
"""Each time the loop is entered: fewer are coordinates or cases."""

Walked = Loop | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Walk(NamedTuple):
    """One loop with its share of a step."""

    loop: HostLoop
    link: str
    share: Ratio
    operators: Ratio
    """Part of its time in calls of torch."""
    elsewhere: Ratio
    """Part of its time in what another rule speaks of."""
    traced: LineTotal | None
    """The loop's function in the trace."""

    @property
    def worth(self) -> Ratio:
        """Its share of the step, less what another rule speaks of."""
        return self.share * (1 - self.elsewhere)

    @property
    def by_python(self) -> Ratio:
        """Part of its time in Python, NumPy, reading tensors and the like."""
        return max(0.0, 1 - self.operators - self.elsewhere)


def walks(case: Case, min_share: Ratio) -> list[Walk]:
    """The innermost loops with many rounds that take at least this share of a step, without those that repeat the step itself."""
    profile = case.host
    if profile is None:
        return []
    found = [
        walk
        for number, loop in enumerate(profile.loops)
        if _has_many_rounds(case, loop) and not _suppresses(case, loop)
        for walk in [_walk(case, number)]
        if walk.share >= min_share and (is_certain(profile, walk.share) or _is_traced(walk, min_share))
    ]
    return [walk for walk in found if not any(_holds(case, walk, other, min_share) for other in found)]


def _is_traced(walk: Walk, min_share: Ratio) -> bool:
    """Whether the trace has seen as much in the loop's function, where samples are few."""
    return walk.traced is not None and walk.traced.host_share >= min_share and walk.operators > 0


def node_of(case: Case, loop: HostLoop) -> tuple[Module, Walked] | None:
    """The loop or comprehension in the source."""
    module = module_of(loop.where.file, case.modules)
    if module is None:
        return None
    comprehensions = module.nodes(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    for node in (*module.nodes(ast.For, ast.AsyncFor, ast.While), *comprehensions):
        if node.lineno == loop.where.line:
            return module, node
    return None


def _walk(case: Case, number: int) -> Walk:
    assert case.host is not None
    loop = case.host.loops[number]
    in_operators = sum(leaf.seconds_per_step for leaf in loop.leaves if leaf.kind in OPERATORS)
    elsewhere = sum(leaf.seconds_per_step for leaf in loop.leaves if leaf.kind in ELSEWHERE)
    traced = _traced(case, loop)
    return Walk(
        loop=loop,
        link=f"/host/loops/{number}",
        share=min(1.0, case.host.share(loop.total_s + in_operators * _backward(traced))),
        operators=min(1.0, in_operators / loop.total_s),
        elsewhere=min(1.0, elsewhere / loop.total_s),
        traced=traced,
    )


def _traced(case: Case, loop: HostLoop) -> LineTotal | None:
    """The function around a loop in the trace, which names the line of its `def`."""
    if case.trace is None:
        return None
    function = function_at(loop.where, case.modules)
    return next(
        (
            line
            for line in case.trace.top_lines
            if function is not None and function_at(line, case.modules) == function
        ),
        None,
    )


def _backward(traced: LineTotal | None) -> Ratio:
    """What the backward pass takes of operators of a function, for each second that they take forward."""
    return traced.backward_ns / traced.forward_ns if traced is not None and traced.forward_ns else 0.0


def _has_many_rounds(case: Case, loop: HostLoop) -> bool:
    """Whether a loop goes over elements: by its rounds; where they were not counted, unless its rounds are the steps."""
    if loop.rounds_per_step is not None:
        entered = max(loop.entered_per_step or 1.0, 1.0)
        return loop.rounds_per_step >= max(FEWEST_ROUNDS, FEWEST_AT_ONCE * entered)
    found = node_of(case, loop)
    if found is None:
        return False
    module, node = found
    return not isinstance(node, Loop) or module.heat.loops.why(node) is None


def _suppresses(case: Case, loop: HostLoop) -> bool:
    """Whether it is part of a loop that a rule of its own knows."""
    module = module_of(loop.where.file, case.modules)
    return module is not None and any(known.holds(loop.where.line or 0) for known in suppressions(module))


def _holds(case: Case, outer: Walk, inner: Walk, min_share: Ratio) -> bool:
    """Whether a loop has little time but that of another one within it."""
    if outer is inner or outer.worth - inner.worth >= min_share or inner.worth > outer.worth * 1.02:
        return False
    one, other = node_of(case, outer.loop), node_of(case, inner.loop)
    if one is not None and other is not None and one[0] is other[0]:
        if other[1] in one[0].ancestors(one[1]):
            return False
        if one[1] in one[0].ancestors(other[1]):
            return True
    overlap = outer.share + inner.share > 1.1
    return overlap and (outer.loop.rounds_per_step or 0) < (inner.loop.rounds_per_step or 0)


def walk_finding(rule: Rule, case: Case, walk: Walk, *, what: str, stays: Ratio, advice: str) -> Finding:
    """A finding about a loop.

    Args:
        rule: that speaks.
        case: with the profile.
        walk: the loop.
        what: it does, as the verb of a sentence.
        stays: part of its time that is left at worst.
        advice: what to do.
    """
    assert case.host is not None
    loop = walk.loop
    place = place_of(case, loop.where)
    spent = [(leaf.name, case.host.share(leaf.seconds_per_step)) for leaf in loop.leaves[:MOST_NAMES]]
    rounds = f", {loop.rounds_per_step:,.0f} rounds per step," if loop.rounds_per_step else ""
    return rule.finding(
        message=f"the loop over `{one_line(loop.over)}`{spoken(place)} {what}{rounds} and takes {format_percent(walk.share)} of the step "
        f"({', '.join(f'`{name}` {format_percent(share)}' for name, share in spent)})",
        where=place,
        evidence={
            "share": walk.share,
            "rounds_per_step": loop.rounds_per_step,
            "entered_per_step": loop.entered_per_step,
            "operators_share": walk.operators,
            "python_share": walk.by_python,
        },
        links=[walk.link],
        cost=case.cost_of(
            walk.share,
            "samples of the host's time in the rounds of the loop, and what the trace shows of their backward pass",
        ),
        gain=removal(case.host, walk.share, stays=stays),
        confidence="high" if loop.rounds_per_step is not None else "medium",
        advice=advice,
        resource="launch" if walk.operators > walk.by_python else None,
    )
