"""What is drawn of the roofline equals what the report says, under the ceilings that it was compared with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from document_fixtures import document_of

from pyrometer.hardware.datasheet import lookup
from pyrometer.hardware.peaks import Peak, Peaks
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import TraceDocument
from pyrometer.report.payloads.roofline import blocks, roofline_view
from pyrometer.trace.analysis.ceilings import ceilings
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.records.rates import Ceiling
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.totals import RoofPoint

BANDWIDTH = 2e11
PEAKS = {"float": 4e12, "c10::BFloat16": 16e12}
NAMES = {"float": "float32", "c10::BFloat16": "bfloat16"}


def ceiling(name: str, rate: float, **changes: Any) -> Ceiling:
    values: dict[str, Any] = {
        "low": rate * 0.9,
        "source": "measured on Test CPU",
        "is_measured": True,
        **changes,
    }
    return Ceiling(name=name, rate=rate, **values)


MACHINE = [
    ceiling("memory", BANDWIDTH), ceiling("cache", 8e11), ceiling("float32", 4e12), ceiling("bfloat16", 16e12),
]  # fmt: skip


def point(op: str, at: float, efficiency: float, dtype: str = "float", **changes: Any) -> RoofPoint:
    """An operator that reaches so much of the roof of a made-up machine."""
    roof = min(PEAKS[dtype], at * BANDWIDTH)
    values: dict[str, Any] = {
        "op": op, "shapes": "[[8,8]]", "dtypes": f'["{dtype}","{dtype}"]', "calls": 2, "time_ns": 1000, "share": 0.2,
        "flop": 100, "num_bytes": 10, "flop_per_s": roof * efficiency, "bytes_per_s": roof * efficiency / at,
        "intensity": at, "arithmetic": NAMES[dtype], "unit": "matrix", "share_of_roof": efficiency, "bound": "memory" if roof < PEAKS[dtype] else "compute",
    }  # fmt: skip
    return RoofPoint(**{**values, **changes})


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> RankReport:
    """The report on a trace with one operator."""
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 10}
    path.write_text(json.dumps({"traceEvents": [event]}))
    return report_rank(read_trace([path]).ranks[0])


@pytest.fixture
def make_report(bare):
    def make(points, *, rank=0, ceilings=MACHINE) -> RankReport:
        return msgspec.structs.replace(bare, rank=rank, roofline=points, ceilings=ceilings)

    return make


def test_the_ceilings_are_those_of_the_arithmetic_that_operators_do(make_report):
    points = [point("aten::add", 0.1, 0.5), point("aten::mm", 900.0, 0.6)]
    view = roofline_view(make_report(points))
    assert [slope.name for slope in view.slopes] == ["memory", "cache"]
    assert view.ceilings == [MACHINE[2]]
    assert (
        roofline_view(make_report([*points, point("aten::mm", 9.0, 0.3, "c10::BFloat16")])).ceilings
        == MACHINE[2:]
    )


def test_outside_of_matrix_units_all_types_stand_under_float32(make_report):
    lone = point("aten::gelu", 0.2, 0.5, "c10::BFloat16", unit="vector")
    assert [one.name for one in roofline_view(make_report([lone])).ceilings] == ["float32"]


def test_every_ceiling_and_the_roof_above_every_operator_are_on_the_axis(make_report):
    view = roofline_view(make_report([point("aten::add", 0.1, 1e-4), point("aten::mul", 2.0, 1e-4)]))
    assert view.up.high > 4e12
    assert view.across.high > 4e12 / BANDWIDTH
    bare = roofline_view(make_report([point("aten::mul", 2.0, 1e-4)], ceilings=[]))
    assert bare.up.high > 2.0 * BANDWIDTH


def test_measured_ceilings_tell_their_spread_and_what_was_timed(bare):
    peak = Peak(best=4e12, median=3.5e12, num_timings=9, work="matmul 2048×2048×2048")
    faster = Peak(best=5e12, median=4.9e12, num_timings=4, work="conv 3×3")
    memory = Peak(best=2e11, median=1.8e11, num_timings=7, work="copy of 512 MiB")
    known = Peaks(
        device="cpu", name="Test CPU", matmul_flop_per_s={"float32": peak, "bfloat16": peak}, conv_flop_per_s={"float32": faster},
        copy_bytes_per_s={"memory": memory, "h2d_pinned": memory}, cost_s={}, skipped={}, conditions=None, elapsed_s=1.0,
    )  # fmt: skip
    found = ceilings(read_trace([Path(bare.path)]).ranks[0], known)
    assert [(one.name, one.rate, one.low) for one in found] == [
        ("memory", 2e11, 1.8e11),
        ("bfloat16", 4e12, 3.5e12),
        ("float32", 5e12, 4.9e12),
    ]
    assert found[0].source == "measured on Test CPU"
    assert found[2].work == "conv 3×3, best of 4 timings"


def test_ceilings_of_a_data_sheet_have_no_spread(bare):
    known = lookup("NVIDIA H200")
    found = ceilings(read_trace([Path(bare.path)]).ranks[0], known)
    assert {one.name: one.rate for one in found} == {"memory": known.memory_bytes_per_s, **known.flop_per_s}
    assert {(one.source, one.is_measured, one.low) for one in found} == {(known.source, False, None)}


def test_a_report_without_peaks_has_no_ceilings(bare):
    assert bare.ceilings == []


def test_operators_without_arithmetic_are_counted_but_not_drawn(make_report):
    silent = RoofPoint(op="aten::copy_", calls=1, time_ns=10, share=0.1)
    still = point("aten::index", 0.1, 0.5, flop=0, flop_per_s=0.0, intensity=0.0)
    view = roofline_view(make_report([point("aten::mm", 900.0, 0.6, file="model.py", line=3), silent, still]))
    assert [one.name for one in view.points] == ["aten::mm"]
    assert view.points[0].place == "model.py:3"
    assert view.omitted == 2
    assert roofline_view(make_report([silent, still])) is None


def test_without_peaks_there_is_no_roof(make_report):
    silent = point("aten::mm", 900.0, 0.6, share_of_roof=None, bound="unknown")
    view = roofline_view(make_report([silent], ceilings=[]))
    assert (view.ceilings, view.slopes) == ([], [])


def test_a_block_per_rank(make_report):
    ranks = [make_report([point("aten::mm", 900.0, 0.6)], rank=rank) for rank in (0, 3, 3)]
    document = document_of(TraceDocument, target="trace.json", ranks=ranks)
    assert [block.name for block in blocks(document, Attachments())] == ["roofline/0", "roofline/3"]
