"""What a guard's report says: its answer, its gates, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.guard.gate import Cause, Gate, GuardReport
from pyrometer.guard.hunks import Blame
from pyrometer.place import place_text
from pyrometer.quantity import (
    counted,
    format_bytes,
    format_percent,
    format_seconds,
)
from pyrometer.report.facts.layout import Table
from pyrometer.store.commit import short_commit

WORDS = {"regressed": "worse", "improved": "better", "unchanged": "no change", "undecided": "undecided"}
MOST_LINES = 20
"""Of a hunk that is to blame."""

_RANK = {"regressed": 0, "undecided": 1, "improved": 2, "unchanged": 3}


def headline(report: GuardReport) -> str:
    """The answer in one sentence.

    >>> headline(GuardReport(trusted=True))
    'no data: nothing could be compared'
    """
    failed = [miss for miss in report.missed if miss.failed and miss.side == "head"]
    if failed:
        return f"no data: {counted(len(failed), 'benchmark')} failed on the head"
    if not report.gates:
        return "no data: nothing could be compared"
    if not report.trusted:
        return "UNTRUSTED: base against base shows a difference, so that this job can fail nothing"
    return _of_gates(report.gates)


def _of_gates(gates: Sequence[Gate]) -> str:
    """What is worse, else what is undecided, else what is better, else nothing."""
    worse, better = ([gate for gate in gates if gate.outcome == one] for one in ("regressed", "improved"))
    waiting = [gate for gate in gates if gate.outcome == "undecided" and gate.decisive]
    if worse:
        more = f", and {counted(len(worse) - 1, 'more gate')}" if len(worse) > 1 else ""
        return f"worse: {worse[0].metric} of {worse[0].benchmark} {change(worse[0])}{more}"
    if waiting:
        return f"undecided: {counted(len(waiting), 'gate')} would need more pairs"
    if better:
        return f"better: {better[0].metric} of {better[0].benchmark} {change(better[0])}"
    return f"no change in {counted(len({gate.benchmark for gate in gates}), 'benchmark')}"


def verdict(report: GuardReport) -> str:
    """The answer without the name of a benchmark; empty where the headline is short by itself."""
    worse = [gate for gate in report.gates if gate.outcome == "regressed"]
    if not worse or not report.trusted or headline(report).startswith("no data"):
        return ""
    timed = next((gate for gate in worse if gate.metric == "median_s"), worse[0])
    more = f", and {counted(len(worse) - 1, 'more gate')}" if len(worse) > 1 else ""
    return f"worse: {timed.metric} {change(timed)}{more}"


def subtitle(report: GuardReport) -> str:
    """What it rests on."""
    sides = ""
    if report.base is not None and report.head is not None:
        base, head = (
            f"{side.ref} ({short_commit(side.sha, side.dirty)})" for side in (report.base, report.head)
        )
        sides = f"{head} against {base} · "
    pairs = counted(report.num_pairs, "pair") + " of fresh processes"
    return f"{sides}{counted(len(report.gates), 'gate')} · {pairs} · took {format_seconds(report.elapsed_s)}"


def change(gate: Gate) -> str:
    """How far a gate is from its base.

    >>> change(Gate(benchmark="b", metric="median_s", kind="time", outcome="regressed", ratio=1.1, ci_low=1.08, ci_high=1.12))
    '+10 % (+8 to +12)'
    """
    if gate.ratio is None:
        return f"{figure(gate, gate.base)} → {figure(gate, gate.head)}"
    share = _signed(gate.ratio)
    if gate.ci_low is None or gate.ci_high is None or gate.ci_low == gate.ci_high:
        return f"{share} %"
    return f"{share} % ({_signed(gate.ci_low)} to {_signed(gate.ci_high)})"


def _signed(ratio: float) -> str:
    if ratio > 100:
        return f"×{ratio:.3g}"
    text = f"{(ratio - 1) * 100:+.2g}" if abs(ratio - 1) < 0.995 else f"{(ratio - 1) * 100:+.0f}"
    return "±0" if float(text) == 0 else text


def figure(gate: Gate, value: float | None) -> str:
    """A figure of a gate in the unit that its metric's name says.

    >>> gate = Gate(benchmark="b", metric="peak_bytes", kind="memory", outcome="unchanged")
    >>> figure(gate, 2048.0), figure(gate, None)
    ('2.00 KiB', '–')
    """
    if value is None:
        return "–"
    if gate.metric.endswith("_s"):
        return format_seconds(value)
    if gate.metric.endswith("_bytes"):
        return format_bytes(int(value))
    if gate.metric == "loader_share":
        return format_percent(value, 2)
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def limit(gate: Gate) -> str:
    """The limit of a gate."""
    if gate.limit is None:
        return "–"
    if gate.kind == "accuracy" or gate.metric == "loader_share":
        return figure(gate, gate.limit)
    return f"{_signed(gate.limit)} %"


def in_order(gates: Iterable[Gate]) -> list[Gate]:
    """What is worse first."""
    return sorted(gates, key=lambda gate: _RANK[gate.outcome])


def gates_table(gates: Iterable[Gate]) -> Table:
    """One row for each gate, what is worse first."""
    rows = [
        (
            gate.benchmark,
            gate.metric,
            WORDS[gate.outcome],
            change(gate),
            figure(gate, gate.base),
            figure(gate, gate.head),
            limit(gate),
        )
        for gate in in_order(gates)
    ]
    columns = ("benchmark", "metric", "outcome", "change", "base", "head", "limit")
    return Table(columns, rows, words=frozenset({0, 1, 2}))


def worth_telling(report: GuardReport) -> list[Gate]:
    """The gates that a reader has to know of: what changed, what is undecided, what is a warning."""
    return [
        gate
        for gate in report.gates
        if gate.outcome in {"regressed", "improved"}
        or (gate.outcome == "undecided" and gate.decisive)
        or gate.warning is not None
    ]


def cause_text(cause: Cause) -> str:
    """A cause with its line.

    >>> cause_text(Cause(text="aten::clone: 0 → 1 calls per step"))
    'aten::clone: 0 → 1 calls per step'
    """
    if cause.place is None or cause.place.file is None:
        return cause.text
    file = cause.place.file
    where = f"{file}:{cause.place.line}" if cause.place.line and "/" in file else None
    return f"{cause.text} ({where or place_text(file, cause.place.line)})"


def why_lines(gates: Sequence[Gate]) -> list[str]:
    """What explains the gates, each cause once."""
    return list(
        dict.fromkeys(f"{gate.benchmark}: {cause_text(cause)}" for gate in gates for cause in gate.why)
    )


def missed_lines(report: GuardReport) -> list[str]:
    """Benchmarks without a comparison."""
    return [
        f"{miss.benchmark}: {'failed on the ' + miss.side + ': ' if miss.failed else ''}{miss.reason}"
        for miss in report.missed
    ]


def also_lines(report: GuardReport) -> list[str]:
    """What else there is to know: benchmarks without a comparison, warnings, notes."""
    warnings = [
        f"{gate.benchmark}: {gate.metric}: {gate.warning}" for gate in worth_telling(report) if gate.warning
    ]
    return [*missed_lines(report), *warnings, *report.notes]


def self_line(verdict: Verdict | None) -> str:
    """What base against base says."""
    if verdict is None:
        return "Base against base was not run: nothing was timed."
    shown = f"{_signed(verdict.ratio)} %"
    if verdict.ci_low is not None and verdict.ci_high is not None:
        shown += f" ({_signed(verdict.ci_low)} to {_signed(verdict.ci_high)})"
    told = {
        "same": "no difference, as it should be",
        "undecided": "no difference that would alarm",
    }.get(verdict.outcome, "a difference where there is none: the machine disturbs this job")
    return f"Base against base: {shown}: {told}."


def blame_lines(blame: Blame) -> list[str]:
    """Which hunks are to blame, with their text."""
    hunks = counted(len(blame.hunks), "hunk")
    head = f"{blame.metric} of {blame.benchmark} {change(blame.gate)}: {hunks} of {blame.num_hunks}"
    lines = [f"{head}, after {counted(blame.num_trials, 'trial')} in {format_seconds(blame.elapsed_s)}"]
    for hunk in blame.hunks:
        lines.append(f"  {hunk.place}")
        lines += [f"    + {line}" for line in hunk.lines[:MOST_LINES]]
        if hunk.base_count and not hunk.lines:
            lines.append(f"    - {counted(hunk.base_count, 'line')} taken out")
    return lines
