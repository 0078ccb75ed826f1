"""Why a gate regressed: what changed in operators, breaks, allocations, lines and findings, with the line on the head's side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from pyrometer.bench.stage import Progress
from pyrometer.compiler.difference import diff_compile
from pyrometer.compiler.wording import recompile_text
from pyrometer.errors import PyrometerError
from pyrometer.evidence.evidence import Evidence
from pyrometer.guard import protocol
from pyrometer.guard.gate import Cause, Gate, GuardReport
from pyrometer.guard.observed import Counted
from pyrometer.guard.pairs import ASK_S
from pyrometer.memory.difference import diff_memory
from pyrometer.place import Place
from pyrometer.quantity import format_bytes, format_seconds
from pyrometer.record import Record, doc
from pyrometer.rules.explain import explain
from pyrometer.trace.difference.compare import diff_traces
from pyrometer.trace.reading.read import read_trace

if TYPE_CHECKING:
    from pyrometer.guard.check import GuardJob

MOST_CAUSES = 6
MOST_BENCHMARKS = 5
"""Of those that regressed, how many are observed; each takes some seconds a side."""

OBSERVE_S = 3.0
LEAST_SHARE = 0.02
"""Of the step, below which a change of time is not told."""

LEAST_GROWTH = 1.5
"""A line or an operator grew where it takes so many times as long: two observations differ by chance, too."""


class Explained(Record, frozen=True, kw_only=True):
    """What was observed of one side."""

    evidence: Evidence
    trace: Annotated[str | None, doc("file of its trace")] = None


def explain_regressions(job: GuardJob, report: GuardReport, tell: Progress) -> GuardReport:
    """Say of each gate that regressed what differs between the sides; of times both are observed for that."""
    regressed = [gate for gate in report.gates if gate.outcome == "regressed"]
    names = list(dict.fromkeys(gate.benchmark for gate in regressed))
    causes = {name: counted_causes(job.counted.get(name, {})) for name in names}
    timed = list(dict.fromkeys(gate.benchmark for gate in regressed if gate.kind == "time"))
    notes: list[str] = []
    for number, name in enumerate(timed[:MOST_BENCHMARKS]):
        tell(number / len(timed), f"finding out why {name} is slower")
        try:
            causes[name]["time"] = observed_causes(job, name)
        except PyrometerError as error:
            notes.append(f"{name}: why it is slower could not be observed: {error}")
    gates = [
        msgspec.structs.replace(gate, why=_of_gate(gate, causes[gate.benchmark]))
        if gate.outcome == "regressed"
        else gate
        for gate in report.gates
    ]
    return msgspec.structs.replace(report, gates=gates, notes=[*report.notes, *notes])


def _of_gate(gate: Gate, causes: Mapping[str, list[Cause]]) -> list[Cause]:
    """The causes that speak of this gate's metric; of times all of them, what was counted first."""
    by_metric = {
        "operators": ("operators",),
        "copies": ("operators",),
        "graph_breaks": ("compiler",),
        "recompiles": ("compiler",),
        "kernels": ("compiler",),
        "artifact_bytes": ("compiler",),
        "peak_bytes": ("memory",),
        "allocated_bytes": ("memory",),
    }
    wanted = by_metric.get(gate.metric, () if gate.kind != "time" else ("compiler", "operators", "time"))
    return [cause for sort in wanted for cause in causes.get(sort, [])][:MOST_CAUSES]


def counted_causes(counted: Mapping[str, Counted]) -> dict[str, list[Cause]]:
    """What differs in what both sides were counted for."""
    if len(counted) < 2:
        return {}
    base, head = counted["base"], counted["head"]
    causes = {"operators": _of_operators(base, head)}
    if base.compiled is not None and head.compiled is not None:
        diff = diff_compile(base.compiled, head.compiled)
        breaks = [
            Cause(
                text=f"a graph break that the base does not have: {one.reason}",
                place=Place(file=one.file, line=one.line, source=one.source or None),
            )
            for one in diff.breaks_added
        ]
        recompiles = [Cause(text=f"a recompilation: {recompile_text(one)}") for one in diff.recompiles_added]
        counts = [Cause(text=f"{one.name}: {one.before} → {one.after}") for one in diff.counts]
        causes["compiler"] = [*breaks, *recompiles, *counts]
    elif (base.compiled is None) != (head.compiled is None):
        told = (
            "the head compiles, the base does not"
            if head.compiled
            else "the base compiles, the head does not"
        )
        causes["compiler"] = [Cause(text=told)]
    if base.memory is not None and head.memory is not None:
        grown = [change for change in diff_memory(base.memory, head.memory).sites if change.change_bytes > 0]
        causes["memory"] = [
            Cause(
                text=f"held at the peak: {format_bytes(one.before_bytes)} → {format_bytes(one.after_bytes)} at {one.name}",
                place=_place_in(one.name),
            )
            for one in grown
        ]
    return causes


def _place_in(site: str) -> Place | None:
    """The line that a site names, as `model.py:12 in layer`."""
    file, colon, rest = site.partition(" in ")[0].rpartition(":")
    return Place(file=file, line=int(rest)) if colon and rest.isdigit() else None


def _of_operators(base: Counted, head: Counted) -> list[Cause]:
    """Operators that are called more often, at the line of the head that most of the new calls come from."""
    before, after = (_totals(side) for side in (base, head))
    causes = []
    for op in sorted(after, key=lambda name: before[name] - after[name]):
        if after[op] <= before[op]:
            continue
        known = Counter({(one.file, one.line): one.calls for one in base.operators if one.op == op})
        lines = [one for one in head.operators if one.op == op and one.file is not None]
        line = max(lines, key=lambda one: one.calls - known[one.file, one.line], default=None)
        place = None if line is None else Place(file=line.file, line=line.line, op=op)
        causes.append(Cause(text=f"{op}: {before[op]} → {after[op]} calls per step", place=place))
    return causes


def _totals(side: Counted) -> Counter[str]:
    totals: Counter[str] = Counter()
    for one in side.operators:
        totals[one.op] += one.calls
    return totals


def observed_causes(job: GuardJob, name: str) -> list[Cause]:
    """What an observation of both sides shows: lines, operators and kernels that take longer, and new findings.

    Raises:
        PyrometerError: a side could not be observed.
    """
    seen: dict[str, Explained] = {}
    for side in ("base", "head"):
        place = job.scratch / f"why-{side}.json.gz"
        with job.process(side, "why") as worker:
            worker.ask(job.narrowed(side, [name]), protocol.Collected, timeout_s=ASK_S)
            request = protocol.Explain(name=name, budget_s=OBSERVE_S, trace=str(place))
            seen[side] = worker.ask(request, Explained, timeout_s=ASK_S)
    trees = {side: job.checkouts[side].tree for side in seen}
    base, head = seen["base"].evidence, seen["head"].evidence
    return [*_of_lines(base, head, trees["head"]), *_of_traces(seen), *_of_findings(base, head, trees)]


def _of_lines(base: Evidence, head: Evidence, tree: Path) -> list[Cause]:
    """Lines of the user's that the host spends more time on; a line is known by its text."""
    if base.host is None or head.host is None:
        return []
    before = {_text(line.where): line.own_s for line in base.host.lines}
    grown = []
    for line in head.host.lines:
        was = before.get(_text(line.where), 0.0)
        if line.own_s - was > LEAST_SHARE * head.host.step_s and line.own_s > LEAST_GROWTH * was:
            grown.append((line.own_s - was, was, line))
    grown.sort(key=lambda one: -one[0])
    return [
        Cause(
            text=f"{format_seconds(was) if was else 'nothing'} → {format_seconds(line.own_s)} per step in this line",
            place=msgspec.structs.replace(line.where, file=_within(line.where.file, tree)),
        )
        for _, was, line in grown[:3]
    ]


def _text(place: Place) -> str:
    return (place.source or f"{place.function}:{place.line}").strip()


def _within(file: str | None, tree: Path) -> str | None:
    """A file as it is called in the repository."""
    return None if file is None else file.removeprefix(f"{tree}/")


def _of_traces(seen: Mapping[str, Explained]) -> Iterator[Cause]:
    """Operators and kernels that take more of the step."""
    files = [seen[side].trace for side in ("base", "head")]
    if files[0] is None or files[1] is None:
        return
    try:
        diff = diff_traces(*(read_trace(Path(file)).rank() for file in files if file), anyway=True)
    except PyrometerError:
        return  # the two are too unlike to be laid beside each other; what was counted tells of them
    for change in [*diff.kernels, *diff.operators]:
        grows = change.time.b_ns > LEAST_GROWTH * change.time.a_ns
        if grows and change.time.delta_ns > LEAST_SHARE * diff.step.b_ns:
            before, after = format_seconds(change.time.a_ns * 1e-9), format_seconds(change.time.b_ns * 1e-9)
            yield Cause(
                text=f"{change.name}: {before} → {after} per step ({change.calls_a:g} → {change.calls_b:g} calls)"
            )


def _of_findings(base: Evidence, head: Evidence, trees: Mapping[str, Path]) -> Iterator[Cause]:
    """Findings of rules that the base does not have."""
    entries = {side: _entries(tree, base.target) for side, tree in trees.items()}
    known = {(one.code, one.where.op) for one in explain(base, entries["base"]).findings}
    for finding in explain(head, entries["head"]).findings:
        if (finding.code, finding.where.op) not in known and finding.scope == "mechanism":
            file = _within(finding.where.file, trees["head"])
            yield Cause(
                text=f"{finding.code}: {finding.message}",
                place=msgspec.structs.replace(finding.where, file=file),
            )


def _entries(tree: Path, name: str) -> Sequence[Path]:
    file = tree / name.partition("::")[0]
    return [file] if file.is_file() else []
