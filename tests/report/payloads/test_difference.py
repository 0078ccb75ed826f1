"""Two call trees laid over each other: every path once, and no nanosecond lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from document_fixtures import document_of

from pyrometer.record import from_json
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import BenchDocument, TraceDocument
from pyrometer.report.payloads.blocks import blocks_of
from pyrometer.report.payloads.difference import (
    CallDifference,
    SideCalls,
    blocks,
    difference_of,
    pair_threads,
)
from pyrometer.trace.difference.record import TimeChange, TraceDiff
from pyrometer.trace.view.record import CallColumns, StepView, TraceView

Row = tuple[int, str, str, int, int]
"""Parent, name, kind, calls, own time; below the root, which is node 0."""

THREAD: Row = (0, "thread 4711", "thread", 0, 0)


def make_view(rows: Sequence[Row], *, steps: int = 0, path: str = "a.json", **changes: Any) -> TraceView:
    """A view that holds calls only; kernels take their time on the device."""
    known = [(-1, "(all)", "trace", 0, 0), *rows]
    names, kinds = list({row[1]: 0 for row in known}), list({row[2]: 0 for row in known})
    host = [0 if row[2] == "kernel" else row[4] for row in known]
    device = [row[4] if row[2] == "kernel" else 0 for row in known]
    plain: dict[str, Any] = {
        "rank": 0,
        "path": path,
        "origin_ns": 0,
        "span_ns": 1000,
        "names": names,
        "kinds": kinds,
        "tracks": [],
        "steps": [StepView(name=f"step {i}", start_ns=i, end_ns=i + 1) for i in range(steps)],
        "slices": {},
        "lanes": {},
        "labels": {},
        "calls": CallColumns(
            parent=[row[0] for row in known],
            name=[names.index(row[1]) for row in known],
            kind=[kinds.index(row[2]) for row in known],
            calls=[row[3] for row in known],
            total_ns=_totals(known, host),
            self_ns=host,
            device_ns=_totals(known, device),
            device_self_ns=device,
        ),
        "num_slices": 0,
        **changes,
    }
    return msgspec.convert(msgspec.to_builtins(plain), TraceView)


def _totals(rows: Sequence[Row], own: Sequence[int]) -> list[int]:
    sums = list(own)
    for node in range(len(rows) - 1, 0, -1):
        sums[rows[node][0]] += sums[node]
    return sums


def paths(difference: CallDifference, side: SideCalls) -> dict[str, tuple[int, int, int]]:
    """Calls, host and device time of each path, where a side has it."""
    said: list[str] = []
    for parent, name in zip(difference.parent, difference.name, strict=True):
        said.append((f"{said[parent]} > " if parent > 0 else "") + difference.names[name])
    columns = zip(side.calls, side.self_ns, side.device_self_ns, strict=True)
    return {path: values for path, values in zip(said, columns, strict=True) if any(values)}


def test_merges_by_path_and_keeps_all_sums() -> None:
    before = make_view(
        [
            THREAD,
            (1, "aten::mm", "cpu_op", 4, 400),
            (2, "gemm", "kernel", 4, 4000),
            (1, "aten::add", "cpu_op", 2, 20),
        ]
    )
    after = make_view(
        [
            THREAD,
            (1, "aten::mm", "cpu_op", 4, 300),
            (1, "aten::mul", "cpu_op", 1, 7),
            (2, "gemm", "kernel", 4, 3000),
        ]
    )
    difference = difference_of(before, after)

    assert paths(difference, difference.before) == {
        "thread 4711 > aten::mm": (4, 400, 0),
        "thread 4711 > aten::mm > gemm": (4, 0, 4000),
        "thread 4711 > aten::add": (2, 20, 0),
    }
    assert paths(difference, difference.after) == {
        "thread 4711 > aten::mm": (4, 300, 0),
        "thread 4711 > aten::mm > gemm": (4, 0, 3000),
        "thread 4711 > aten::mul": (1, 7, 0),
    }
    assert all(parent < node for node, parent in enumerate(difference.parent))
    assert difference.parent.count(-1) == 1
    for side, view in ((difference.before, before), (difference.after, after)):
        assert (sum(side.self_ns), sum(side.device_self_ns)) == (
            view.calls.total_ns[0],
            view.calls.device_ns[0],
        )


def test_a_tree_against_itself_has_the_same_on_both_sides() -> None:
    view = make_view(
        [THREAD, (1, "a", "cpu_op", 1, 5), (2, "a", "cpu_op", 3, 2), (1, "b", "cpu_op", 1, 1)], steps=3
    )
    difference = difference_of(view, view)
    assert difference.before == difference.after
    assert len(difference.parent) == 5


def test_what_differs_between_runs_does_not_keep_calls_apart() -> None:
    def side(line: int, thread: str, step: int) -> TraceView:
        return make_view(
            [
                (0, thread, "thread", 0, 0),
                (1, f"train.py({line}): step", "python_function", 1, 5),
                (2, f"epoch {step}", "user_annotation", 1, 1),
                (2, "module:layers.0", "user_annotation", 1, 1),
                (2, "module:layers.1", "user_annotation", 1, 1),
            ]
        )

    difference = difference_of(side(31, "thread 17", 4), side(40, "thread 99", 11))
    assert len(difference.parent) == 6
    assert difference.before.self_ns == difference.after.self_ns == [0, 0, 5, 1, 1, 1]
    assert difference.names[difference.name[2]] == "train.py(40): step"


def test_siblings_that_are_comparable_are_added_up() -> None:
    before = make_view(
        [THREAD, (1, "epoch 1", "user_annotation", 1, 5), (1, "epoch 2", "user_annotation", 1, 6)]
    )
    difference = difference_of(before, make_view([THREAD, (1, "epoch 9", "user_annotation", 1, 7)]))
    assert (difference.before.self_ns[-1], difference.before.calls[-1], difference.after.self_ns[-1]) == (
        11,
        2,
        7,
    )


def test_threads_find_their_twins() -> None:
    before = make_view(
        [
            (0, "thread 1", "thread", 0, 0),
            (0, "pt_autograd_0", "thread", 0, 0),
            (0, "thread 2", "thread", 0, 0),
            (0, "loader", "thread", 0, 0),
            (1, "aten::mm", "cpu_op", 1, 100),
            (3, "backward", "cpu_op", 1, 50),
            (4, "read", "cpu_op", 1, 5),
        ]
    )
    after = make_view(
        [
            (0, "thread 8", "thread", 0, 0),
            (0, "thread 9", "thread", 0, 0),
            (0, "pt_autograd_0", "thread", 0, 0),
            (0, "worker", "thread", 0, 0),
            (0, "idle", "thread", 0, 0),
            (1, "backward", "cpu_op", 1, 40),
            (2, "aten::mm", "cpu_op", 1, 90),
            (4, "read", "cpu_op", 1, 5),
        ]
    )
    # By name; by name but for numbers, the largest first; by what they call. Nothing is left for 'idle'.
    assert pair_threads(before, after) == {2: 3, 1: 2, 3: 1, 4: 4}
    assert len(difference_of(before, after).parent) == 9


def test_threads_without_twins_stay_apart() -> None:
    before = make_view([(0, "a", "thread", 0, 0), (1, "x", "cpu_op", 1, 1)])
    after = make_view([(0, "b", "thread", 0, 0), (1, "y", "cpu_op", 1, 1)])
    assert pair_threads(before, after) == {}
    assert len(difference_of(before, after).parent) == 5


@pytest.mark.parametrize(
    ("steps", "divide_by", "said"),
    [
        ((5, 3), (5, 3), "per step"),
        ((4, 4), (4, 4), "per step"),
        ((5, 0), (1, 1), "only one marks steps"),
        ((0, 0), (1, 1), "neither marks steps"),
    ],
)
def test_sides_with_steps_are_compared_per_step(
    steps: tuple[int, int], divide_by: tuple[int, int], said: str
) -> None:
    rows = [THREAD, (1, "aten::mm", "cpu_op", 7, 1001)]
    difference = difference_of(make_view(rows, steps=steps[0]), make_view(rows, steps=steps[1]))
    assert (difference.before.divide_by, difference.after.divide_by) == divide_by
    assert difference.per_step is (divide_by != (1, 1))
    assert (difference.before.num_steps, difference.after.num_steps) == steps
    assert difference.before.self_ns[-1] == 1001  # divided only when it is shown
    assert said in difference.notice


def test_tells_what_was_left_out() -> None:
    rows = [THREAD, (1, "a", "cpu_op", 1, 1)]
    difference = difference_of(make_view(rows, notice="2 slices were merged"), make_view(rows))
    assert difference.notice.endswith("before: 2 slices were merged")


def make_diff() -> TraceDocument:
    step = TimeChange(a_ns=2.0, b_ns=1.0, ratio=0.5)
    diff = TraceDiff(
        outcome="faster",
        sentence="2× faster",
        step=step,
        num_steps_a=1,
        num_steps_b=1,
        confidence=0.95,
        margin=0.05,
    )
    return document_of(TraceDocument, target="a against b", diff=diff)


def test_a_comparison_of_traces_carries_a_block() -> None:
    rows = [THREAD, (1, "</script><img onerror=alert(1)>", "cpu_op", 1, 1)]
    attachments = Attachments(traces=[make_view(rows, path="a.json"), make_view(rows, path="b.json")])
    names = [block.name for block in blocks_of(make_diff(), attachments)]
    assert "difference/0" in names
    (block,) = blocks(make_diff(), attachments)
    difference = from_json(CallDifference, block.content)
    assert (difference.before.label, difference.after.label) == ("a.json", "b.json")


def test_there_is_none_without_two_trees(documents: dict[str, Any]) -> None:
    view, empty = make_view([THREAD, (1, "a", "cpu_op", 1, 1)]), make_view([])
    empty = msgspec.structs.replace(empty, calls=CallColumns())
    assert not list(blocks(make_diff(), Attachments()))
    assert not list(blocks(make_diff(), Attachments(traces=[view])))
    assert not list(blocks(make_diff(), Attachments(traces=[view, empty])))
    assert not list(blocks(document_of(TraceDocument, target="a"), Attachments(traces=[view, view])))
    bench = next(document for document in documents.values() if isinstance(document, BenchDocument))
    assert not list(blocks(bench, Attachments(traces=[view, view])))
