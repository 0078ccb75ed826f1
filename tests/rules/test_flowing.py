"""Shares of the recorded operators' time as shares of a step."""

from __future__ import annotations

import msgspec
import pytest

from pyrometer.dataflow.report import DataflowReport
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.rules.flowing import as_traced, of_step, removed
from pyrometer.source.module import Module
from recorded import evidence_of

FLOW = DataflowReport(num_steps=3, calls_per_step=1, step_operator_s=0.4)


def test_without_more_evidence_all_of_the_step_is_operators() -> None:
    assert of_step(Case(target="test", dataflow=FLOW), 0.5) == 0.5


def test_the_trace_says_what_of_a_step_operators_take() -> None:
    trace = evidence_of("item_each_step").trace
    assert trace is not None
    case = Case(target="test", dataflow=FLOW, trace=trace)
    told = sum(op.host_share for op in trace.top_ops)
    assert of_step(case, 0.5) == pytest.approx(0.5 * min(1.0, told))
    bare = msgspec.structs.replace(case, trace=msgspec.structs.replace(trace, top_ops=[], steps=[]))
    assert of_step(bare, 0.5) == 0.5


def test_a_range_ends_at_what_surely_goes_and_never_below_nothing() -> None:
    gain = removed(Case(target="test", dataflow=FLOW), 0.95, "removal")
    assert gain.ratio_low == pytest.approx(0.05 / 2)
    assert gain.ratio_high == pytest.approx(1 - 0.75 * 0.95)


def test_a_share_is_no_more_than_the_trace_saw_in_the_function() -> None:
    trace = evidence_of("item_each_step").trace
    assert trace is not None
    line = msgspec.structs.replace(
        trace.top_lines[0], file="train.py", line=1, function="step", host_share=0.2
    )
    module = Module.parse("train.py", "def step(x):\n    return x @ x\n")
    case = Case(
        target="test",
        dataflow=FLOW,
        trace=msgspec.structs.replace(trace, top_lines=[line]),
        modules=(module,),
    )
    place = Place(file="train.py", line=2)
    assert of_step(case, as_traced(case, 0.9, place)) == pytest.approx(0.2)
    assert as_traced(case, 0.1, place) == 0.1
    assert as_traced(case, 0.9, Place(file="other.py", line=2)) == 0.9
