"""What changed between two traces, in words."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.quantity import format_ratio
from pyrometer.report.facts.layout import Fact, Section, Table, told
from pyrometer.report.facts.trace_words import MOST_LISTED, PART_NAMES, ns, short
from pyrometer.trace.difference.record import NamedChange, NodeChange, TimeChange, TraceDiff


def sections(diff: TraceDiff) -> list[Section]:
    """The chapters of a comparison; empty ones are left out."""
    made = [_evidence(diff), _parts(diff), _nodes(diff), _groups(diff)]
    made += [
        _named("operators changed", "Operators", diff.operators),
        _named("kernels changed", "Kernels", diff.kernels),
    ]
    return told(made)


def change(time: TimeChange) -> str:
    """A ratio with its interval where there is one."""
    if time.ratio is None:
        return "–"
    if time.ci_low is None or time.ci_high is None:
        return f"{time.ratio:.3g}×"
    return format_ratio(time.ratio, time.ci_low, time.ci_high)


def _evidence(diff: TraceDiff) -> Section:
    # Where the sides need not do the same work, the sentence claims no ratio, and neither does this.
    apart = diff.outcome == "undecided" and bool(diff.differences)
    facts = [
        Fact("step", f"{ns(diff.step.a_ns)} → {ns(diff.step.b_ns)}", "" if apart else change(diff.step)),
        Fact("steps", f"{diff.num_steps_a} and {diff.num_steps_b}"),
    ]
    facts += [
        Fact(difference.field, f"{difference.a} → {difference.b}", difference.message)
        for difference in diff.differences
    ]
    if diff.note:
        facts.append(Fact("note", diff.note))
    return Section("evidence", "What is compared", facts)


def _parts(diff: TraceDiff) -> Section | None:
    body = [
        (PART_NAMES.get(part.name, part.name), ns(part.a_ns), ns(part.b_ns), signed(part.b_ns - part.a_ns))
        for part in diff.parts
        if part.a_ns or part.b_ns
    ]
    table = Table(("where, per step", "before", "after", "change"), body)
    return Section("parts", "Where the step goes", [], table) if body else None


def _nodes(diff: TraceDiff) -> Section:
    body = [
        (
            " > ".join(short(name, 36) for name in node.path[-3:]) or "the rest of the step",
            _status(node),
            f"{node.calls_a:.4g} → {node.calls_b:.4g}",
            signed(node.host.delta_ns),
            signed(node.device.delta_ns),
            change(node.device if node.device.a_ns or node.device.b_ns else node.host),
        )
        for node in diff.nodes[: 2 * MOST_LISTED]
    ]
    columns = ("node", "is", "calls", "host", "device", "ratio")
    return Section(
        "nodes",
        "What changed, at the lowest place that both sides have",
        [],
        Table(columns, body, frozenset({1})),
        "Times are per step, and those that no listed node below has: so the changes add up.",
    )


def _status(node: NodeChange) -> str:
    if node.replaced_by is not None:
        return f"now {short(node.replaced_by, 36)}"
    return "on both sides" if node.status == "common" else node.status


def _groups(diff: TraceDiff) -> Section | None:
    body = [
        (
            f"{group.by} {group.name}",
            signed(group.host.delta_ns),
            signed(group.device.delta_ns),
            change(group.host),
        )
        for group in diff.groups[:MOST_LISTED]
    ]
    table = Table(("group", "host", "device", "ratio of host time"), body)
    return Section("groups", "By phase and module", [], table) if body else None


def _named(slug: str, title: str, changes: Sequence[NamedChange]) -> Section:
    body = [
        (
            short(one.name),
            "on both sides" if one.status == "common" else one.status,
            f"{one.calls_a:.4g} → {one.calls_b:.4g}",
            f"{ns(one.time.a_ns)} → {ns(one.time.b_ns)}",
            signed(one.time.delta_ns),
            change(one.time),
        )
        for one in changes[:MOST_LISTED]
    ]
    columns = (title.lower(), "is", "calls", "time per step", "change", "ratio")
    return Section(slug.split(maxsplit=1)[0], title, [], Table(columns, body, frozenset({1})))


def signed(value_ns: float) -> str:
    """A change of time with its sign.

    >>> signed(1500), signed(-2e6), signed(0)
    ('+1.50 µs', '−2.00 ms', '0 s')
    """
    text = ns(abs(value_ns))
    return text if not value_ns else f"{'+' if value_ns > 0 else '−'}{text}"
