"""Damage is mended event by event, counted, located, and refused when asked."""

from __future__ import annotations

import json
from collections.abc import Callable

import polars as pl
import pytest

from pyrometer.errors import InputError
from pyrometer.trace.reading.read import read_trace

NAME = b'"aten::op7"'
STYLES = ("one line", "compact", "indented", "kineto")


def replace(old: bytes, new: bytes, count: int = 1) -> Callable[[bytes], bytes]:
    """Both spellings of a separator are tried, so that one case serves every style."""

    def damage(good: bytes) -> bytes:
        for before, after in ((old, new), (old.replace(b": ", b":"), new.replace(b": ", b":"))):
            if before in good:
                return good.replace(before, after, count)
        raise AssertionError(f"{old!r} is not in the text")

    return damage


MENDED = {
    "bare NaN": (replace(b"5.5", b"NaN"), "bare_value", 1),
    "bare Infinity": (replace(b"5.5", b"Infinity"), "bare_value", 1),
    "bare -inf": (replace(b"5.5", b"-inf"), "bare_value", 1),
    "bare N/A": (replace(b'"External id": 7', b'"External id": N/A'), "bare_value", 1),
    "missing value": (replace(b'"External id": 7', b'"External id": '), "missing_value", 1),
    "bad escape": (replace(NAME, rb'"C:\data\x7"'), "bad_escape", 1),
    "lone surrogate": (replace(NAME, rb'"\ud800"'), "bad_escape", 1),
    "backslash before the closing quote": (replace(NAME, b'"C:\\\\data\\"'), "bad_escape", 1),
    "quotes, and a backslash before the last": (replace(NAME, rb'"C:\data" + "\"'), "unescaped_quote", 1),
    "control character": (replace(NAME, b'"a\x01b\n"'), "control_character", 1),
    "control character in arguments": (replace(b"a;b", b"a\x02;\tb", 2), "control_character", 2),
    "bad UTF-8 in a name": (replace(NAME, b'"aten::\xff"'), "bad_utf8", 1),
    "bad UTF-8 in arguments": (replace(b"a;b", b"\xfe", 3), "bad_utf8", 3),
    "quote in a name": (replace(NAME, b'"a"b"'), "unescaped_quote", 1),
    "two quotes, a comma and a colon in a name": (
        replace(NAME, b'"say "x", "y": 1"'),
        "unescaped_quote",
        1,
    ),
    "an object in a name": (replace(NAME, b'"{"k": "v"}"'), "unescaped_quote", 1),
    "what looks like the next event in a name": (replace(NAME, b'"}, {"ph": "X""'), "unescaped_quote", 1),
    "quote in arguments": (replace(b"a;b", b'a"b;c'), "unescaped_quote", 1),
    "number beyond 64 bits": (
        replace(b'"External id": 7', b'"External id": 99999999999999999999'),
        "out_of_range",
        1,
    ),
    "value of another type": (replace(b'"pid": 1', b'"pid": true', 3), "wrong_type", 3),
    "negative duration": (replace(b"5.5", b"-5.5"), "negative_duration", 1),
    "missing duration": (replace(b'"dur"', b'"doors"'), "missing_duration", 1),
}

LOST = {
    "missing start": (replace(b'"ts"', b'"tse"'), "missing_time"),
    "start that is not a number": (replace(b'"ts": 100', b'"ts": {}, "x": 100'), "missing_time"),
    "start beyond 292 years": (replace(b'"ts": 100', b'"ts": 9e99, "x": 100'), "missing_time"),
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("case", MENDED)
def test_damaged_event_is_mended_counted_and_located(text, case, style):
    damage, code, num = MENDED[case]
    loaded = text.load(damage(text.good(style)))
    assert loaded.tables["events"].height == 50
    assert loaded.info.num_lost_events == 0
    found = next(repair for repair in loaded.info.repaired if repair.code == code)
    assert (found.num_events, found.num_lost) == (num, 0)
    assert found.first_byte is not None
    assert found.message.startswith("trace.json: ")
    assert found.message.endswith("; analysed what is there; PYROMETER_STRICT=1 refuses it")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("case", LOST)
def test_event_that_has_no_place_in_time_is_lost_and_counted(text, case, style):
    damage, code = LOST[case]
    loaded = text.load(damage(text.good(style)))
    assert loaded.tables["events"].height == 49
    assert loaded.tables["ops"].height == 49
    assert loaded.info.num_lost_events == 1
    assert {repair.code: repair.num_lost for repair in loaded.info.repaired}[code] == 1


@pytest.mark.parametrize("case", [*MENDED, *LOST])
def test_strict_refuses_with_one_line_about_the_first_damage(text, case):
    damage = {**MENDED, **LOST}[case][0]
    text.path.write_bytes(damage(text.good()))
    with pytest.raises(
        InputError, match=r"^trace\.json: .*; unset PYROMETER_STRICT to analyse what is there$"
    ):
        read_trace(text.path, strict=True)


@pytest.mark.parametrize("style", STYLES)
def test_sound_files_need_no_repair(text, style):
    loaded = text.load(text.good(style))
    assert loaded.info.repaired == []
    assert loaded.info.num_events == loaded.tables["events"].height == 50
    assert loaded.tables["ops"]["call_stack"].to_list() == ["a;b"] * 50


def test_what_is_mended_says_what_was_meant(text):
    good = text.good()
    names = {
        b'"a"b"': 'a"b',
        b'"say "x", "y": 1"': 'say "x", "y": 1',
        rb'"C:\data\x7"': r"C:\data\x7",
        b'"a\x01b"': "a\x01b",
        b'"aten::\xff"': "aten::\ufffd",
        b'"}, {"ph": "X""': '}, {"ph": "X"',
    }
    for damaged, meant in names.items():
        loaded = text.load(good.replace(NAME, damaged))
        assert loaded.tables["events"]["name"][7] == meant
        assert loaded.tables["events"].drop("name").equals(text.load(good).tables["events"].drop("name"))


def test_several_kinds_in_one_file_are_told_apart(text):
    damaged = text.good().replace(b"5.5", b"NaN", 1)
    damaged = damaged.replace(b'"aten::op30"', b'"a"b"').replace(b'"aten::op40"', rb'"\q"')
    loaded = text.load(damaged)
    assert {r.code for r in loaded.info.repaired} == {
        "bare_value",
        "missing_duration",
        "unescaped_quote",
        "bad_escape",
    }
    places = [r.first_byte for r in loaded.info.repaired]
    assert places == sorted(places)


def test_strict_names_the_first_of_several(text):
    damaged = text.good().replace(b'"aten::op30"', b'"a"b"').replace(b'"aten::op20"', rb'"\q"')
    text.path.write_bytes(damaged)
    with pytest.raises(InputError, match="backslash"):
        read_trace(text.path, strict=True)


@pytest.mark.parametrize("style", ["one line", "compact"])
def test_damage_between_events(text, style):
    good = text.good(style)
    last = good.rindex(b"}}]") + 2
    cases = {
        "trailing_comma": good[:last] + b"," + good[last:],
        "missing_comma": good.replace(b'}, {"ph"', b'} {"ph"', 1).replace(b'},{"ph"', b'}{"ph"', 1),
        "missing_bracket": good.replace(b'"a;b"}', b'"a;b"', 1),
    }
    for code, damaged in cases.items():
        loaded = text.load(damaged)
        assert (loaded.tables["events"].height, loaded.info.base_ns) == (50, 5)
        assert [(r.code, r.num_events, r.num_lost) for r in loaded.info.repaired] == [(code, 1, 0)]


def test_entries_that_are_not_events_are_counted(text):
    good = text.good()
    loaded = text.load(good.replace(b'"traceEvents": [', b'"traceEvents": [null, 5, '))
    assert loaded.tables["events"].height == 50
    assert sum(repair.num_lost for repair in loaded.info.repaired) == loaded.info.num_lost_events >= 1


def test_unreadable_event_in_the_middle_costs_only_itself(text):
    deep = b"[" * 5000 + b"]" * 5000
    loaded = text.load(text.good().replace(b"[[2, 3], []]", deep, 1))
    assert loaded.tables["events"].height == 49
    assert [(r.code, r.num_lost) for r in loaded.info.repaired] == [("unreadable_event", 1)]


def test_text_after_the_end_is_told(text):
    loaded = text.load(text.good() + b"\n<html>gateway timeout")
    assert (loaded.tables["events"].height, loaded.info.base_ns) == (50, 5)
    assert [(r.code, r.num_lost) for r in loaded.info.repaired] == [("garbage_at_end", 0)]


def test_damaged_head_and_tail_keep_what_can_be_read(text):
    good = text.good()
    head = text.load(good.replace(b'{"schemaVersion"', b'{"my"key": "a"b", "schemaVersion"'))
    assert (head.info.rank, head.info.world_size, head.info.base_ns) == (2, 4, 5)
    tail = text.load(good[:-3])
    assert (tail.info.rank, tail.info.metadata["traceName"]) == (2, "x")
    assert [r.code for r in tail.info.repaired] == ["missing_end"]
    hopeless = text.load(good.replace(b'{"schemaVersion"', b'{{{{"schemaVersion"'))
    assert hopeless.info.rank == 2
    assert hopeless.tables["events"].height == 50
    assert [r.code for r in hopeless.info.repaired] == ["bad_header"]


def test_of_a_key_given_twice_the_last_holds(text):
    loaded = text.load(text.good().replace(b'"dur": 5.5', b'"dur": 1, "dur": 2', 1))
    assert loaded.tables["events"]["dur_ns"][0] == 2000
    assert loaded.info.repaired == []


def test_event_that_the_profiler_put_at_zero_is_lost_and_told(text):
    far = [{**event, "ts": 4e12 + event["ts"]} for event in json.loads(text.good())["traceEvents"]]
    far[3]["ts"] = 0
    loaded = text.load(json.dumps({"traceEvents": far}).encode())
    assert loaded.tables["events"]["start_ns"].min() > 4e15
    assert loaded.tables["ops"]["event"].to_list() == list(range(49))
    assert [(r.code, r.num_lost) for r in loaded.info.repaired] == [("clamped_time", 1)]


def test_events_near_zero_are_ordinary_where_the_clock_starts_there(text):
    events = [{**event, "ts": event["ts"] - 101} for event in json.loads(text.good())["traceEvents"]]
    loaded = text.load(json.dumps({"traceEvents": events}).encode())
    assert loaded.tables["events"]["start_ns"].min() == -1000
    assert loaded.info.repaired == []


def test_numbers_in_quotes_are_numbers(text):
    good = text.good()
    quoted = good.replace(b'"dur": 5.5', b'"dur": "5.5"').replace(b'"External id": 7', b'"External id": "7"')
    loaded = text.load(quoted)
    assert loaded.tables["events"].equals(text.load(good).tables["events"])


def test_values_out_of_range_become_null_and_their_neighbours_stay(text):
    loaded = text.load(text.good().replace(b'"External id": 7,', b'"External id": 18446744073709551615,'))
    ids = loaded.tables["events"]["external"]
    assert ids.to_list() == [None if i == 7 else i for i in range(50)]
    assert ids.dtype == pl.Int64
