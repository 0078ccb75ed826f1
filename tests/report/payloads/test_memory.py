"""What the page draws of memory: sums that hold, series that can be put together again, and what is missing told."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from document_fixtures import document_of

from pyrometer.memory.difference import diff_memory
from pyrometer.memory.place import HeldBytes
from pyrometer.memory.profile import LeakReport, LeakSite, MemoryProfile, PredictedMemory
from pyrometer.memory.snapshots.report import (
    CacheRelease,
    DeviceReport,
    FailedRequest,
    Fragmentation,
    PeakFragmentation,
    SnapshotReport,
)
from pyrometer.memory.timeline import PhaseSpan, Timeline
from pyrometer.record import from_json
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import MemoryDocument, SnapshotDocument
from pyrometer.report.payloads.memory import (
    NO_ALLOCATOR,
    NO_CLOCK,
    NO_LAYOUT,
    NO_PLACES,
    NO_SERIES,
    MemoryView,
    blocks,
    profile_part,
    snapshot_parts,
)
from pyrometer.report.payloads.memory_change import MOST_CHANGES, MemoryChange, changes
from pyrometer.report.payloads.memory_course import UNTOLD, course
from pyrometer.report.payloads.memory_held import OUTSIDE, SMALLER, Holding, holding
from pyrometer.report.payloads.memory_leak import leak_series

MIB = 2**20


def place(site: str, size: int, *, category: str | None = "activations", **more: Any) -> HeldBytes:
    return HeldBytes(site=site, bytes=size, count=1, category=category, **more)


def parts_of(found: Holding, parent: int) -> list[tuple[str, int]]:
    return [(node.name, node.bytes) for node in found.nodes if node.parent == parent]


PLACES = [
    place("a/model.py:3", 40, module="blocks.0.mlp", source="x @ w"),
    place("a/model.py:3", 30, module="blocks.1.mlp", source="x @ w"),
    place("a/model.py:9", 20, module="blocks.1.mlp"),
    place("a/model.py:12", 10),
    place("(loading the batch)", 5, category="inputs"),
]
LEDGER = {"activations": 101, "inputs": 5, "workspace": 7}


def test_the_parts_of_every_node_add_up_to_it():
    found = holding("at the peak", 120, LEDGER, PLACES)
    assert found is not None
    for index, node in enumerate(found.nodes):
        parts = parts_of(found, index)
        assert not parts or sum(size for _, size in parts) == node.bytes


def test_the_tree_goes_from_category_to_module_to_line_to_instance():
    found = holding("at the peak", 120, LEDGER, PLACES)
    assert found is not None
    assert parts_of(found, 0) == [("activations", 100), ("inputs", 5), ("workspace", 7), (SMALLER, 8)]
    names = [node.name for node in found.nodes]
    modules = parts_of(found, names.index("activations"))
    assert modules == [("blocks.*.mlp", 90), (OUTSIDE, 10)]
    lines = parts_of(found, names.index("blocks.*.mlp"))
    assert lines == [("a/model.py:3", 70), ("a/model.py:9", 20)]
    assert parts_of(found, names.index("a/model.py:3")) == [("blocks.0.mlp", 40), ("blocks.1.mlp", 30)]
    assert parts_of(found, names.index("inputs")) == [("(loading the batch)", 5)]


def test_each_place_is_at_the_node_that_holds_it():
    found = holding("at the peak", 120, LEDGER, PLACES)
    assert found is not None
    assert found.places.bytes == [40, 30, 20, 10, 5]
    assert [found.nodes[node].bytes for node in found.places.node] == found.places.bytes
    assert found.places.share[0] == pytest.approx(40 / 120)


def test_a_line_with_several_categories_is_told():
    whole = holding("at the peak", 110, {"activations": 100, "inputs": 10}, PLACES[:4])
    mixed = holding("at the peak", 110, {"activations": 60, "inputs": 50}, PLACES[:4])
    assert whole is not None
    assert mixed is not None
    assert (whole.mixed, mixed.mixed) == (False, True)


def test_nothing_held_is_no_tree():
    assert holding("at the end", 0, {}, []) is None


def put_together(steps: list[int]) -> list[int]:
    return list(accumulate(steps))


def test_a_course_can_be_put_together_again():
    given = Timeline(
        event=[-1, 4, 9],
        time_s=[0.0, 0.5, 0.75],
        total_bytes=[0, 2**40, 7],
        category_bytes={"parameters": [0, 2**39, 4], "inputs": [0, 2**39 - 5, 3]},
        reserved_bytes=[0, 2**41, 2**41],
    )
    found = course(given)
    assert found is not None
    assert put_together(found.event_steps) == given.event
    assert put_together(found.time_us_steps) == [0, 500_000, 750_000]
    assert put_together(found.reserved_steps) == given.reserved_bytes
    layers = {layer.name: put_together(layer.steps) for layer in found.layers}
    assert layers == {**given.category_bytes, UNTOLD: [0, 5, 0]}
    assert (found.peak, found.peak_bytes) == (1, 2**40)


@pytest.mark.parametrize(
    "empty", [Timeline(), Timeline(event=[0], total_bytes=[5]), Timeline(event=[0, 1], total_bytes=[0, 0])]
)
def test_too_little_is_no_course(empty: Timeline):
    assert course(empty) is None


def make_profile(**changes: Any) -> MemoryProfile:
    values: dict[str, Any] = {
        "name": "GPT",
        "device": "cpu",
        "peak_bytes": 120,
        "peak_phase": "backward",
        "ledger_bytes": LEDGER,
        "at_peak": PLACES,
        "timeline": Timeline(
            event=[0, 3],
            total_bytes=[113, 9],
            category_bytes={"activations": [113, 0], "gradients": [0, 9]},
            phases=[PhaseSpan(name="forward", first=0, last=1)],
        ),
    }
    return MemoryProfile(**{**values, **changes})


def test_the_ledger_has_also_what_lives_only_off_the_peak():
    part = profile_part(make_profile())
    assert [(category.name, category.peak_bytes) for category in part.ledger] == [
        ("gradients", 0), ("activations", 101), ("inputs", 5), ("workspace", 7),
    ]  # fmt: skip
    assert part.peak_said == "120 B in backward"


def test_what_is_predicted_stands_beside_what_was_measured():
    predicted = PredictedMemory(peak_bytes=126, ledger_bytes={"parameters": 126}, error=0.05)
    halved = PredictedMemory(peak_bytes=60, ledger_bytes={"inputs": 60}, settings={"batch": "4"})
    part = profile_part(make_profile(predicted=predicted), [halved])
    assert [(bar.label, bar.note, bar.total_bytes) for bar in part.peaks] == [
        ("measured", "", 120),
        ("predicted", "off by 5.0 %", 126),
        ("batch 4", "0.50× of now, predicted", 60),
    ]
    assert {category.name: category.predicted_bytes for category in part.ledger}["parameters"] == 126
    assert profile_part(make_profile()).peaks == []


def test_what_the_record_lacks_is_told():
    full = profile_part(make_profile()).missing
    assert full[:2] == [NO_CLOCK, NO_ALLOCATOR]
    assert "7 B that no tensor shows" in full[-1]
    bare = profile_part(make_profile(timeline=Timeline(), at_peak=[]))
    assert bare.missing == [NO_SERIES, NO_PLACES]
    assert bare.holdings == []


def test_the_line_of_growth_goes_through_the_points():
    steps = list(range(40))
    live = [5000 + 100 * step + (7 if step % 2 else -7) for step in steps]
    site = LeakSite(
        file="a/b/c/train.py", line=9, holder="losses[…]", bytes_per_step=100.0, chain=["module", "list"]
    )
    series = leak_series(
        LeakReport(
            verdict="leak", sentence="it grows", bytes_per_step=100.0, ci=[90.0, 110.0], sites=[site],
            steps=steps, live_bytes=live, num_steps=40, warmup_steps=8,
        )
    )  # fmt: skip
    assert series.grows
    line = series.line
    assert line is not None
    assert line.steps == [8.0, 23.5, 39.0]
    assert line.bytes == pytest.approx([5800, 7350, 8900], abs=8)
    assert line.high_bytes[2] - line.low_bytes[2] == pytest.approx(20 * 15.5)
    assert line.low_bytes[1] == line.high_bytes[1] == line.bytes[1]
    assert (series.sites[0].place, series.sites[0].chain) == ("…/c/train.py:9", ["module", "list"])


def test_no_growth_has_no_line():
    still = leak_series(
        LeakReport(verdict="stable", sentence="", steps=[0, 1, 2, 3], live_bytes=[5, 5, 5, 5])
    )
    assert still.line is None
    assert not still.grows


def test_what_changed_has_its_sign_its_word_and_its_rest():
    before = make_profile(at_peak=[place(f"m.py:{i}", 100 + i) for i in range(MOST_CHANGES + 5)])
    change = changes(
        diff_memory(before, make_profile(peak_bytes=90, ledger_bytes={"inputs": 90}, at_peak=[]))
    )
    assert change.change_bytes == -30
    by_category, by_place = change.groups
    assert [(row.name, row.change_bytes, row.word) for row in by_category.rows] == [
        ("activations", -101, "gone"), ("inputs", 85, "grew"), ("workspace", -7, "gone"),
    ]  # fmt: skip
    assert (len(by_place.rows), by_place.num_rest) == (MOST_CHANGES, 5)
    assert by_place.rest_bytes == -sum(100 + i for i in range(5))


def fragmentation(event: int, reserved: int) -> Fragmentation:
    return Fragmentation(
        event=event, reserved_bytes=reserved, allocated_bytes=60, pending_free_bytes=0, inactive_split_bytes=30,
        cached_whole_bytes=reserved - 90, rounding_bytes=1, free_bytes=reserved - 60, largest_free_bytes=10,
        free_blocks=4, external=0.75, unused=0.4,
    )  # fmt: skip


def make_snapshot() -> SnapshotReport:
    timeline = Timeline(event=[0, 5, 9], total_bytes=[10, 60, 20], reserved_bytes=[20, 100, 100])
    failed = FailedRequest(
        event=7, request_bytes=500, device_free_bytes=2, allocator_free_bytes=40, usable_free_bytes=40,
        largest_free_bytes=10, free_blocks=4, allocated_bytes=60, reserved_bytes=100, site="t.py:9",
        held=PLACES[:1], sentence="the request failed",
    )  # fmt: skip
    main = DeviceReport(
        device=1, events=9, peak_bytes=60, peak_phase="forward",
        releases=[CacheRelease(event=9, reason="empty_cache", released_bytes=MIB, segments=1)],
    )  # fmt: skip
    return SnapshotReport(
        path="oom.pickle", device=1, peak_bytes=60, timeline=timeline, at_peak=PLACES[:1], at_end=PLACES[3:4],
        oom=[failed], fragmentation=PeakFragmentation(at_peak=fragmentation(5, 100), at_oom=[fragmentation(7, 120)]),
        devices=[DeviceReport(device=0, events=3, peak_bytes=30), main, DeviceReport(device=2, events=0, peak_bytes=0)],
    )  # fmt: skip


def test_a_snapshot_has_a_part_per_device_that_held_anything():
    first, second = snapshot_parts(make_snapshot())
    assert (first.label, first.peak_said, second.label) == ("device 1", "60 B in forward", "device 0")
    assert [one.label for one in first.holdings] == ["at the peak", "when 500 B were refused", "at the end"]
    assert NO_LAYOUT in first.missing
    assert second.missing == [NO_SERIES, NO_PLACES]


def test_events_of_a_snapshot_stand_where_they_happened():
    first, _ = snapshot_parts(make_snapshot())
    assert first.course is not None
    assert [(mark.point, mark.kind) for mark in first.course.marks] == [(1, "failed"), (2, "emptied")]


def test_bars_of_the_allocator_add_up():
    first, _ = snapshot_parts(make_snapshot())
    assert [bar.label for bar in first.fragments] == ["at the peak", "at a failed request"]
    for bar in first.fragments:
        assert sum(piece.bytes for piece in bar.pieces) == bar.total_bytes
    assert "waiting for a stream" not in {piece.name for piece in first.fragments[0].pieces}


def document(kind: type[Any], found: Any, **asked: Any) -> Any:
    fields = {name: getattr(found, name) for name in found.__struct_fields__}
    return document_of(kind, target="t", tool_version="0.1.0", **asked, **fields)


def test_blocks_follow_from_the_document(perception):
    plain = make_profile()
    made = list(blocks(document(MemoryDocument, plain, diff=diff_memory(plain, plain)), Attachments()))
    assert [block.name for block in made] == ["memory/0", "grown/0"]
    assert len(from_json(MemoryView, made[0].content).parts) == 1
    assert from_json(MemoryChange, made[1].content).groups == []
    snapshot = list(blocks(document(SnapshotDocument, make_snapshot()), Attachments()))
    assert [block.name for block in snapshot] == ["memory/0"]
    empty = SnapshotReport(path="empty.pickle", device=None, peak_bytes=0)
    assert list(blocks(document(SnapshotDocument, empty), Attachments())) == []
    assert list(blocks(perception, Attachments())) == []
