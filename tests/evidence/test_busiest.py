"""The line that keeps the host busiest stands in the answer of a trace, which knows functions only."""

from __future__ import annotations

import pytest

from pyrometer.evidence.busiest import busiest_line
from pyrometer.host.profile import HostLine, HostProfile
from pyrometer.place import Place
from pyrometer.trace.reporting.verdict import Busiest, judge
from recorded import evidence_of

LINE = HostLine(where=Place(file="/p/train.py", line=41, function="emit"), own_s=8e-3, total_s=8e-3)
HOST = HostProfile(steps=3, samples=90, interval_s=1e-3, step_s=10e-3, lines=[LINE])


def test_the_busiest_line_is_the_first_with_its_share():
    assert busiest_line(HOST) == Busiest(LINE.where, pytest.approx(0.8))


def test_without_samples_there_is_none():
    assert busiest_line(None) is None
    assert busiest_line(HostProfile(steps=0, samples=0, interval_s=1e-3, step_s=0.0)) is None


def test_an_answer_about_python_names_the_line():
    trace = evidence_of("robot_controller").trace
    assert trace is not None
    assert "80.0 % in emit (train.py:41)" in judge(trace, busiest=busiest_line(HOST)).sentence


def test_an_answer_about_operators_is_as_the_trace_has_it():
    trace = evidence_of("tiny_ops").trace
    assert trace is not None
    assert judge(trace, busiest=busiest_line(HOST)) == judge(trace)
