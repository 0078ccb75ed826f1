"""What is known from a trace alone promises no more than the trace replayed with its resource free."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.rules.bounded import OF_RESOURCES, bounded, wins_nothing
from pyrometer.rules.finding import Finding
from pyrometer.rules.registry import find_rule, rules
from pyrometer.trace.records.gains import Bounds, FreeResource


def told(links: list[str], name: str = "host-time-dominates", **gain: Any) -> Finding:
    return find_rule(name).finding(
        message="it waits",
        where=Place(),
        confidence="high",
        advice="change it",
        gain=Gain(**{"ratio_low": 0.3, "ratio_high": 0.9, "method": "share"} | gain),
        links=links,
    )


@pytest.mark.parametrize(
    ("finding", "low"),
    [
        (told(["/trace/idle/groups"]), 0.7),
        (told(["/trace/idle/groups", "/host/lines/0"]), None),  # also seen without the profiler
        (told(["/trace/idle/groups"], measured=True), None),
        (told(["/trace/idle/groups"], name="many-tiny-kernels"), None),  # of more than one resource
    ],
)
def test_the_best_case_is_the_replay(
    builder: Any, evidence_of: Any, finding: Finding, low: float | None
) -> None:
    builder.op("aten::mm", 0, 100)
    builder.launch("gemm", 10, 20, 80)
    case = evidence_of(builder)
    free = [FreeResource(resource="host", free_ratio=0.7, changed_ratio=0.8)]
    replayed = msgspec.structs.replace(case.trace, bounds=Bounds(bound="host", resources=free))
    unknown = msgspec.structs.replace(case.trace, bounds=Bounds())
    with_it, without = (
        bounded(finding, msgspec.structs.replace(case, trace=report)).advice.gain
        for report in (replayed, unknown)
    )
    assert with_it is not None
    assert without is not None
    assert with_it.ratio_low == (without.ratio_low if low is None else low)
    assert with_it.ratio_high == without.ratio_high


def test_every_rule_that_a_replay_bounds_exists() -> None:
    assert {rule.name for rule in rules()} >= OF_RESOURCES.keys()


@pytest.mark.parametrize(
    ("gain", "cost", "nothing"),
    [
        ({"ratio_low": 1.0, "ratio_high": 1.0}, Cost(share=0.4, method="share"), True),
        ({"ratio_low": 0.9, "ratio_high": 1.0}, Cost(share=0.4, method="share"), False),
        (
            {"ratio_low": 1.0, "ratio_high": 1.0},
            Cost(share=0.4, bytes=10**6, method="share"),
            False,
        ),  # saves memory
        ({"ratio_low": 1.0, "ratio_high": 1.0, "measured": True}, Cost(share=0.4, method="share"), False),
        ({"ratio_low": None, "ratio_high": None}, Cost(share=0.4, method="share"), False),  # not known
        ({"ratio_low": 1.0, "ratio_high": 1.0}, None, False),  # about something other than time
    ],
)
def test_what_is_no_better_at_best_wins_nothing(
    gain: dict[str, Any], cost: Cost | None, nothing: bool
) -> None:
    finding = msgspec.structs.replace(told([], **gain), cost=cost)
    assert wins_nothing(finding) is nothing
