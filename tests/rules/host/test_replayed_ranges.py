"""What is known from a trace alone promises no more than the trace replayed with its resource free."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.rules.bounded import OF_RESOURCES, bounded
from pyrometer.rules.finding import Finding
from pyrometer.rules.registry import find_rule, rules
from pyrometer.trace.analysis.bounds import Bounds, FreeResource


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
    assert with_it.ratio_high == 0.9


def test_every_rule_that_a_replay_bounds_exists() -> None:
    assert {rule.name for rule in rules()} >= OF_RESOURCES.keys()
