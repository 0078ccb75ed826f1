"""Findings of text alone are told once per file and habit."""

from __future__ import annotations

import msgspec

from pyrometer.advice import Cost
from pyrometer.place import Place
from pyrometer.rules.habits import by_habit
from pyrometer.rules.host.item_in_hot_loop import RULE


def found(line: int, file: str = "train.py", **more):
    return RULE.finding(
        message=f"`x{line}.item()` waits",
        where=Place(file=file, line=line),
        confidence="high",
        advice=f"Keep `x{line}` on the device.",
        **more,
    )


def test_places_of_one_habit_are_one_finding():
    first, other = by_habit([found(3), found(7), found(9), found(3, "eval.py")])
    assert first.message.endswith("; also at lines 7, 9")
    assert first.evidence["also_at_lines"] == [7, 9]
    assert (other.where.file, other.evidence) == ("eval.py", {})


def test_what_was_measured_stays_by_itself():
    measured = msgspec.structs.replace(found(7), cost=Cost(share=0.2, method="trace"))
    assert by_habit([found(3), measured]) == [found(3), measured]


def test_long_lists_are_cut():
    (only,) = by_habit([found(line) for line in range(1, 14)])
    assert only.message.endswith("; also at lines 2, 3, 4, 5, 6, 7, 8, 9 and 4 more")
