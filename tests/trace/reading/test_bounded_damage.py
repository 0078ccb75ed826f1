"""Damage costs a small multiple of sound text: work is counted here, in bytes, and never timed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec
import pytest

from pyrometer.trace.reading import chunks, header, salvage
from pyrometer.trace.reading.chunks import Document
from pyrometer.trace.reading.effort import LEAST_BYTES, LONGEST_MENDED, SHARE, Effort
from pyrometer.trace.reading.repair_log import RepairLog

START = b'{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":%d,"dur":1}'
SOUND = b",".join(START % i for i in range(2000))
MEGABYTE = 1 << 20


def wrapped(middle: bytes) -> bytes:
    return b'{"traceEvents":[' + SOUND + b"," + middle + b"," + SOUND + b"]}"


def noise(num_bytes: int) -> bytes:
    """Pieces of events in any order: starts of events that make no sense."""
    rng = random.Random(3)
    pieces = [b'{"name":', b'{"ph":"X",', b'"args":{', b'"x\\', b"}", b",", b'"ts":1', b'"', b"nan", b"[["]
    return b"".join(rng.choice(pieces) for _ in range(num_bytes // 6))


DAMAGE = {
    "zeros": lambda: b"\0" * (3 * MEGABYTE),
    "a string without an end": lambda: b'{"ph":"X","name":"' + b"x" * (20 * MEGABYTE),
    "lists in lists": lambda: b'{"ph":"X","name":"a","args":{"x":' + b"[" * MEGABYTE,
    "objects in objects": lambda: b'{"name":' * 100_000,
    "pieces of events": lambda: noise(MEGABYTE),
    "random bytes": lambda: random.Random(1).randbytes(2 * MEGABYTE),
    "commas": lambda: b"," * (2 * MEGABYTE),
    "quotes": lambda: b'{"ph":"X","name":' + b'"' * (3 * MEGABYTE),
}


class Work:
    """What reading a text took."""

    def __init__(self) -> None:
        self.walked = 0
        self.longest_held = 0
        self.num_events = 0
        self.repairs = RepairLog("trace.json")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    counted = Work()
    attempts, run = salvage.attempts, salvage.Salvage.run

    def counting(text: bytes, *, insert: bool | None = None) -> Iterator[salvage.Mended]:
        counted.walked += len(text)
        return attempts(text, insert=insert)

    def measured(self: salvage.Salvage) -> salvage.Taken:
        counted.longest_held = max(counted.longest_held, len(self.text))
        return run(self)

    monkeypatch.setattr(salvage, "attempts", counting)
    monkeypatch.setattr(chunks.Salvage, "run", measured)
    return counted


def read(text: bytes, work: Work) -> Document:
    blocks = (text[i : i + MEGABYTE] for i in range(0, len(text), MEGABYTE))
    document = Document(blocks, work.repairs)
    work.num_events = sum(len(batch.events) for batch in document.batches())
    return document


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_takes_bounded_work_and_loses_nothing_that_is_sound(name, work):
    text = wrapped(DAMAGE[name]())
    document = read(text, work)

    assert work.walked <= 4 * (LEAST_BYTES + SHARE * len(text) + LONGEST_MENDED)
    assert work.longest_held <= 2 * salvage.LONGEST_EVENT
    assert work.num_events >= 3990
    assert document.closed
    assert document.num_bytes == len(text)
    assert work.repairs.repairs()


def test_a_file_that_ends_in_zeros_keeps_its_events(work):
    read(b'{"traceEvents":[' + SOUND + b"\0" * (20 * MEGABYTE), work)

    assert work.num_events == 2000
    assert work.longest_held <= 12 * MEGABYTE
    assert [repair.code for repair in work.repairs.repairs()] == ["garbage"]


def test_every_event_is_mended_where_all_are_damaged_alike(work):
    text = wrapped(SOUND).replace(b'"dur":1', b'"dur":NaN,"args":{"x":Infinity}')
    read(text, work)

    assert work.num_events == 6000
    assert work.repairs.num_lost == 0


def test_effort_grows_with_the_text_that_was_read():
    effort = Effort()
    effort.spend(LEAST_BYTES)
    assert not effort.allows(10)
    effort.earn(int(10 / SHARE))
    assert effort.allows(10)
    assert not effort.allows(11)


def test_what_is_longer_than_any_event_is_not_mended():
    effort = Effort()
    effort.earn(1 << 40)
    assert effort.allows(LONGEST_MENDED)
    assert not effort.allows(LONGEST_MENDED + 1)


def test_what_stands_behind_the_events_is_read_as_far_as_keys_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []

    class Counting:
        def __init__(self, kind: type) -> None:
            self.kind = kind

        def decode(self, text: bytes) -> object:
            decoded.append(len(text))
            return msgspec.json.decode(text, type=self.kind)

    monkeypatch.setattr(header, "decoder", Counting)
    repairs = RepairLog("trace.json")
    other = b',"trace_id":"a","list":[' + b",".join([b'{"x":[1,2]}'] * 1_000_000) + b"],]"
    read = header.read_header(b'{"schemaVersion":1,', other, repairs, tail_at=7)
    assert read == {"schemaVersion": 1, "trace_id": "a"}
    assert [repair.code for repair in repairs.repairs()] == ["garbage_at_end"]
    assert sum(decoded) <= 2 * header.MOST_BYTES
