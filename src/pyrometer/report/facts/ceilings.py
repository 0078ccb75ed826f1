"""What a step takes without its most expensive places, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.bench.ceiling import Ceiling
from pyrometer.place import place_text
from pyrometer.report.facts.layout import Section, Table

HOW = (
    "In some steps, in turn with others, the place returned what it had returned before; all else ran. The figure is the time of "
    "these steps over that of the others: no change to the place alone makes a step faster than that."
)
CHANGE = "Other inputs; and what the place does beside returning something, which was left undone."


def ceilings_section(ceilings: Sequence[Ceiling]) -> Section:
    """The places, what brings most first."""
    rows = [
        (_named(ceiling), _place(ceiling), f"{ceiling.calls_per_step:.3g}", without(ceiling), _same(ceiling))
        for ceiling in sorted(ceilings, key=lambda one: one.ratio)
    ]
    columns = ("without", "defined at", "calls per step", "the step takes", "in each step")
    table = Table(columns, rows, words=frozenset({1, 4}))
    return Section("ceilings", "The step without its most expensive places", [], table, HOW, CHANGE)


def without(ceiling: Ceiling) -> str:
    """The ratio with its interval.

    >>> from pyrometer.place import Place
    >>> without(Ceiling(where=Place(), what="loader", calls_per_step=1, ratio=0.421, ratio_low=0.4, ratio_high=0.449, pairs=9, same_inputs=False, same_results=False))
    '0.42× (0.40–0.45)'
    """
    return f"{ceiling.ratio:.2f}× ({ceiling.ratio_low:.2f}–{ceiling.ratio_high:.2f})"


def _named(ceiling: Ceiling) -> str:
    if ceiling.what == "loader":
        return "the loader"
    name = (ceiling.where.function or "").replace("<locals>.", "")
    return f"{name} ({ceiling.where.module})" if ceiling.where.module else name


def _place(ceiling: Ceiling) -> str:
    return place_text(ceiling.where.file, ceiling.where.line) if ceiling.where.file else "–"


def _same(ceiling: Ceiling) -> str:
    if ceiling.same_results:
        return "the same values" if ceiling.same_inputs else "the same results"
    return "the same inputs" if ceiling.same_inputs else "–"
