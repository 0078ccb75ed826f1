"""The blocks of a trace: what is drawn of each rank, whole and small enough to travel."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from document_fixtures import document_of

from pyrometer.record import from_json
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import TraceDocument
from pyrometer.report.payloads.block import block_of, element
from pyrometer.report.payloads.trace import blocks
from pyrometer.trace.difference.record import TimeChange, TraceDiff
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.view.record import TraceView
from pyrometer.trace.view.view import view_trace

MOST_BYTES_PER_SLICE = 8.5


def event(name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def view_of(folder: Path, events: list[dict[str, Any]], rank: int = 0) -> TraceView:
    path = folder / f"rank{rank}.json"
    path.write_text(json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": events}), encoding="utf-8")
    return view_trace(read_trace(path).ranks[0])


def test_one_block_per_rank(tmp_path: Path, perception: Any) -> None:
    views = [view_of(tmp_path, [event("aten::mm", 0, 10 + rank)], rank) for rank in (0, 3)]
    found = list(blocks(perception, Attachments(traces=[*views, views[0]])))

    assert [block.name for block in found] == ["trace/0", "trace/3"]
    assert [from_json(TraceView, block.content) for block in found] == views


def test_without_traces_there_is_none(perception: Any) -> None:
    assert list(blocks(perception, Attachments())) == []


def test_slices_travel_in_few_bytes(tmp_path: Path) -> None:
    """Times of real traces are as random as these: 200,000 slices then take about 1.5 MB."""
    chance, at, events = random.Random(7), 0.0, []
    for _ in range(20_000):
        dur = round(chance.lognormvariate(1.5, 1), 3)
        events.append(event(f"aten::op{chance.randrange(200)}", at, dur))
        at = round(at + dur + chance.uniform(0.1, 5), 3)
    view = view_of(tmp_path, events)

    assert len(view.slices.label) == 20_000
    assert len(element(block_of("trace/0", view))) < MOST_BYTES_PER_SLICE * 20_000


def test_a_comparison_has_a_block_per_side_though_both_are_of_one_rank(tmp_path: Path) -> None:
    view = view_of(tmp_path, [event("aten::mm", 0, 10)])
    step = TimeChange(a_ns=2.0, b_ns=1.0, ratio=0.5)
    diff = TraceDiff(
        outcome="undecided",
        sentence="",
        step=step,
        num_steps_a=1,
        num_steps_b=1,
        confidence=0.95,
        margin=0.05,
    )
    found = blocks(
        document_of(TraceDocument, target="a against b", diff=diff), Attachments(traces=[view, view])
    )

    assert [block.name for block in found] == ["trace/before", "trace/after"]
