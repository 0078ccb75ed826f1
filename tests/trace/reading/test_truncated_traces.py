"""A file that is cut off anywhere gives every complete event before the cut, and says what is missing."""

from __future__ import annotations

import gzip
import json

import pytest

from pyrometer.errors import InputError
from pyrometer.trace.reading.load import load
from pyrometer.trace.reading.read import read_trace


def complete_events(text: bytes) -> int:
    """How many events a text holds whole, by a decoder that reads one value after another."""
    decoder, at, count = json.JSONDecoder(), text.index(b'"traceEvents": [') + len(b'"traceEvents": ['), 0
    whole = text.decode(errors="ignore")
    while True:
        while whole[at : at + 1] in set(", \n") - {""}:
            at += 1
        try:
            _, at = decoder.raw_decode(whole, at)
        except ValueError:
            return count
        count += 1


@pytest.mark.parametrize("style", ["one line", "indented", "kineto"])
@pytest.mark.parametrize("tenth", range(1, 10))
def test_every_complete_event_before_the_cut_is_there(text, style, tenth):
    good = text.good(style)
    cut = good[: len(good) * tenth // 10]
    loaded = text.load(cut)
    assert loaded.tables["events"].height == loaded.info.num_events == complete_events(cut)
    (repair,) = loaded.info.repaired
    assert (repair.code, repair.num_lost) in {("truncated", 1), ("missing_end", 0)}
    assert loaded.info.num_lost_events == repair.num_lost
    if repair.code == "truncated":
        assert repair.message == (
            f"trace.json: truncated after event {loaded.info.num_events} (byte {len(cut)});"
            " analysed what is there; PYROMETER_STRICT=1 refuses it"
        )


def test_every_single_byte_of_an_event_may_be_the_last(text):
    good = text.good(count=3)
    start = good.index(b'{"ph"', good.index(b"op1"))
    for end in range(start + 1, good.index(b"}}", start)):
        loaded = text.load(good[:end])
        assert loaded.tables["events"].height == 2
        assert loaded.info.num_lost_events == 1


@pytest.mark.parametrize("tenth", range(2, 10))
def test_truncated_gzip_gives_what_can_be_decompressed(text, tenth):
    good = text.good(count=3000)
    packed = gzip.compress(good)
    loaded = text.load_gzip(packed[: len(packed) * tenth // 10])
    available = loaded.info.raw_bytes
    assert 0 < available < len(good)
    assert loaded.tables["events"].height == complete_events(good[:available])
    assert [r.code for r in loaded.info.repaired] == ["truncated"]


def test_gzip_without_its_last_bytes_is_whole_but_said_to_be_cut(text):
    loaded = text.load_gzip(gzip.compress(text.good())[:-4])
    assert loaded.tables["events"].height == 50
    assert [(r.code, r.num_lost) for r in loaded.info.repaired] == [("truncated", 0)]


def test_gzip_with_a_changed_byte_gives_what_comes_before(text):
    good = text.good(count=3000)
    packed = bytearray(gzip.compress(good))
    packed[len(packed) // 2] ^= 0xFF
    loaded = text.load_gzip(bytes(packed))
    codes = {r.code for r in loaded.info.repaired}
    assert "corrupt" in codes
    assert loaded.tables["events"].height > 100


def test_strict_refuses_a_truncated_file(text):
    good = text.good()
    text.path.write_bytes(good[: len(good) // 2])
    with pytest.raises(
        InputError, match=r"^trace\.json: truncated after event 24 \(byte \d+\); unset PYROMETER_STRICT"
    ):
        read_trace(text.path, strict=True)


def test_cut_before_the_events_is_refused(text):
    good = text.good()
    with pytest.raises(InputError, match=r"ends \(byte 30\) before its list of events begins; export"):
        text.load(good[:30])


@pytest.mark.exhaustive
def test_real_trace_cut_at_every_tenth(real_traces, tmp_path):
    raw = gzip.decompress((real_traces / "h100_bert_small.json.gz").read_bytes())
    assert b'"traceEvents": [' in raw
    whole = read_trace(real_traces / "h100_bert_small.json.gz", cache=None).rank()
    for tenth in range(1, 10):
        cut = raw[: len(raw) * tenth // 10]
        path = tmp_path / "cut.json"
        path.write_bytes(cut)
        if b'"traceEvents"' not in cut:
            continue
        loaded = load(path)
        assert loaded.info.num_events == complete_events(cut) < whole.info.num_events
        assert [r.code for r in loaded.info.repaired] == ["truncated"]
