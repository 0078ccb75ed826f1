"""Counters that CUPTI's range profiler wrote belong to the operators that launched the kernels, in their order."""

from __future__ import annotations

from typing import Any

from pyrometer.record import from_json, to_json
from pyrometer.report.facts.trace import sections
from pyrometer.trace.analysis.hardware_counters import hardware_counters
from pyrometer.trace.records.rates import OperatorCounters
from pyrometer.trace.reporting.rank_report import report_rank

FMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
ADD = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
TENSOR = "sm__inst_executed_pipe_tensor.sum"
BUSY = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


def recorded(builder: Any, *, missing: int = 0) -> Any:
    """Three operators, four kernels; ranges split the whole recording evenly, as Kineto writes them."""
    launching = ["aten::addmm", "aten::add", "aten::add", "aten::addmm"]
    for i, op in enumerate(launching):
        builder.op(op, 100 * i, 50)
        builder.call("cudaLaunchKernel", 100 * i + 5, 5)
    kernels = ["ampere_sgemm_128x64_tn", "vectorized_add", "vectorized_add", "ampere_sgemm_128x64_tn"]
    for i, kernel in enumerate(kernels[: len(kernels) - missing]):
        gemm = kernel.startswith("ampere")
        counters = {
            FMA: 1000 if gemm else 0,
            ADD: 0 if gemm else 64,
            TENSOR: 0,
            BUSY: 80.0 if gemm else 5.0 * i,
        }
        builder.add("cuda_profiler_range", kernel, 90.0 * i, 90, pid=0, tid=0, **counters)
    return builder.read()


def test_counters_are_summed_by_the_operator_that_launched(builder: Any) -> None:
    products, sums = hardware_counters(recorded(builder))
    assert (products.op, products.kernel, products.calls) == ("aten::addmm", "ampere_sgemm_128x64_tn", 2)
    assert (products.flop, products.counters[FMA], products.counters[BUSY]) == (4000, 2000, 80)
    assert (sums.op, sums.calls, sums.flop, sums.counters[BUSY]) == ("aten::add", 2, 128, 7.5)
    assert from_json(OperatorCounters, to_json(sums)) == sums


def test_where_ranges_are_missing_no_operator_is_named(builder: Any) -> None:
    found = hardware_counters(recorded(builder, missing=1))
    assert {row.op for row in found} == {None}
    assert sum(row.calls for row in found) == 3


def test_they_are_no_work_of_the_device_and_no_unknown_category(builder: Any) -> None:
    trace = recorded(builder)
    report = report_rank(trace)
    assert [row.op for row in report.hardware_counters] == ["aten::addmm", "aten::add"]
    assert report.num_kernels == 0
    assert trace.info.unknown_categories == {}


def test_other_counters_have_no_flop(builder: Any) -> None:
    builder.op("aten::mm", 0, 50)
    builder.call("cudaLaunchKernel", 5, 5)
    builder.add("cuda_profiler_range", "gemm", 0, 90, pid=0, tid=0, **{TENSOR: 7, "device": 0})
    (row,) = hardware_counters(builder.read())
    assert (row.flop, row.counters) == (None, {TENSOR: 7})


def test_traces_without_them_have_none(builder: Any) -> None:
    builder.launch("gemm", 0, 10, 5)
    assert hardware_counters(builder.read()) == []


def test_the_report_shows_them(builder: Any) -> None:
    (section,) = [one for one in sections(report_rank(recorded(builder)), None) if one.slug == "counters"]
    assert section.table is not None
    assert section.table.rows[0][:4] == ("aten::addmm", "ampere_sgemm_128x64_tn", "2", "4000")
    assert f"{BUSY} 80" in section.table.rows[0][4]
