from __future__ import annotations

from typing import Any

import pytest

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.compiler import build
from pyrometer.compiler.build import build_report
from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.inspection.record import Runtime
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.report import CompileReport
from pyrometer.record import from_json, to_json

READERS = (
    "count_frames",
    "read_breaks",
    "read_skips",
    "read_recompiles",
    "read_limits",
    "read_guards",
    "read_symbols",
    "read_cost",
    "read_passes",
    "read_cache",
    "read_code",
    "read_origins",
    "read_compilations",
    "read_graphs",
    "read_fusion",
    "with_advice",
)


def verdict(outcome: Any) -> Verdict:
    return Verdict(
        outcome=outcome,
        ratio=0.5,
        ci_low=0.4,
        ci_high=0.6,
        confidence=0.99,
        margin=0.05,
        smallest_effect=0.02,
        num_blocks=20,
        elapsed_s=1.0,
    )


def test_an_empty_log_is_a_report_of_nothing():
    report = build_report(CompileLog(()), strict=True)

    assert (report.graphs, report.frames, report.skipped_frames, report.artifact_bytes) == (0, 0, 0, 0)
    assert report.breaks == []
    assert not report.limit_reached
    assert report.unavailable == []
    assert from_json(CompileReport, to_json(report)) == report


@pytest.mark.parametrize("name", READERS)
def test_a_reader_that_fails_is_named_and_the_rest_stays(name, monkeypatch):
    def broken(*_args: Any, **_settings: Any) -> Any:
        raise TypeError("met something odd")

    monkeypatch.setattr(build, name, broken)
    report = build_report(CompileLog(()), first_call_s=1.0)

    (line,) = report.unavailable
    assert "TypeError: met something odd" in line
    assert report.cost.first_call_s == 1.0
    with pytest.raises(TypeError):
        build_report(CompileLog(()), strict=True)


def test_entries_of_unknown_shapes_disturb_no_reader():
    kinds = [
        "dynamo_output_graph", "compilation_metrics", "bwd_compilation_metrics", "chromium_event",
        "dynamo_graph_break_reason", "recompile_reasons", "dynamo_cpp_guards_str", "fx_graph_cache_miss",
        "aotautograd_cache_hit", "inductor_output_code", "create_symbol", "guard_added_fast",
        "symbolic_shape_specialization", "dynamo_start", "aot_joint_graph", "inductor_post_grad_graph",
        "inductor_provenance_tracking_node_mappings", "something_new", "pyrometer.fusion",
    ]  # fmt: skip
    oddities: list[tuple[Any, str]] = [
        (None, ""), ({}, "{"), ([], "[1, 2"), ("text", "null"), (3, "3"), ({"a": 1}, "[]"), ({}, '{"x": null}'),
    ]  # fmt: skip
    entries = tuple(
        LogEntry(kind, metadata, payload, compile_id=owner)
        for kind in kinds
        for metadata, payload in oddities
        for owner in (None, CompileId(0, None, 0, 0), CompileId(1, 2, None, None))
    )
    build_report(CompileLog(entries), strict=True)


def test_what_the_log_does_not_tell_is_unavailable_once():
    log = CompileLog((), num_faults=2, unavailable=("structured trace: none", "other"))
    report = build_report(log, unavailable=["other", "numerics: random"])

    assert report.unavailable == [
        "structured trace: none",
        "other",
        "numerics: random",
        "2 entries of torch's log: they could not be read",
    ]


def test_resets_are_counted():
    entries = tuple(
        LogEntry("dynamo_start", {}, compile_id=CompileId(epoch, None, 0, 0)) for epoch in range(3)
    )

    assert build_report(CompileLog(entries)).resets == 2


def test_measured_dispatch_reaches_the_report():
    report = build_report(CompileLog(()), runtime=Runtime(lookup_s=1e-5, wrapper_s=2e-5))

    assert report.cost.dispatch_s == pytest.approx(3e-5)


@pytest.mark.parametrize(("outcome", "steps"), [("faster", 19), ("same", None), ("undecided", None)])
def test_only_what_was_shown_to_be_faster_is_repaid(outcome, steps):
    report = build_report(
        CompileLog(()),
        first_call_s=10.0,
        steady_s=0.5,
        eager_steady_s=1.0,
        runtime=Runtime(verdict=verdict(outcome)),
    )

    assert report.cost.break_even_steps == steps
    assert report.cost.outcome == outcome
    assert (report.cost.ci_low, report.cost.ci_high) == (0.4, 0.6)
