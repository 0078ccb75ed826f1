"""Begin and end events become complete ones; a half without its other is lost and counted."""

from __future__ import annotations

import json

import pytest


def half(ph, ts, name=None, tid=1, **more):
    return {"ph": ph, "ts": ts, "pid": 1, "tid": tid, **({"name": name} if name else {}), **more}


def read(text, events, **options):
    return text.load(json.dumps({"traceEvents": events}).encode(), **options)


def rows(loaded):
    return loaded.tables["events"].select("name", "start_ns", "dur_ns").rows()


@pytest.mark.parametrize("chunk_bytes", [20, 1 << 20])
def test_an_end_closes_the_innermost_begin_of_its_track(text, chunk_bytes):
    events = [
        half("B", 10, "outer", cat="cpu_op", args={"External id": 4}),
        half("B", 12, "inner", cat="cpu_op"),
        half("B", 11, "elsewhere", tid=2, cat="cpu_op"),
        half("E", 15.5),
        half("E", 20, "outer"),
        half("E", 30, tid=2),
    ]
    loaded = read(text, events, chunk_bytes=chunk_bytes)
    assert rows(loaded) == [("outer", 10000, 10000), ("elsewhere", 11000, 19000), ("inner", 12000, 3500)]
    assert loaded.tables["events"]["external"].to_list() == [4, None, None]
    assert loaded.tables["events"]["kind"].unique().to_list() == ["cpu_op"]
    assert loaded.info.num_events == 6
    assert loaded.info.repaired == []


def test_pairs_need_not_be_in_order(text):
    loaded = read(text, [half("E", 9), half("B", 5, "late"), half("E", 3), half("B", 1, "early")])
    assert rows(loaded) == [("early", 1000, 2000), ("late", 5000, 4000)]


def test_halves_without_their_other_are_counted(text):
    events = [
        half("E", 1, "never began"),
        half("B", 5, "never ends"),
        half("X", 2, "whole", dur=1, cat="cpu_op"),
    ]
    loaded = read(text, events)
    assert rows(loaded) == [("whole", 2000, 1000)]
    assert {r.code: r.num_lost for r in loaded.info.repaired} == {"unmatched_begin": 1, "unmatched_end": 1}
    assert loaded.info.num_lost_events == 2


def test_asynchronous_pairs_belong_together_by_id(text):
    events = [
        half("b", 1, "load", id=1, cat="io"),
        half("b", 2, "load", id=2, cat="io"),
        half("e", 5, "load", id=1, cat="io"),
        half("e", 9, "load", id=2, cat="io"),
    ]
    loaded = read(text, events)
    assert rows(loaded) == [("load", 1000, 4000), ("load", 2000, 7000)]
    assert loaded.info.unknown_categories == {"io": 2}


def test_other_phases_are_kept_as_instants_and_counted(text):
    loaded = read(text, [half("N", 1, "object"), half("R", 2, "mark"), half("i", 3, "instant")])
    assert loaded.tables["events"].select("kind", "name", "dur_ns").rows() == [
        ("instant", "object", 0),
        ("instant", "mark", 0),
        ("instant", "instant", 0),
    ]
    assert loaded.info.unknown_categories == {"ph N": 1, "ph R": 1}
