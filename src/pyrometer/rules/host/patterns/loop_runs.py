"""The loops of the user's that took a good part of a step: how often they went round, what that took and what it was made of.

One record for all rules about loops. It comes from the profile of the host, joined with the trace of the loop's function and
with the source; of a trace alone from the functions that issue many short calls, and the loops that the source shows there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import Ratio, Seconds, format_percent
from pyrometer.rules.finding import Finding
from pyrometer.rules.host.patterns.loops import ElementLoop, element_loops
from pyrometer.rules.host.patterns.recurrent_cells import OVER_TIME, layer_for
from pyrometer.rules.host.patterns.rounds import frames_of, repeated_ns, rounds_of, work_share
from pyrometer.rules.host.patterns.spending import MOST_NAMES, is_certain, spread
from pyrometer.rules.host.patterns.starvation import starvation
from pyrometer.rules.host.patterns.suppression import suppressions
from pyrometer.rules.joining import FunctionNode, function_at, module_of
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Module, Rule
from pyrometer.rules.surroundings import backward_s
from pyrometer.rules.untraced import Share, untraced
from pyrometer.source.index import Loop
from pyrometer.source.value import Kind
from pyrometer.text import one_line

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLeaf, HostLoop, HostProfile
    from pyrometer.trace.records.device import CallSite
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

PYTHON_STAYS = 0.2
"""Of the time in Python and NumPy at worst: calls on whole arrays take some, too."""

WORK_UNKNOWN = 0.25
"""Of the time in operators, that may be work and not dispatch, where no trace tells."""

MOST_WORK_STAYS = 0.6
"""Of the time in operators: work on small parts is slower than the same on all of them, and on a busy machine dispatch looks like work."""

CARRIED_STAYS = 0.6
"""Of loops whose rounds depend on each other at worst: only what does not depend goes, or the dispatch within a round."""

CARRIED_CALLS = 10.0
"""Of each of their rounds at best: a ready-made layer issues as many, nested ones included."""

OVER_WEIGHTS = re.compile(r"\b(parameters|named_parameters|buffers|state_dict)\(")
"""What a loop over the weights of a model goes over."""

OF_WEIGHTS = (
    "Do it for all weights by a few calls: `torch._foreach_lerp_(averaged, weights, 1 - decay)`, `torch._foreach_norm(gradients)` and the other "
    "`torch._foreach_…` functions take lists of tensors, which are made once; under `torch.no_grad()`, where they change weights. Averages of weights are "
    "ready-made: `torch.optim.swa_utils.AveragedModel`."
)

Walked = Loop | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class LoopRun(NamedTuple):
    """One loop, as it ran in a step."""

    where: Place
    over: str
    """What it goes over, as it is written."""
    link: str
    share: Share
    """Of a step, with the backward pass of what it runs; without the profiler."""
    told: Ratio
    """The same as one figure."""
    beside: Ratio
    """Share of the loops after or before it in the same function that go over the same, which go with it at best."""
    operators: Ratio
    """Part of its time in calls of torch."""
    elsewhere: Ratio
    """Part of its time in what another rule speaks of."""
    work: Ratio
    """Part of its time in operators that is more than dispatch."""
    leaves: tuple[HostLeaf, ...] = ()
    total_s: Seconds = 0.0
    """Per step, by samples."""
    rounds: float | None = None
    """Per step, where they were counted."""
    entered: float | None = None
    calls: float | None = None
    """Operators per step that its function issues, by the trace; of a trace alone the short ones."""
    traced: LineTotal | None = None
    """Its function in the trace."""
    found: tuple[Module, Walked] | None = None
    element: ElementLoop | None = None
    """Where the source shows that it goes over the elements of a tensor and its rounds do not depend on each other."""

    @property
    def worth(self) -> Ratio:
        """Its share of the step, less what another rule speaks of."""
        return self.told * (1 - self.elsewhere)

    @property
    def by_python(self) -> Ratio:
        """Part of its time in Python, NumPy, reading tensors and the like."""
        return max(0.0, 1 - self.operators - self.elsewhere)

    @property
    def once(self) -> Ratio:
        """Part of its time that is left at best: one round each time it is entered, or a few calls of rounds that depend on each other."""
        if not self.rounds:
            return 0.0
        if self.is_carried and self.calls:
            return min(CARRIED_STAYS / 2, CARRIED_CALLS * self.rounds / self.calls)
        return min(1.0, max(self.entered or 1.0, 1.0) / self.rounds)

    @property
    def is_carried(self) -> bool:
        """Whether a round reads a name before it gives it a value, so that it is the one of the round before; numbers aside."""
        return self.element is None and self.found is not None and carries_over(*self.found)

    @property
    def around(self) -> ast.For | None:
        """The outermost loop of the function around one that is carried, of which no round depends on another; those that step aside."""
        if not self.is_carried or self.found is None:
            return None
        module, node = self.found
        loops = [loop for loop in module.loops_around(node) if isinstance(loop, ast.For)]
        free = [
            loop for loop in loops if not carries_over(module, loop) and module.heat.loops.why(loop) is None
        ]
        return free[-1] if free else None

    @property
    def stays(self) -> Ratio:
        """Part of its time that is left at worst where its rounds become one."""
        work = min(self.work, MOST_WORK_STAYS)
        stays = self.elsewhere + self.operators * work + self.by_python * PYTHON_STAYS
        return min(1.0, max(stays, self.once, CARRIED_STAYS if self.is_carried else 0.0))


def _names_in_order(statements: Iterable[ast.stmt]) -> Iterator[list[ast.Name]]:
    """The names of each statement, and of the head of what has a body before those of the body."""
    for statement in statements:
        bodies = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
        inner = [part for body in bodies for part in body]
        heads = [part for part in ast.iter_child_nodes(statement) if part not in inner]
        yield [name for head in heads for name in ast.walk(head) if isinstance(name, ast.Name)]
        yield from _names_in_order(inner)


def carries_over(module: Module, node: Walked) -> bool:
    """Whether a round of a loop reads what the round before has left, numbers aside."""
    if not isinstance(node, ast.For | ast.While):
        return False
    names = list(_names_in_order(node.body))
    given = {name.id for part in names for name in part if isinstance(name.ctx, ast.Store)}
    for part in names:
        read = [name for name in part if isinstance(name.ctx, ast.Load) and name.id in given]
        if any(module.value_of(name).kind is not Kind.HOST for name in read):
            return True
        given -= {name.id for name in part if isinstance(name.ctx, ast.Store)}
    return False


def loop_runs(case: Case, min_share: Ratio) -> list[LoopRun]:
    """The innermost loops with many rounds that take at least this share of a step, without those that repeat the step itself."""
    profile = case.host
    if profile is None:
        return [run for run in _traced_runs(case) if run.told >= min_share]
    runs = [
        run
        for number, loop in enumerate(profile.loops)
        if _has_many_rounds(case, loop) and not _suppresses(case, loop)
        for run in [_sampled_run(case, number)]
        if run.told >= min_share and (is_certain(profile, run.told) or _is_traced(case, run, min_share))
    ]
    return [run for run in runs if not any(_holds(run, other, min_share) for other in runs)]


def _is_traced(case: Case, run: LoopRun, min_share: Ratio) -> bool:
    """Whether the trace has seen as much in the loop's function, with what that calls, where samples are few."""
    if run.traced is None or case.trace is None or not run.operators:
        return False
    below_ns = sum(frame.total_ns for frame in frames_of(case.trace, run.traced, run.traced.function))
    return max(run.traced.host_share, below_ns / max(case.trace.span_ns, 1)) >= min_share


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


def _sampled_run(case: Case, number: int) -> LoopRun:
    profile = case.host
    assert profile is not None
    loop = profile.loops[number]
    in_operators = sum(leaf.seconds_per_step for leaf in loop.leaves if leaf.kind in OPERATORS)
    elsewhere = sum(leaf.seconds_per_step for leaf in loop.leaves if leaf.kind in ELSEWHERE)
    function = function_at(loop.where, case.modules)
    traced = None if function is None else _traced(case, function)
    work = None if traced is None or case.trace is None else work_share(case.trace, traced, traced.function)
    backward = 0.0 if function is None else _backward_s(case, loop, in_operators, function)
    share = profile.share(loop.total_s + backward)
    found = node_of(case, loop)
    are_steps = _are_steps(case, loop)
    return LoopRun(
        where=loop.where,
        over=loop.over,
        link=f"/host/loops/{number}",
        share=_counted(case, traced, spread(profile, share)),
        told=share,
        beside=profile.share(_beside_s(profile, loop, found)),
        operators=min(1.0, in_operators / loop.total_s),
        elsewhere=min(1.0, elsewhere / loop.total_s),
        work=WORK_UNKNOWN if work is None else work,
        leaves=tuple(loop.leaves),
        total_s=loop.total_s,
        rounds=None if are_steps else loop.rounds_per_step,
        entered=None if are_steps else loop.entered_per_step,
        calls=None if traced is None or are_steps else traced.num_ops / case.num_traced_steps,
        traced=traced,
        found=found,
        element=element_of(found),
    )


def _counted(case: Case, traced: LineTotal | None, sampled: Share) -> Share:
    """The same, no less at most than the trace shows, which misses no round where samples are few."""
    if traced is None or case.trace is None:
        return sampled
    most = min(1.0, repeated_ns(case.trace, traced, traced.function) / max(case.trace.span_ns, 1))
    return sampled._replace(most=max(sampled.most, most))


def _beside_s(profile: HostProfile, loop: HostLoop, found: tuple[Module, Walked] | None) -> Seconds:
    """What other loops of the function over the same take, none within another."""
    if found is None:
        return 0.0
    first, last = found[1].lineno, found[1].end_lineno or found[1].lineno
    place = (loop.where.file, loop.where.function, loop.over)
    around = {node.lineno for node in found[0].ancestors(found[1]) if isinstance(node, Walked)}
    return sum(
        other.total_s
        for other in profile.loops
        if (other.where.file, other.where.function, other.over) == place
        and other.where.line not in around
        and not first <= (other.where.line or 0) <= last
    )


def _traced(case: Case, function: tuple[Module, FunctionNode]) -> LineTotal | None:
    """A function in the trace, which names the line of its `def`."""
    lines = case.trace.top_lines if case.trace is not None else []
    return next((line for line in lines if function_at(line, case.modules) == function), None)


def _backward_s(
    case: Case, loop: HostLoop, in_operators: Seconds, function: tuple[Module, FunctionNode]
) -> Seconds:
    """What the backward pass takes of the operators of a loop: of its function's as much as of these."""
    if case.host is None or not in_operators:
        return 0.0
    lines = (line for line in case.host.lines if line.where.function == loop.where.function)
    around = sum(leaf.seconds_per_step for line in lines for leaf in line.leaves if leaf.kind in OPERATORS)
    return backward_s(case, function) * min(1.0, in_operators / max(around, in_operators))


def _has_many_rounds(case: Case, loop: HostLoop) -> bool:
    """Whether a loop goes over elements: by its rounds; where they were not counted, unless its rounds are the steps."""
    if loop.rounds_per_step is not None:
        entered = max(loop.entered_per_step or 1.0, 1.0)
        many = loop.rounds_per_step >= max(FEWEST_ROUNDS, FEWEST_AT_ONCE * entered)
        return many or _are_steps(case, loop)
    found = node_of(case, loop)
    if found is None:
        return False
    module, node = found
    return not isinstance(node, Loop) or module.heat.loops.why(node) is None


def _are_steps(case: Case, loop: HostLoop) -> bool:
    """Whether its rounds are what was counted as steps, though it goes over the elements of a tensor: a model called for each.

    The watched steps then hold a round each, and hardly a beginning of the loop. Rounds that train are steps by themselves.
    """
    if not 0.5 < (loop.rounds_per_step or 0.0) < 2 or (loop.entered_per_step or 0.0) > 1 / FEWEST_AT_ONCE:
        return False
    if any(leaf.kind in {"backward", "data"} for leaf in loop.leaves):
        return False
    return element_of(node_of(case, loop)) is not None


def element_of(found: tuple[Module, Walked] | None) -> ElementLoop | None:
    """What the source shows of a loop, if it goes over the elements of a tensor."""
    loops = element_loops(found[0]) if found is not None else ()
    return next((loop for loop in loops if found is not None and loop.loop.node is found[1]), None)


def _suppresses(case: Case, loop: HostLoop) -> bool:
    """Whether it is part of a loop that a rule of its own knows."""
    module = module_of(loop.where.file, case.modules)
    return module is not None and any(known.holds(loop.where.line or 0) for known in suppressions(module))


def _holds(outer: LoopRun, inner: LoopRun, min_share: Ratio) -> bool:
    """Whether a loop has little time but that of another one within it."""
    if outer is inner or outer.worth - inner.worth >= min_share or inner.worth > outer.worth * 1.02:
        return False
    one, other = outer.found, inner.found
    if one is not None and other is not None and one[0] is other[0]:
        if other[1] in one[0].ancestors(one[1]):
            return False
        if one[1] in one[0].ancestors(other[1]):
            return True
    overlap = outer.told + inner.told > 1.1
    return overlap and (outer.rounds or 0) < (inner.rounds or 0)


def _traced_runs(case: Case) -> Iterator[LoopRun]:
    """Of a trace alone: the longest loop over elements in each function that issues many short calls."""
    report = case.trace
    if report is None or not report.span_ns:
        return
    device = report.launches.device
    sites = device.sites if device is not None else report.launches.host.sites
    base = "/trace/launches/device/sites" if device is not None else "/trace/launches/host/sites"
    for index, site in enumerate(sites):
        function = function_at(site.where, case.modules)
        if function is None:
            continue
        module, node = function
        loops = [loop for loop in element_loops(module) if module.function_of(loop.loop.node) is node]
        if not loops:
            continue
        longest = max(loops, key=lambda loop: len(loop.operations))
        least, most = _traced_share(case, site)
        yield LoopRun(
            where=place_of(case, site.where, line=longest.loop.lineno),
            over=longest.tensor,
            link=f"{base}/{index}",
            share=Share(untraced(case, least, short=True).least, untraced(case, most, short=True).most),
            told=most,
            beside=0.0,
            operators=1.0,
            elsewhere=0.0,
            work=0.0,
            calls=site.calls / case.num_traced_steps,
            element=longest,
        )


def _traced_share(case: Case, site: CallSite) -> tuple[Ratio, Ratio]:
    """Share of the span that the loop's short calls take for certain, and that all of its rounds but one take."""
    report = case.trace
    assert report is not None
    starved = starvation(case)
    if starved is not None and report.launches.device is not None:
        launches = report.launches.device
        waits = starved.share * site.calls / max(launches.num_work, 1)
        return site.total_ns / report.span_ns, min(1.0, site.total_ns / report.span_ns + waits)
    rounds = rounds_of(report, site.where, site.where.function)
    if rounds is not None:
        gone = (1 - 1 / rounds.per_call) / report.span_ns
        return min(1.0, rounds.short_ns * gone), min(1.0, rounds.total_ns * gone)
    place = (site.where.file, site.where.line)
    own = sum(line.self_ns for line in report.top_lines if (line.file, line.line) == place) / report.span_ns
    short = site.total_ns / report.span_ns
    return short, min(1.0, max(own, short))


def _advised(run: LoopRun, advice: str) -> str:
    """What to do about a loop, where more is known than its rule knows: what it goes over, or which loop around it is free."""
    if OVER_WEIGHTS.search(run.over):
        return OF_WEIGHTS
    layer = layer_for(*run.found) if run.found is not None else None
    if layer is not None:
        return OVER_TIME.format(layer=layer)
    outer = run.around
    if outer is None:
        return advice
    return (
        f"The rounds of the loop over `{one_line(ast.unparse(outer.iter))}` around it (line {outer.lineno}) do not depend on each other: "
        "go through this one once for all of them, with one more dimension."
    )


def loop_finding(rule: Rule, case: Case, run: LoopRun, *, what: str, advice: str, **fields: Any) -> Finding:
    """A finding about a loop.

    Args:
        rule: that speaks.
        case: with the profile.
        run: the loop.
        what: it does, as the verb of a sentence.
        advice: what to do.
        fields: others of the finding.
    """
    place = place_of(case, run.where)
    spent = ""
    if case.host is not None:
        leaves = [(leaf.name, case.host.share(leaf.seconds_per_step)) for leaf in run.leaves[:MOST_NAMES]]
        spent = f" ({', '.join(f'`{name}` {format_percent(share)}' for name, share in leaves)})"
    counted = [
        f"{count:,.0f} {of}" for count, of in ((run.rounds, "rounds"), (run.calls, "operators")) if count
    ]
    often = f", {' and '.join(counted)} per step," if counted else ""
    return rule.finding(
        message=f"the loop over `{one_line(run.over)}`{spoken(place)} {what}{often} and takes {format_percent(run.told)} of the step"
        f"{spent}",
        where=place,
        evidence={
            "share": run.told,
            "rounds_per_step": run.rounds,
            "entered_per_step": run.entered,
            "calls_per_step": run.calls,
            "operators_share": run.operators,
            "python_share": run.by_python,
        },
        links=[run.link],
        cost=case.cost_of(
            run.told,
            "samples of the host's time in the rounds of the loop, and what the trace shows of their backward pass"
            if run.leaves
            else "trace: time of the loop's rounds, or of its function, as a share of the span",
        ),
        gain=Gain(
            ratio_low=max(0.0, 1 - min(1.0, run.share.most + run.beside) * (1 - run.once)),
            ratio_high=1 - run.share.least * (1 - run.stays),
            method=f"removal: all rounds but one; at worst {format_percent(run.stays)} of the loop's time stays",
        ),
        confidence="high" if run.rounds is not None or not run.leaves else "medium",
        advice=_advised(run, advice),
        resource="launch" if run.operators > run.by_python else None,
        **fields,
    )
