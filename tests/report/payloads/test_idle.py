"""Idle time on a page: causes in words, gaps since the origin, waits with their places."""

from __future__ import annotations

import json

import msgspec
import pytest
from document_fixtures import changed, document_of

from pyrometer.record import from_json
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import TraceDocument
from pyrometer.report.facts.trace_words import HOST_DOINGS, IDLE_CAUSES
from pyrometer.report.payloads.idle import CAUSE_MEANINGS, CAUSE_SLOTS, DOING_SLOTS, IdleTables, blocks
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.view.tables import tables_of

BASE_US = 5_000_000.0


def event(cat, name, ts, dur, *, stream=None, **args):
    place = {"pid": 1, "tid": 1} if stream is None else {"pid": 0, "tid": stream}
    args |= {} if stream is None else {"device": 0, "stream": stream}
    return {"ph": "X", "cat": cat, "name": name, **place, "ts": BASE_US + ts, "dur": dur, "args": args}


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A kernel, a wait for it, and 180 µs later the next one."""
    events = [
        event("python_function", "train.py(12): step", 0, 340),
        event("cpu_op", "aten::mm", 0, 60),
        event("cuda_runtime", "cudaLaunchKernel", 10, 5, correlation=1),
        event("kernel", "gemm", 20, 100, stream=7, correlation=1),
        event("cpu_op", "aten::item", 70, 80),
        event("cuda_runtime", "cudaStreamSynchronize", 80, 45, correlation=2),
        event("cpu_op", "aten::add", 250, 60),
        event("cuda_runtime", "cudaLaunchKernel", 260, 5, correlation=3),
        event("kernel", "add", 300, 50, stream=7, correlation=3),
    ]
    path = tmp_path_factory.mktemp("traces") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return read_trace(str(path)).ranks[0]


@pytest.fixture(scope="module")
def document(trace):
    return document_of(TraceDocument, target="trace.json", ranks=[report_rank(trace)])


@pytest.fixture
def found(document):
    (block,) = blocks(document, Attachments())
    assert block.name == "idle/0"
    return from_json(IdleTables, block.content)


def test_the_gap_and_its_cause(found):
    assert found.headline == "The devices were idle for 200 µs, 57.1 % of the span."
    assert found.apart == ["20.0 µs before the first work of a device"]
    (cause,) = found.causes
    assert (cause.cause, cause.num_gaps, cause.total_ns, cause.share) == (
        IDLE_CAUSES["sync_drain"],
        1,
        180_000,
        1.0,
    )
    assert cause.meaning == CAUSE_MEANINGS["sync_drain"]
    gaps = found.gaps
    assert (gaps.start_ns, gaps.dur_ns) == ([120_000], [180_000])
    assert gaps.cause == [IDLE_CAUSES["sync_drain"]]
    assert gaps.doing[0] in HOST_DOINGS.values()
    assert gaps.where == ["train.py:12 step"]
    assert (gaps.previous, gaps.next) == (["gemm"], ["add"])
    assert found.unlisted is None


def test_the_wait(found):
    waits = found.syncs
    assert (waits.name, waits.where, waits.num_calls) == (["aten::item"], ["train.py:12 step"], [1])
    assert waits.stalled_ns == [40_000]
    assert waits.idle_after_ns == [180_000]
    assert waits.per_step == [None]  # it marks no steps
    assert found.sync_note.startswith("1 wait, ")
    assert found.streams.idle_ns == [180_000]


def test_groups_sum_to_the_attributed_time(found, document):
    assert sum(found.groups.total_ns) == document.reports[0].idle.attributed_ns
    assert sum(cause.total_ns for cause in found.causes) == document.reports[0].idle.attributed_ns


def test_attachments_give_more_gaps_than_the_document(document, trace):
    report = document.reports[0]
    without = msgspec.structs.replace(report.idle, gaps=[])
    short = changed(document, ranks=[msgspec.structs.replace(report, idle=without)])
    (alone,) = blocks(short, Attachments())
    (with_tables,) = blocks(short, Attachments(tables=[tables_of(trace)]))
    text = from_json(IdleTables, alone.content).unlisted
    assert text == "The 0 longest of 1 gap are listed; the others take 180 µs together."
    assert from_json(IdleTables, with_tables.content).gaps.dur_ns == [180_000]


def test_without_a_device_the_host_parts_idle_time(tmp_path):
    events = [
        event("user_annotation", "phase:data", 0, 90),
        event("cpu_op", "aten::mm", 100, 10),
        event("cpu_op", "aten::add", 150, 10),
    ]
    path = tmp_path / "host.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    report = report_rank(read_trace(str(path)).ranks[0])
    (block,) = blocks(document_of(TraceDocument, target="host.json", ranks=[report]), Attachments())
    tables = from_json(IdleTables, block.content)
    assert (tables.of, tables.by) == ("host", "doing")
    assert sum(cause.total_ns for cause in tables.causes) == report.idle.attributed_ns
    assert {cause.cause for cause in tables.causes} == set(tables.gaps.doing)


def test_every_cause_has_a_meaning_and_a_colour():
    assert set(IDLE_CAUSES) == set(CAUSE_MEANINGS) == set(CAUSE_SLOTS)
    assert len(set(CAUSE_SLOTS.values())) == len(CAUSE_SLOTS)
    assert set(DOING_SLOTS) == set(HOST_DOINGS)
    assert len(set(DOING_SLOTS.values())) == len(DOING_SLOTS)


def test_no_trace_no_block(documents):
    assert all(list(blocks(one, Attachments())) == [] for one in documents.values())
