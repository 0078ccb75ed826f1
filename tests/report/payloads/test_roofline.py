"""What is drawn of the roofline equals what the report says, under a roof that it implies."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pyrometer.hardware.datasheet import lookup
from pyrometer.report.documents import TraceDocument
from pyrometer.report.exhibits import Exhibits
from pyrometer.report.payloads.roofline import blocks, roofline_view
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.rank_report import RankReport, report_rank
from pyrometer.trace.reporting.totals import RoofPoint

BANDWIDTH = 2e11
PEAKS = {"float": 4e12, "c10::BFloat16": 16e12}


def point(op: str, at: float, efficiency: float, dtype: str = "float", **changes: Any) -> RoofPoint:
    """An operator that reaches so much of the roof of a made-up machine."""
    roof = min(PEAKS[dtype], at * BANDWIDTH)
    values: dict[str, Any] = {
        "op": op, "shapes": "[[8,8]]", "dtypes": f'["{dtype}","{dtype}"]', "calls": 2, "time_ns": 1000, "share": 0.2,
        "flop": 100, "num_bytes": 10, "flop_per_s": roof * efficiency, "bytes_per_s": roof * efficiency / at,
        "intensity": at, "share_of_roof": efficiency, "bound": "memory" if roof < PEAKS[dtype] else "compute",
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
    def make(points, *, rank=0, device=None, source="measured on Test CPU") -> RankReport:
        used = msgspec.structs.replace(bare.utilisation, peaks_source=source)
        devices = [] if device is None else [device]
        return msgspec.structs.replace(bare, rank=rank, roofline=points, devices=devices, utilisation=used)

    return make


def test_the_roof_follows_from_the_operators(make_report):
    report = make_report(
        [
            point("aten::add", 0.1, 0.5),
            point("aten::mm", 900.0, 0.6),
            point("aten::mm", 900.0, 0.3, "c10::BFloat16"),
            point("aten::conv", 500.0, 0.2),
        ]
    )
    view = roofline_view(report)
    assert view.bytes_per_s == pytest.approx(BANDWIDTH)
    assert [(one.name, one.flop_per_s) for one in view.ceilings] == [
        ("float32", pytest.approx(4e12)),
        ("bfloat16", pytest.approx(16e12)),
    ]
    assert view.across.log
    assert view.across.low < 0.1
    assert view.up.high > 16e12


def test_the_roof_above_every_operator_is_on_the_axis(make_report):
    view = roofline_view(make_report([point("aten::add", 0.1, 1e-4), point("aten::mul", 2.0, 1e-4)]))
    assert view.bytes_per_s == pytest.approx(BANDWIDTH)
    assert view.ceilings == []
    assert view.up.high > 2.0 * BANDWIDTH


def test_without_an_operator_at_the_memory_there_is_no_slope(make_report):
    view = roofline_view(make_report([point("aten::mm", 900.0, 0.6)]))
    assert view.bytes_per_s is None
    assert [one.flop_per_s for one in view.ceilings] == [pytest.approx(4e12)]


def test_the_vendor_s_figures_are_used_where_the_report_used_them(make_report):
    known = lookup("NVIDIA H200")
    report = make_report(
        [point("aten::mm", 900.0, 0.6, "c10::BFloat16")], device="NVIDIA H200", source=known.source
    )
    view = roofline_view(report)
    assert view.bytes_per_s == known.memory_bytes_per_s
    assert [(one.name, one.flop_per_s) for one in view.ceilings] == [
        ("bfloat16", known.flop_per_s["bfloat16"])
    ]


def test_operators_without_arithmetic_are_counted_but_not_drawn(make_report):
    silent = RoofPoint(op="aten::copy_", calls=1, time_ns=10, share=0.1)
    still = point("aten::index", 0.1, 0.5, flop=0, flop_per_s=0.0, intensity=0.0)
    view = roofline_view(make_report([point("aten::mm", 900.0, 0.6, file="model.py", line=3), silent, still]))
    assert [one.name for one in view.points] == ["aten::mm"]
    assert view.points[0].place == "model.py:3"
    assert view.omitted == 2
    assert roofline_view(make_report([silent, still])) is None


def test_without_peaks_there_is_no_roof(make_report):
    view = roofline_view(make_report([point("aten::mm", 900.0, 0.6, share_of_roof=None, bound="unknown")]))
    assert view.ceilings == []
    assert view.bytes_per_s is None


def test_a_block_per_rank(make_report):
    ranks = [make_report([point("aten::mm", 900.0, 0.6)], rank=rank) for rank in (0, 3, 3)]
    document = TraceDocument(target="trace.json", ranks=ranks)
    assert [block.name for block in blocks(document, Exhibits())] == ["roofline/0", "roofline/3"]
