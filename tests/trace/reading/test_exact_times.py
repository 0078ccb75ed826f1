"""Times are exact to the nanosecond, at any size that a trace can hold."""

from __future__ import annotations

import gzip
import json
import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reading.times import FLOAT_LIMIT_US, LIMIT_US, NO_TIME, nanoseconds

NANOS = st.integers(-(2**62), 2**62)


def micros(ns: int) -> str:
    """As Kineto writes it."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


@given(st.lists(st.integers(0, int(FLOAT_LIMIT_US) * 1000 - 1), min_size=1, max_size=50))
def test_floats_are_exact_below_the_limit(times):
    assert nanoseconds([float(micros(ns)) for ns in times]).tolist() == times


@given(st.lists(NANOS, min_size=1, max_size=50))
def test_digits_are_exact_at_any_size(times):
    assert nanoseconds([Raw(micros(ns).encode()) for ns in times]).tolist() == times


@given(st.lists(st.integers(-LIMIT_US, LIMIT_US) | st.none(), min_size=1, max_size=50))
def test_whole_microseconds_are_exact(times):
    expected = [NO_TIME if us is None else us * 1000 for us in times]
    assert nanoseconds(times).tolist() == expected
    assert nanoseconds([Raw(b"" if us is None else str(us).encode()) for us in times]).tolist() == expected


def test_mixed_and_odd_values():
    assert nanoseconds([1, 2.5, None, 2**70]).tolist() == [1000, 2500, NO_TIME, NO_TIME]
    texts = [b"1e3", b"12.3456", b'"7.5"', b"null", b"{}", b"-0.001", b"1e300"]
    assert nanoseconds([Raw(t) for t in texts]).tolist() == [
        1_000_000,
        12346,
        7500,
        NO_TIME,
        NO_TIME,
        -1,
        NO_TIME,
    ]


def test_rounding_once_more_would_be_wrong():
    """The product with 1000 falls on a tie here; the sum of whole part and fraction does not."""
    assert round(4458676417696.687 * 1000) == 4458676417696686
    assert nanoseconds([4458676417696.687]).tolist() == [4458676417696687]


@pytest.mark.parametrize("chunk_bytes", [100, 1 << 20])
def test_absolute_times_with_fractions_are_read_from_their_digits(text, chunk_bytes):
    generator = random.Random(1)
    times = [1_712_170_290_000_000_000 + generator.randrange(10**9) for _ in range(200)]
    event = '{"ph": "X", "cat": "cpu_op", "name": "n%d", "pid": 1, "tid": 1, "ts": %s, "dur": 0.001}'
    events = ", ".join(event % (i, micros(ns)) for i, ns in enumerate(times))
    loaded = text.load(f'{{"traceEvents": [{events}]}}'.encode(), chunk_bytes=chunk_bytes)
    assert loaded.tables["events"]["start_ns"].to_list() == sorted(times)
    assert loaded.tables["events"]["dur_ns"].unique().to_list() == [1]


def test_whole_absolute_times_need_no_digits(text):
    event = {"ph": "X", "cat": "cpu_op", "name": "n", "pid": 1, "tid": 1, "ts": 1669783687464181, "dur": 3}
    loaded = text.load(json.dumps([event, {**event, "ts": event["ts"] + 1, "dur": 2.5}]).encode())
    assert loaded.tables["events"].select("start_ns", "dur_ns").rows() == [
        (1669783687464181000, 3000),
        (1669783687464182000, 2500),
    ]


@pytest.mark.parametrize("name", ["v100_ns_5steps", "a100_ddp_nccl_3steps", "h100_bert_small"])
def test_real_times_equal_their_digits(real_traces, name):
    raw = gzip.decompress((real_traces / f"{name}.json.gz").read_bytes())
    held = json.loads(raw, parse_float=Decimal)["traceEvents"]
    found = sorted((int(e["ts"] * 1000), int(e["dur"] * 1000)) for e in held if e["ph"] == "X")
    events = read_trace(real_traces / f"{name}.json.gz").rank().tables["events"]
    complete = events.filter(events["kind"].is_in(["instant", "memory"]).not_())
    assert len(found) > 500
    assert sorted(complete.select("start_ns", "dur_ns").rows()) == found
