"""Drawings of a trace: the call tree's boxes, shares of a whole, and the roofline."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.report.charts.icicle import LABELLED, Box, icicle
from pyrometer.report.charts.roofline import Point, Roof, roofline
from pyrometer.report.charts.shares import Share, share_bar, share_strip
from pyrometer.report.charts.tree import DEEPEST, boxes
from pyrometer.trace.reporting.totals import TreeNode

CANARY = "</script><img src=x onerror=alert(1)>"


def node(
    number: int, parent: int | None, total: int, *, own: int = 0, device: int = 0, **fields: object
) -> TreeNode:
    values = {"name": f"n{number}", "kind": "cpu_op", "calls": 1, "depth": 0, **fields}
    return TreeNode(node=number, parent=parent, total_ns=total, self_ns=own, device_ns=device, **values)


@st.composite
def trees(draw: st.DrawFn) -> list[TreeNode]:
    """Parents before children; each total is its own time and its children's."""
    parents: list[int | None] = [None]
    parents += [draw(st.integers(0, number)) for number in range(draw(st.integers(0, 39)))]
    own = [draw(st.integers(0, 1000)) for _ in parents]
    total = list(own)
    for number in range(len(parents) - 1, 0, -1):
        above = parents[number]
        assert above is not None
        total[above] += total[number]
    return [node(i, parent, total[i], own=own[i]) for i, parent in enumerate(parents)]


@given(trees())
def test_boxes_lie_side_by_side_within_the_whole(nodes: list[TreeNode]) -> None:
    placed = boxes(nodes, device=False)
    for depth in range(DEEPEST):
        row = sorted((box for box in placed if box.depth == depth), key=lambda box: box.start)
        for left, right in pairwise(row):
            assert left.start + left.width <= right.start + 1e-9
        assert sum(box.width for box in row) <= 1 + 1e-9
    for box in placed:
        assert box.start >= 0
        assert box.start + box.width <= 1 + 1e-9
        assert box.depth < DEEPEST


@given(trees())
def test_each_box_lies_below_one_that_holds_it(nodes: list[TreeNode]) -> None:
    placed = boxes(nodes, device=False)
    for box in placed:
        if box.depth:
            assert any(
                above.depth == box.depth - 1
                and above.start <= box.start + 1e-9
                and box.start + box.width <= above.start + above.width / 0.99 + 1e-9
                for above in placed
            )


def test_the_widest_child_comes_first() -> None:
    placed = boxes([node(0, None, 100), node(1, 0, 20), node(2, 0, 70)], device=False)
    assert [
        (box.label, box.start, box.width) for box in sorted(placed, key=lambda box: (box.depth, box.start))
    ] == [
        ("n0", 0.0, 1.0),
        ("n2", 0.0, 0.7),
        ("n1", 0.7, 0.2),
    ]


def test_callers_that_only_pass_through_are_one_box() -> None:
    chain = [node(i, i - 1 if i else None, 1000 - i) for i in range(4)]
    leaves = [node(4, 3, 500), node(5, 3, 400)]
    placed = boxes([*chain, *leaves], device=False)
    assert [(box.depth, box.label) for box in sorted(placed)] == [(0, "n3"), (1, "n4"), (1, "n5")]


def test_what_measures_is_not_drawn() -> None:
    tool = {"kind": "python_function", "name": "pyrometer/trace/capture/workload.py(199): _profile"}
    nodes = [node(0, None, 100), node(1, 0, 80, **tool), node(2, 1, 50), node(3, 1, 20), node(4, 0, 10)]
    placed = sorted(boxes(nodes, device=False), key=lambda box: (box.depth, box.start))
    assert [(box.label, box.depth, round(box.width, 3)) for box in placed] == [
        ("n0", 0, 1.0),
        ("n2", 1, 0.5),
        ("n3", 1, 0.2),
        ("n4", 1, 0.1),
    ]


def test_a_device_has_weights_of_its_own() -> None:
    nodes = [node(0, None, 100, device=10), node(1, 0, 90, device=2), node(2, 0, 5, device=8)]
    placed = {box.label: box.width for box in boxes(nodes, device=True)}
    assert placed == {"n0": 1.0, "n1": 0.2, "n2": 0.8}
    assert boxes([node(0, None, 100)], device=True) == []


def test_nothing_gives_nothing() -> None:
    assert boxes([], device=False) == []
    assert boxes([node(0, None, 0)], device=False) == []


def test_a_deep_tree_ends_somewhere() -> None:
    nodes = [node(i, i - 1 if i else None, (1 << 40) * 9**i // 10**i) for i in range(60)]
    assert max(box.depth for box in boxes(nodes, device=False)) == DEEPEST - 1


def test_a_drawing_is_well_formed_and_names_are_text() -> None:
    drawn = icicle(
        [Box(0, 0.0, 1.0, CANARY, CANARY, 1), Box(1, 0.2, LABELLED / 2, "narrow", "narrow: 1 s", 2)], "Tree"
    )
    tree = ET.fromstring(drawn)
    assert "<img" not in drawn
    assert ["".join(text.itertext()) for text in tree.iter() if text.tag.endswith("text")] == [CANARY], (
        "narrow boxes have no label"
    )
    assert [text.text for text in tree.iter() if text.tag.endswith("title")] == [CANARY, "narrow: 1 s"]
    assert 'role="img"' in drawn
    assert 'aria-label="Tree"' in drawn


@pytest.mark.parametrize(
    "points",
    [
        [],
        [Point("none", 0.0, 0.0, 1.0)],
        [Point("no traffic known", 0.0, 1e9, 1.0)],
        [Point("no arithmetic", 2.0, 0.0, 1.0)],
    ],
)
def test_a_roofline_without_arithmetic_is_not_drawn(points: list[Point]) -> None:
    assert roofline(points, None) is None
    assert roofline(points, Roof(1e12, 1e11)) is None


def test_a_roofline_draws_what_has_both_axes() -> None:
    points = [
        Point("aten::mm", 50.0, 8e11, 0.7),
        Point("aten::copy_", 0.0, 0.0, 0.2),
        Point("aten::add", 0.1, 4e9, 0.1),
    ]
    bare, roofed = roofline(points, None), roofline(points, Roof(1e12, 1e11))
    assert bare is not None
    assert roofed is not None
    for drawn in (bare, roofed):
        titles = [
            title.text or ""
            for title in ET.fromstring(f"<div>{drawn}</div>").iter()
            if title.tag.endswith("title")
        ]
        assert [title.split(":")[2] for title in titles] == ["mm", "add"], "largest first"
        assert "nan" not in drawn
        assert "inf" not in drawn
    assert len(re.findall("<line", roofed)) == len(re.findall("<line", bare)) + 2


def test_one_point_alone_can_be_drawn() -> None:
    assert roofline([Point("aten::mm", 1.0, 1e9, 1.0)], None) is not None


def test_a_bar_holds_all_parts() -> None:
    shares = [
        Share("compute", 0.6, "6 ms", 2),
        Share("idle", 0.35, "3.5 ms", 5),
        Share("sync", 0.05, "0.5 ms", 6),
    ]
    drawn = share_bar(shares, "the time")
    tree = ET.fromstring(drawn)
    widths = [
        float((rect.get("width") or "0").rstrip("%")) for rect in tree.iter() if rect.tag.endswith("rect")
    ]
    assert sum(widths) == pytest.approx(100)
    labels = ["".join(text.itertext()) for text in tree.iter() if text.tag.endswith("text")]
    assert labels == ["compute 60 %", "idle 35 %"]
    assert "sync 5 %" in drawn, "too narrow for a label, and still in the text alternative"


@given(st.lists(st.tuples(*[st.floats(0, 0.25)] * 4), min_size=1, max_size=30))
def test_a_strip_stays_within_its_height(columns: list[tuple[float, ...]]) -> None:
    tree = ET.fromstring(share_strip(columns, [0, 1, 2, 3], "over time", 0.2))
    rects = [rect for rect in tree.iter() if rect.tag.endswith("rect")]
    assert len(rects) == sum(share > 0 for column in columns for share in column)
    for rect in rects:
        assert float(rect.get("y") or 0) + float(rect.get("height") or 0) <= 72.0 + 1e-6
    assert [tick.text for tick in tree.iter() if tick.get("class") == "tick"] == [
        "0 ms",
        "50 ms",
        "100 ms",
        "150 ms",
        "200 ms",
    ]
