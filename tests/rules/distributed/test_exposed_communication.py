from __future__ import annotations

import pytest

from pyrometer.rules.case import Case
from pyrometer.trace.reporting.rank_report import report_rank


def test_communication_after_the_computing_is_found_with_its_share(findings, reducing):
    (finding,) = findings("PYR601", reducing(calls=1, elements=1_000_000, each_us=500))
    assert finding.cost.share == pytest.approx(500 / 1560, rel=0.05)
    assert "most of it in all_reduce" in finding.message
    assert finding.advice.lever == "ddp_buckets"
    assert finding.resource == "comm"
    assert finding.advice.gain.ratio_low >= 1 - finding.cost.share - 1e-9
    assert finding.advice.gain.ratio_high == 1.0


def test_no_more_is_predicted_than_there_is_computing_to_hide_behind(findings, reducing):
    (finding,) = findings("PYR601", reducing(calls=1, elements=None, each_us=4000, compute_us=1000))
    assert finding.cost.share == pytest.approx(4000 / 5050, rel=0.02)
    assert finding.advice.gain.ratio_low == pytest.approx(1 - 1000 / 5050, rel=0.02)


def test_a_file_without_steps_is_not_told_of_steps(findings, builder):
    builder.launch("gemm", 0, 10, 100)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 100, 110, 90, stream=20)
    (finding,) = findings("PYR601", Case(target="test", trace=report_rank(builder.read())))
    assert (
        finding.message
        == "communication that nothing hides takes 47.4 % of the time, most of it in all_reduce"
    )
    assert finding.where.op == "all_reduce"


def test_a_few_percent_at_the_end_are_silent(findings, reducing):
    assert findings("PYR601", reducing(calls=1, elements=1_000_000, each_us=50)) == []


def test_hidden_communication_is_silent(findings, builder, collective):
    args = collective("allreduce", 1_000_000, 1)
    builder.op("aten::mm", 1000, 20)
    builder.launch("gemm", 1005, 1030, 2000)
    builder.op("record_param_comms", 1040, 20, **args)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1045, 1100, 900, stream=20, **args)
    assert findings("PYR601", Case(target="test", trace=report_rank(builder.read()))) == []


def test_waiting_for_a_straggler_is_not_communication(findings, synthetic):
    evidence = synthetic(slow_us={2: 900})
    alone = type(evidence)(target="test", trace=evidence.trace)
    assert findings("PYR601", alone)  # one trace cannot tell waiting from moving
    assert findings("PYR601", evidence) == []


def test_the_advice_hides_it(findings, reducing, builder, collective):
    """The same bytes beside the computing: the exposed share goes as predicted."""
    before = reducing(calls=1, elements=1_000_000, each_us=500)
    (finding,) = findings("PYR601", before)
    builder.events.clear()
    for step in range(2):
        clock = 1000.0 + step * 1060
        args = collective("allreduce", 1_000_000, step + 1)
        builder.op("aten::mm", clock, 20)
        builder.launch("gemm", clock + 5, clock + 30, 1000)
        builder.op("record_param_comms", clock + 40, 10, **args)
        builder.launch(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL", clock + 41, clock + 400, 500, stream=20, **args
        )
        builder.annotate(f"ProfilerStep#{step}", clock, 1040)
    after = report_rank(builder.read("after.json"))
    assert findings("PYR601", Case(target="test", trace=after)) == []
    ratio = after.span_ns / before.trace.span_ns
    assert finding.advice.gain.ratio_low == pytest.approx(ratio, abs=0.05)
