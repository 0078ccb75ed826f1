"""The log survives everything that can happen to the process that writes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.workload.script.child import STARTUP
from pyrometer.workload.script.events import parse_events, read_events
from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.startup._pyrometer_inside import log as log_module
from pyrometer.workload.script.startup._pyrometer_inside.log import EventLog

HEADER = np.array([kinds.MAGIC, kinds.VERSION, 1_000, 0, 0, 0, 0, 0], dtype=np.int64).tobytes()
events = st.lists(
    st.tuples(st.integers(0, 2**62), st.integers(1, 255), st.integers(0, 255), st.integers(0, 2**46)),
    max_size=20,
)


@given(events, st.data())
def test_a_log_cut_anywhere_is_read_up_to_the_last_whole_event(
    rows: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    words = [(time_ns, kinds.word(kind, value, flags)) for time_ns, kind, flags, value in rows]
    body = np.array(words, dtype=np.int64).tobytes()
    cut = data.draw(st.integers(0, len(body)))
    read = parse_events(HEADER + body[:cut])
    whole = rows[: cut // 16]
    assert list(zip(read.time_ns, read.kind, read.flags, read.value, strict=True)) == whole
    assert read.start_ns == 1_000


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "without a header"),
        (HEADER[:40], "without a header"),
        (b"\x00" * 64, "without a header"),
        (HEADER[:8] + b"\x09" + HEADER[9:], "version 9"),
    ],
)
def test_what_is_no_log_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_events(raw)


def test_a_missing_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_events(tmp_path / "none")


def test_many_events_come_back_as_written(tmp_path: Path) -> None:
    log = EventLog(str(tmp_path / "log"))
    num_events = 3 * log_module.CHUNK_WORDS // 2
    times = [log.add(kinds.word(kinds.DATA_BEGIN, index, index % 2)) for index in range(num_events)]
    read = read_events(tmp_path / "log")
    assert read.time_ns.tolist() == times
    assert read.value.tolist() == list(range(num_events))
    assert (np.diff(read.time_ns) >= 0).all()


def test_killed_in_the_middle_nothing_is_lost(tmp_path: Path) -> None:
    script = f"""
import os, sys
sys.path.insert(0, {str(STARTUP)!r})
from _pyrometer_inside.log import EventLog
log = EventLog({str(tmp_path / "log")!r})
for index in range(1000):
    log.add({kinds.DATA_BEGIN} | index << {kinds.VALUE_SHIFT})
os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([sys.executable, "-c", script], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert read_events(tmp_path / "log").value.tolist() == list(range(1_000))


def test_a_full_log_keeps_room_for_the_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "MAX_WORDS", log_module.CHUNK_WORDS)
    log = EventLog(str(tmp_path / "log"))
    for _ in range(log_module.CHUNK_WORDS):
        log.add(kinds.DATA_BEGIN)
    assert log.is_full
    log.open_tail()
    log.add(kinds.ENDED)
    assert read_events(tmp_path / "log").kind[-1] == kinds.ENDED


def test_no_more_room_on_the_disk_stops_the_log_only(tmp_path: Path) -> None:
    log = EventLog(str(tmp_path / "log"))
    (tmp_path / "log").unlink()
    for _ in range(log_module.CHUNK_WORDS):
        log.add(kinds.DATA_BEGIN)
    assert log.is_full


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    log = EventLog(str(tmp_path / "log"))
    log.add(kinds.DATA_BEGIN)
    log.detach()
    log.add(kinds.DATA_END)
    log.add_at(5, kinds.DEVICE_NS)
    assert read_events(tmp_path / "log").kind.tolist() == [kinds.DATA_BEGIN]


def test_low_descriptors_stay_free(tmp_path: Path) -> None:
    lowest = os.dup(0)
    os.close(lowest)
    log = EventLog(str(tmp_path / "log"))
    again = os.dup(0)
    os.close(again)
    assert again == lowest
    del log
