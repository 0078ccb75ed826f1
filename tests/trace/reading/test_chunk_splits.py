"""Where the text is split never matters: same tables for any chunk size, block size and style of JSON."""

from __future__ import annotations

import gc
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pyrometer.garbage import uncollected
from pyrometer.trace.reading.chunks import Document
from pyrometer.trace.reading.collector import Collector
from pyrometer.trace.reading.repair_log import RepairLog
from pyrometer.trace.reading.salvage import Salvage

NASTY = [
    "}, {",
    '"}, {"ph": "X"',
    "]}",
    '\\"',
    "\\",
    "aten::add",
    "é€",
    "",
    "traceEvents",
    '"traceEvents": [',
]
WORDS = st.sampled_from(NASTY) | st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["ph", "name", "a", "ts"]), inner, max_size=3)
    ),
    max_leaves=6,
)
CATEGORIES = ["cpu_op", "kernel", "python_function", "user_annotation", "gpu_memcpy", "overhead", "odd", None]
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "ph": st.sampled_from("XXXXisfC"),
            "name": WORDS,
            "pid": st.integers(0, 3) | st.sampled_from(["Spans", ""]),
            "tid": st.integers(0, 3),
            "ts": st.integers(0, 10**6) | st.integers(0, 10**9).map(lambda n: n / 1000),
        },
        optional={
            "cat": st.sampled_from(CATEGORIES),
            "dur": st.integers(0, 100),
            "id": st.integers(0, 9),
            "args": st.dictionaries(
                st.sampled_from(["x", "External id", "Call stack", "note"]), VALUES, max_size=3
            ),
        },
    ),
    max_size=12,
)
SERIALISERS = {
    "compact": lambda document: json.dumps(document, separators=(",", ":")),
    "one line": json.dumps,
    "indented": lambda document: json.dumps(document, indent=2),
    "keys in alphabetical order": lambda document: json.dumps(document, sort_keys=True),
    "unescaped": lambda document: json.dumps(document, ensure_ascii=False, indent=1),
    "bare list": lambda document: json.dumps(document["traceEvents"]),
}


def tables(text: bytes, chunk_bytes: int, block: int):
    repair_log = RepairLog("t")
    blocks = (text[i : i + block] for i in range(0, len(text), block))
    document = Document(blocks, repair_log, chunk_bytes=chunk_bytes)
    collector = Collector(repair_log)
    for batch in document.batches():
        collector.add(batch)
    return document, collector.tables(0), repair_log.repairs()


@given(
    EVENTS,
    st.sampled_from(list(SERIALISERS)),
    st.integers(1, 400),
    st.integers(1, 300),
    st.dictionaries(WORDS, VALUES, max_size=2),
)
def test_tables_do_not_depend_on_chunks(events, style, chunk_bytes, block, head):
    head.pop("traceEvents", None)
    text = SERIALISERS[style]({**head, "traceEvents": events, "z": [{"name": "x"}, {"ph": "X"}]}).encode()
    whole, expected, _ = tables(text, 1 << 30, 1 << 30)
    document, found, repairs = tables(text, chunk_bytes, block)
    assert document.num_events == whole.num_events == len(events)
    assert document.closed
    assert document.num_bytes == len(text)
    assert document.tail == whole.tail
    assert {repair.code for repair in repairs} <= {"wrong_type", "missing_duration"}
    for name, table in expected.items():
        assert_frame_equal(found[name], table)


@pytest.mark.parametrize("style", SERIALISERS)
def test_sound_text_is_never_read_event_by_event(monkeypatch, style):
    def refuse(*_, **__):
        raise AssertionError("a sound chunk was salvaged")

    monkeypatch.setattr(Salvage, "__init__", refuse)
    event = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "n",
        "pid": 1,
        "tid": 1,
        "ts": 5,
        "dur": 1,
        "args": {"a": [1]},
    }
    document = {"a": 1, "traceEvents": [event] * 200, "b": {"c": [1, 2]}}
    found, _, _ = tables(SERIALISERS[style](document).encode(), 1000, 700)
    assert found.num_events == 200


def test_memory_of_text_is_a_chunk():
    event = b'{"ph": "X", "cat": "cpu_op", "name": "n", "pid": 1, "tid": 1, "ts": 5, "dur": 1}'
    text = b'{"traceEvents": [' + b", ".join([event] * 5000) + b"]}"
    blocks = (text[i : i + 100] for i in range(0, len(text), 100))
    sizes = [len(batch.text) for batch in Document(blocks, RepairLog("t"), chunk_bytes=4096).batches()]
    assert max(sizes) < 4096 + 2 * len(event) + 100
    assert len(sizes) > 50


def test_events_found_deep_inside_and_between_large_keys():
    event = {"ph": "X", "cat": "cpu_op", "name": "n", "pid": 1, "tid": 1, "ts": 5, "dur": 1}
    text = json.dumps(
        {"note": 'says "traceEvents": [', "data": {"x": "y" * 3000, "traceEvents": [event]}, "k": 1}
    )
    document, found, repairs = tables(text.encode(), 100, 64)
    assert (document.num_events, found["events"].height, repairs) == (1, 1, [])


def test_loading_leaves_no_cycles_behind(text):
    """With collection paused, a cycle would keep the chunk and the parts of the tables of every file that was read."""
    gc.collect()
    with uncollected():
        text.load(text.good().replace(b"op7", b'o"p', 1))
        left = [one for one in gc.get_objects() if type(one) in {Collector, Document, RepairLog, Salvage}]
    assert left == []
