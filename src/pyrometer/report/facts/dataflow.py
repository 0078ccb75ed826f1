"""What is computed although nobody needs it, in words."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.dataflow.report import (
    ConstantTail,
    DataflowReport,
    LateLinear,
    MostlyZero,
    PartlyUsed,
    ProductOrder,
    Repeated,
    Subnormal,
    TableLookup,
    Unread,
)
from pyrometer.place import Place, place_text
from pyrometer.quantity import Ratio, format_percent, format_seconds
from pyrometer.report.facts.layout import Fact, Section, Table

MOST_ROWS = 20
LEAST_SHARE = 0.01
"""Of the operators' time of a step, below which nothing is shown."""

HOW = (
    "A few steps are run once more, slower than the measured ones: each operator is recorded with the values that it reads and writes, and a "
    "sample of their elements. Shares are of the time that operators take in such a step."
)
CHANGE = "What is read only every so many steps counts as unread where the recorded steps do not read it."

Row = tuple[Ratio, Place, str, str]
"""Share, place, what is needless, and what it is seen by."""


def section(report: DataflowReport) -> Section | None:
    """What a step computes in vain, the dearest first; None where there is nothing."""
    rows = sorted(
        (row for row in _rows(report) if row[0] >= LEAST_SHARE), key=lambda row: row[0], reverse=True
    )
    if not rows:
        return None
    return Section(
        "dataflow",
        "What is computed in vain",
        _facts(report),
        Table(
            ("line", "of the operators", "what", "seen by"),
            [
                (place_text(where.file, where.line), format_percent(share), what, why)
                for share, where, what, why in rows[:MOST_ROWS]
            ],
            words=frozenset({2, 3}),
        ),
        how=HOW,
        change=CHANGE,
    )


def _rows(report: DataflowReport) -> Iterator[Row]:
    yield from map(_unread, report.unread)
    yield from map(_partly_used, report.partly_used)
    yield from map(_mostly_zero, report.mostly_zero)
    yield from map(_constant_tail, report.constant_tails)
    yield from map(_lookup, report.lookups)
    yield from map(_repeated, report.repeated)
    yield from map(_late_linear, report.late_linear)
    yield from map(_product_order, report.product_orders)
    yield from map(_subnormal, report.subnormal)


def _unread(fact: Unread) -> Row:
    of_modules = f" of {', '.join(fact.modules[:2])}" if fact.modules else ""
    return fact.share, fact.where, f"{fact.what}{of_modules} that nobody reads", _listed(fact.operators)


def _partly_used(fact: PartlyUsed) -> Row:
    selected = f"{fact.by} at {place_text(fact.selected.file, fact.selected.line)}"
    return (
        fact.share,
        fact.where,
        f"{format_percent(fact.used)} of {fact.operators[0]} is read",
        f"selected by {selected}",
    )


def _mostly_zero(fact: MostlyZero) -> Row:
    zeros = f"{format_percent(fact.zero_share)} {'masked' if fact.masked else 'zeros'}"
    kind = "one-hot rows" if fact.one_hot else "a dense product"
    return fact.share, fact.where, f"{kind} of {_sizes(fact.shape)}", zeros


def _constant_tail(fact: ConstantTail) -> Row:
    columns = f"{fact.tail:,.0f} of {fact.columns:,} columns hold one value"
    return (
        fact.share,
        fact.where,
        f"padding of {_sizes(fact.shape)}",
        f"{columns}, in {fact.num_steps} steps",
    )


def _lookup(fact: TableLookup) -> Row:
    looked_up = f"{fact.looked_up:,.0f} of {fact.rows:,} rows are looked up"
    return fact.gradient_share, fact.where, f"gradients of a table of {fact.rows:,} rows", looked_up


def _repeated(fact: Repeated) -> Row:
    again = f"{fact.calls_per_step:,.0f} times a step from the same values"
    since = "in the same step" if fact.since == "same step" else "in the step before"
    return fact.share, fact.where, f"{_listed(fact.operators)} again", f"{again}, computed {since}"


def _late_linear(fact: LateLinear) -> Row:
    copied = f"{fact.by} at {place_text(fact.copied.file, fact.copied.line)}"
    return (
        fact.share,
        fact.where,
        f"{fact.operator} of copies",
        f"{format_percent(fact.distinct)} are distinct, copied by {copied}",
    )


def _product_order(fact: ProductOrder) -> Row:
    again = f"multiplied again at {place_text(fact.second.file, fact.second.line)}"
    left = f"the other order takes {format_percent(fact.left)}"
    return fact.share, fact.where, f"a product of {_sizes(fact.shape)}, {again}", left


def _subnormal(fact: Subnormal) -> Row:
    numbers = f"up to {format_percent(fact.subnormal_share)} of the numbers are next to zero"
    return fact.share, fact.where, _listed(fact.operators), numbers


def _facts(report: DataflowReport) -> list[Fact]:
    steps = Fact(
        "recorded",
        f"{report.num_steps:,} steps",
        f"{report.calls_per_step:,.0f} operators each, {format_seconds(report.step_operator_s)} in the fastest",
    )
    return [steps, *(Fact("note", note) for note in report.notes)]


def _listed(operators: list[str]) -> str:
    return ", ".join(operators[:3])


def _sizes(shape: list[int]) -> str:
    return "×".join(map(str, shape))
