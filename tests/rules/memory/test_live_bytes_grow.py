"""PYR217: memory that grows with every step."""

from __future__ import annotations

import pytest

from pyrometer.memory.profile import LeakSite
from pyrometer.rules.case import Case
from pyrometer.rules.explain import findings_of
from pyrometer.rules.ranking import ranked
from pyrometer.rules.registry import select
from recorded import case_of_program

CODE = "PYR217"


def test_the_robot_that_never_forgets_is_an_error_with_line_holder_and_rate(robot, findings):
    (finding,) = findings(CODE, robot)
    assert finding.severity == "error"
    assert "history_buffer" in finding.evidence["holder"]
    assert "planner(perception)" in robot.modules[0].lines[finding.where.line - 1]
    assert finding.evidence["bytes_per_step"] == 16 * (128 + 6) * 4
    assert finding.evidence["steps_until_full"] > 0
    assert "detach()" in finding.advice.sketch


def test_what_keeps_it_comes_first_and_the_growth_is_told_to_overlap(robot):
    findings = ranked(findings_of(robot, select(["PYR2"])), peak_bytes=robot.memory.peak_bytes)
    assert [finding.code for finding in findings][:2] == ["PYR202", CODE]
    assert [finding.severity for finding in findings][:2] == ["error", "error"]
    assert findings[0].resource == findings[1].resource
    assert findings[1].overlaps == ["PYR202"]


def test_the_robot_that_forgets_is_silent(findings):
    forgetting = case_of_program("robot_controller", "fixed", "memory")
    assert forgetting.memory.leak.verdict in {"stable", "allocator warm-up"}
    assert findings(CODE, forgetting) == []


SITE = LeakSite(file="a.py", line=3, holder="losses[…]", container="list of 40", bytes_per_step=1000.0)


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({}, "error"),
        ({"unbounded": False, "eta_steps": None}, "warning"),
        ({"eta_steps": 1e12}, "warning"),
        ({"verdict": "growing cache"}, "error"),
        ({"eta_steps": None}, "error"),
    ],
)
def test_it_is_an_error_only_where_it_ends_in_one(findings, leaking, fields, severity):
    (finding,) = findings(CODE, Case(target="t", memory=leaking(SITE, **fields)))
    assert finding.severity == severity


@pytest.mark.parametrize("verdict", ["stable", "allocator warm-up", "undecided"])
def test_other_verdicts_are_silent(findings, leaking, profile, verdict):
    assert findings(CODE, Case(target="t", memory=leaking(verdict=verdict, unbounded=False))) == []
    assert findings(CODE, Case(target="t", memory=profile({"activations": 5}))) == []


def test_growth_that_no_tensor_explains_has_no_place(findings, leaking):
    memory = leaking(sentence="leak: 3 KiB per step of the process stay, in no tensor that Python sees")
    (finding,) = findings(CODE, Case(target="t", memory=memory))
    assert finding.where.file is None
    assert finding.resource == "leak"
    assert "native code" in finding.advice.text
