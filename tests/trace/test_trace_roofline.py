"""Roofline and utilisation: FLOP and bytes attributed once, rates over measured time, and honest gaps."""

from __future__ import annotations

import polars as pl
import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from pyrometer.hardware.peaks import DatasheetPeaks, Peak, Peaks
from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.roofline import roofline
from pyrometer.trace.analysis.utilisation import utilisation
from pyrometer.trace.costs.op_costs import op_costs
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.records.rates import Utilisation

SHEET = DatasheetPeaks(
    device="test", flop_per_s={"float32": 1e12, "bfloat16": 4e12}, memory_bytes_per_s=1e11, source="a test"
)


def shapes(*dims, kind="float", concrete=None):
    args = {"Input Dims": list(dims), "Input type": [kind if dim != [] else "Scalar" for dim in dims]}
    return {**args, "Concrete Inputs": concrete or ["" for _ in dims]}


def row(frame, op):
    return frame.filter(pl.col("op") == op).row(0, named=True)


def test_rates_and_share_of_the_roof(builder):
    n = 1024
    builder.op("aten::mm", 0, 10, **shapes([n, n], [n, n]))
    builder.launch("volta_sgemm", 1, 20, 4000)
    builder.op("aten::add", 30, 10, **shapes([n, n], [n, n], []))
    builder.launch("add_kernel", 31, 4100, 200)
    rows = roofline(builder.read(), peaks=SHEET)
    mm, add = row(rows, "aten::mm"), row(rows, "aten::add")
    assert mm["flop"] == 2 * n**3
    assert mm["flop_per_s"] == pytest.approx(2 * n**3 / 4e-3)
    assert mm["share_of_roof"] == pytest.approx(2 * n**3 / 1e12 / 4e-3)
    assert mm["bound"] == "compute"
    assert mm["intensity"] == pytest.approx(2 * n**3 / (3 * 4 * n**2))
    assert add["bytes_per_s"] == pytest.approx(12 * n**2 / 200e-6)
    assert add["share_of_roof"] == pytest.approx(12 * n**2 / 1e11 / 200e-6)
    assert (add["bound"], add["unit"]) == ("memory", "vector")
    assert rows["time_ns"].sum() == 4_200_000


def test_a_wrapper_does_not_count_beside_what_it_calls(builder):
    builder.op("aten::linear", 0, 30, **shapes([8, 16], [32, 16], [32]))
    builder.op("aten::t", 1, 2, **shapes([32, 16]))
    builder.op("aten::addmm", 5, 20, **shapes([32], [8, 16], [16, 32], [], []))
    builder.launch("gemm", 6, 40, 10)
    found = utilisation(builder.read())
    assert found.flop == 2 * 8 * 16 * 32
    assert found.covered_share == 1


def test_without_a_device_time_is_the_operators_own(builder):
    builder.op("aten::linear", 0, 30, **shapes([8, 16], [32, 16], [32]))
    builder.op("aten::t", 1, 2, **shapes([32, 16]))
    builder.op("aten::addmm", 5, 20, **shapes([32], [8, 16], [16, 32], [], []))
    builder.op("my::op", 40, 10)
    trace = builder.read()
    rows = roofline(trace)
    assert {r["op"]: (r["time_ns"], r["bound"]) for r in rows.iter_rows(named=True)} == {
        "aten::linear": (8_000, "overhead"),
        "aten::t": (2_000, "overhead"),
        "aten::addmm": (20_000, "unknown"),
        "my::op": (10_000, "unknown"),
    }
    record = utilisation(trace)
    assert (record.time_ns, record.covered_ns, record.overhead_ns) == (40_000, 20_000, 10_000)
    assert record.covered_share == 20 / 30
    assert [(one.op, one.time_ns) for one in record.uncovered] == [("my::op", 10_000)]
    assert record.mfu is None


def test_a_wrapper_counts_where_nothing_below_does(builder):
    builder.op("aten::linear", 0, 30, **shapes([8, 16], [32, 16], [32]))
    assert utilisation(builder.read()).flop == 2 * 8 * 16 * 32


def test_an_operator_that_calls_itself_counts_once(builder):
    builder.op("aten::pow", 0, 30, **shapes([8], []))
    builder.op("aten::pow", 5, 20, **shapes([8], []))
    assert utilisation(builder.read()).flop == 8


def test_communication_and_transfers_are_kept_apart(builder):
    builder.op("record_param_comms", 0, 5)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1, 10, 100)
    builder.op("aten::copy_", 20, 5, **shapes([64], [64], []))
    builder.launch("Memcpy HtoD (Pinned -> Device)", 21, 120, 30, cat="gpu_memcpy")
    builder.op("aten::copy_", 40, 5, **shapes([64], [64], []))
    builder.launch("Memcpy DtoD (Device -> Device)", 41, 160, 7, cat="gpu_memcpy")
    builder.device("kernel", "of_nobody", 200, 9)
    found = utilisation(builder.read(), peaks=SHEET)
    assert (found.communication_ns, found.transfer_ns, found.covered_ns) == (100_000, 30_000, 7_000)
    assert found.unlinked_ns == 9_000
    assert found.covered_share == 7 / 16
    assert found.time_ns == 146_000


def test_what_is_tiny_is_overhead_and_what_is_slow_is_not(builder):
    builder.op("aten::add", 0, 5, **shapes([16], [16], []))
    builder.launch("quick", 1, 10, 3)
    builder.op("aten::mul", 20, 5, **shapes([16], [16]))
    builder.launch("slow", 21, 30, 300)
    rows = roofline(builder.read(), peaks=SHEET)
    assert row(rows, "aten::add")["bound"] == "overhead"
    assert row(rows, "aten::mul")["bound"] == "memory"


def test_tf32_is_judged_by_its_own_peak(builder):
    builder.op("aten::mm", 0, 10, **shapes([64, 64], [64, 64]))
    builder.launch("cutlass_80_tensorop_s1688gemm_64x64", 1, 20, 10)
    peaks = DatasheetPeaks(
        device="x", flop_per_s={"float32": 1e9, "tf32": 8e9}, memory_bytes_per_s=1e12, source="a test"
    )
    found = row(roofline(builder.read(), peaks=peaks), "aten::mm")
    assert found["arithmetic"] == "tf32"
    assert found["peak_ns"] == pytest.approx(2 * 64**3 / 8e9 * 1e9)


def test_a_type_without_a_peak_stays_unknown(builder):
    builder.op("aten::mm", 0, 10, **shapes([64, 64], [64, 64], kind="double"))
    builder.launch("dgemm", 1, 20, 10)
    found = row(roofline(builder.read(), peaks=SHEET), "aten::mm")
    assert (found["bound"], found["share_of_roof"]) == ("unknown", None)
    assert found["flop_per_s"] > 0


def test_peaks_come_from_the_device_that_the_trace_names(new_builder, tmp_path):
    builder = new_builder(tmp_path, deviceProperties=[{"id": 0, "name": "NVIDIA H200", "numSms": 132}])
    n = 4096
    builder.op("aten::mm", 0, 10, **shapes([n, n], [n, n], kind="c10::BFloat16"))
    builder.launch("sm90_gemm", 1, 20, 1000)
    found = utilisation(builder.read())
    assert "H200" in found.peaks_source
    assert found.mfu == pytest.approx(2 * n**3 / 989.5e12 / 1020e-6)


def test_measured_peaks_are_taken_when_given(builder):
    def peak(best):
        return Peak(best=best, median=best, num_timings=1, work="a test")

    measured = Peaks(
        device="cuda:0", name="a device", matmul_flop_per_s={"float32": peak(1e12)}, conv_flop_per_s={},
        copy_bytes_per_s={"memory": peak(1e11)}, cost_s={"small_kernel": peak(2e-6)}, skipped={}, conditions=None, elapsed_s=1,
    )  # fmt: skip
    builder.op("aten::mm", 0, 10, **shapes([512, 512], [512, 512]))
    builder.launch("gemm", 1, 20, 500)
    found = row(roofline(builder.read(), peaks=measured), "aten::mm")
    assert found["share_of_roof"] == pytest.approx(2 * 512**3 / 1e12 / 500e-6)
    assert "measured on a device" in utilisation(builder.read(), peaks=measured).peaks_source


def test_steps_get_what_they_launched(builder):
    for step, n in enumerate((16, 32)):
        builder.annotate(f"ProfilerStep#{step}", 1000 * step, 1000)
        builder.op("aten::mm", 1000 * step + 5, 10, **shapes([n, n], [n, n]))
        builder.launch("gemm", 1000 * step + 6, 1000 * step + 50, 20)
    found = utilisation(builder.read(), peaks=SHEET)
    assert [step.flop for step in found.steps] == [2 * 16**3, 2 * 32**3]
    assert found.steps[1].mfu == pytest.approx(2 * 32**3 / 1e12 / 1e-3)


def test_calls_with_one_shape_are_one_row_and_place_the_longest(builder):
    for i, line in enumerate((3, 9)):
        builder.python(f"net.py({line}): forward", 100 * i, 90)
        builder.op("aten::mm", 100 * i + 1, 10, **shapes([16, 16], [16, 16]))
        builder.launch("gemm", 100 * i + 2, 100 * i + 30, 10 + i)
    rows = roofline(builder.read())
    assert rows.height == 1
    assert (rows["calls"][0], rows["line"][0]) == (2, 9)


def test_unrecorded_shapes_are_a_reason_not_a_zero(builder):
    builder.op("aten::mm", 0, 10)
    builder.launch("gemm", 1, 20, 10)
    trace = builder.read()
    assert "record_shapes" in row(roofline(trace, peaks=SHEET), "aten::mm")["reason"]
    found = utilisation(trace, peaks=SHEET)
    assert (found.covered_share, found.mfu, found.flop_per_s) == (0, None, None)


def test_nothing_gives_nothing(builder):
    found = utilisation(builder.read())
    assert (found.time_ns, found.flop, found.covered_share) == (0, 0, None)
    assert roofline(builder.read()).height == 0


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.embed = torch.nn.Linear(8 * 16, 32)
        self.attend = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)

    def forward(self, images):
        hidden = torch.relu(self.norm(self.conv(images)))
        tokens = hidden.unflatten(2, (-1, 2)).transpose(1, 2).flatten(2)
        return self.attend(self.embed(tokens)).mean()


def test_a_real_training_step_has_the_flop_that_torch_counts(tmp_path):
    torch.manual_seed(0)
    model, x = Small(), torch.randn(4, 3, 8, 8)
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        optimizer.zero_grad()
        model(x).backward()
        optimizer.step()

    step()
    with FlopCounterMode(display=False) as counter:
        step()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        step()
    path = tmp_path / "step.json"
    profiler.export_chrome_trace(str(path))
    trace = read_trace(path).ranks[0]
    found = utilisation(trace)
    backends = counter.get_flop_counts()["Global"]
    attention = sum(n for op, n in backends.items() if "attention" in str(op))
    ours = (
        roofline(trace)
        .filter((pl.col("unit") == "matrix") & ~pl.col("op").str.contains("attention"))["flop"]
        .sum()
    )
    assert ours == counter.get_total_flops() - attention
    assert found.matrix_flop >= ours
    assert found.covered_share > 0.6


def test_real_traces_add_up(real_trace):
    trace = read_trace(real_trace).ranks[0]
    rows, costs = roofline(trace), op_costs(trace)
    assert rows["time_ns"].sum() == costs.time.sum()
    record = utilisation(trace)
    parts = record.covered_ns + record.communication_ns + record.transfer_ns + record.overhead_ns
    assert (
        parts + rows.filter((pl.col("bound") == "unknown") & pl.col("num_bytes").is_null())["time_ns"].sum()
        == record.time_ns
    )
    assert from_json(Utilisation, to_json(record)) == record
    if record.mfu is not None:
        assert 0 <= record.mfu <= 1
        assert 0 <= record.bandwidth_utilisation <= 1


@pytest.mark.parametrize(
    ("name", "share"),
    [("h100_vit", 1.0), ("h100_bert_small", 1.0), ("mi300_bert_small", 0.99), ("triton_compile", 1.0)],
)
def test_published_models_are_covered(real_traces, name, share):
    found = utilisation(read_trace(real_traces / f"{name}.json.gz").ranks[0])
    assert found.covered_share >= share
