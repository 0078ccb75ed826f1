"""Kernels, launches, sequences and roofline on random traces: no crash, and sums that hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.analysis.kernels import kernel_summary, kernels
from pyrometer.trace.analysis.launches import launches
from pyrometer.trace.analysis.roofline import roofline
from pyrometer.trace.analysis.sequences import sequences
from pyrometer.trace.analysis.tensor_cores import tensor_cores
from pyrometer.trace.analysis.utilisation import utilisation
from pyrometer.trace.costs.op_costs import op_costs
from pyrometer.trace.reading.read import read_trace


@given(data=st.data())
def test_sums_hold_on_any_trace(generated, tmp_path, data):
    path = tmp_path / "any.json"
    path.write_text(data.draw(generated.traces()), encoding="utf-8")
    trace = read_trace(path).ranks[0]
    total = int(op_costs(trace).time.sum())
    assert roofline(trace)["time_ns"].sum() == total
    assert utilisation(trace).time_ns == total
    assert kernels(trace)["total_ns"].sum() == kernel_summary(trace).total_ns
    report = launches(trace)
    if report.device is not None:
        assert 0 <= report.device.waiting_ns + report.device.starting_ns <= report.device.device_span_ns
        assert all(queue.max_depth >= 0 for queue in report.device.queues)
    assert sum(sequence.total_ns for sequence in sequences(trace)) <= total
    assert tensor_cores(trace).height >= 0


@pytest.mark.parametrize(
    "analysis", [kernels, kernel_summary, launches, roofline, utilisation, sequences, tensor_cores]
)
def test_an_empty_trace_gives_an_empty_result(builder, analysis):
    analysis(builder.read())
