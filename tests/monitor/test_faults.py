"""What fails around a monitor never reaches the calls that it watches, and is counted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from services import RedisServer, until

from pyrometer.monitor.collector import Clocks
from pyrometer.monitor.export.outlet import Outlet
from pyrometer.monitor.export.redis_stream import read_ticks
from pyrometer.monitor.tick import Tick


def infer(x=1):
    return x


class Raising:
    """A listener, and a sink, of which nothing works."""

    def samples(self, call, at_s, latencies_s):
        raise RuntimeError("samples")

    def tick(self, tick):
        raise RuntimeError("tick")

    def alarms(self):
        raise RuntimeError("alarms")

    def write(self, ticks):
        raise OSError("disk")

    def close(self):
        """Nothing is open."""


def faults_of(monitor):
    return monitor._collector.fault_count.value()


def test_callbacks_that_raise_are_counted_and_end_nothing(make):
    def broken(output):
        raise ZeroDivisionError

    monitor = make(sample_every=1)
    monitor.add(Raising())
    watched = monitor.watch(units=broken)(infer)
    assert [watched(i) for i in range(5)] == list(range(5))
    monitor.flush()
    assert monitor.snapshot()["requests"] == 5
    assert faults_of(monitor) >= 5 + 3
    monitor.flush()
    assert monitor.last(60).num_faults > 0


def test_wrong_labels_and_amounts_are_faults_not_errors(monitor):
    counter = monitor.counter("detections", labels=["class"])
    counter.add(1)
    counter.add(-1, "car")
    counter.add(float("nan"), "car")
    counter.add(2, "car")
    monitor.flush()
    assert monitor.last(60).counters['detections{class="car"}'] == 2
    assert faults_of(monitor) == 3


def test_label_values_without_end_stay_few_series(make):
    monitor = make(most_series=100, capacity=1_000_000)
    counter = monitor.counter("paths", labels=["path"])
    for i in range(100_000):
        counter.add(1, i)
    monitor.flush()
    series = {key: value for key, value in monitor.last(60).counters.items() if key.startswith("paths{")}
    assert len(series) == 101
    assert series['paths{path="other"}'] == 100_000 - 100
    assert monitor.last(60).counters["monitor_series_capped"] == 100_000 - 100
    assert len(counter._series) == 100


def test_error_types_without_end_stay_few(monitor):
    @monitor.watch
    def fail(kind):
        raise kind

    for i in range(500):
        with pytest.raises(Exception, match="x"):
            fail(type(f"E{i}", (Exception,), {})("x"))
    monitor.flush()
    calls = monitor.last(60).calls["fail"]
    assert (calls.num_failed, sum(calls.errors.values()), len(calls.errors)) == (500, 500, 33)


def test_names_without_end_stay_few(monitor):
    for i in range(1000):
        with monitor.request(f"r{i}"):
            pass
    monitor.flush()
    calls = monitor.last(60).calls
    assert len(calls) == 201
    assert calls["other"].num_ended == 800


def test_a_clock_that_steps_back_changes_no_span(make):
    class Stepping(Clocks):
        now = 1e9

        def wall(self):
            Stepping.now -= 3600
            return Stepping.now

    monitor = make(clocks=Stepping())
    monitor.watch(infer)()
    monitor.flush()
    monitor.flush()
    tick = monitor.last(60)
    assert tick.at_s < 1e9
    assert 0 <= tick.span_s < 60
    assert tick.calls["infer"].num_ended == 1


def test_a_disk_that_fails_loses_the_oldest_ticks_and_counts_them():
    faults = []
    outlet = Outlet(Raising(), faults.append, most=3)
    for number in range(1, 11):
        outlet.put(Tick(sequence=number))
    assert not outlet.flush(0.01)
    until(lambda: faults, "a fault")
    outlet.close(0.01)
    assert outlet.num_dropped + len(outlet._waiting) <= 10
    assert outlet.num_dropped >= 7 - 3


def test_a_sink_that_hangs_holds_up_nobody(make):
    free = threading.Event()

    class Hanging:
        def write(self, ticks):
            free.wait()

        def close(self):
            """Nothing is open."""

    monitor = make()
    monitor.send_to(Hanging())
    watched = monitor.watch(infer)
    for i in range(100):
        assert watched(i) == i
    assert not monitor.flush(0.01)
    assert monitor.snapshot()["requests"] == 100
    free.set()
    assert monitor.flush(30)


def test_a_folder_that_cannot_be_written_is_a_fault(make, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monitor = make(folder=str(tmp_path / "file"))
    watched = monitor.watch(infer)
    assert watched(3) == 3
    assert not monitor.flush(0.2)
    assert faults_of(monitor) >= 1


def test_a_port_that_is_taken_is_a_fault(make):
    first = make(port=0).start()
    second = make(port=first.port).start()
    assert (second.port, faults_of(second)) == (None, 1)


def test_redis_that_goes_and_comes_back_gets_what_it_missed(make, tmp_path):
    server = RedisServer(tmp_path).begin()
    try:
        monitor = make(redis=server.url, stream="ticks", model="perception")
        watched = monitor.watch(infer)
        watched()
        assert monitor.flush(30)
        server.stop()
        for _ in range(3):
            watched()
            monitor.flush(0.01)
        assert monitor.snapshot()["requests"] == 4
        until(lambda: faults_of(monitor), "a fault")
        server.begin()
        assert monitor.flush(60)
        ticks, _ = read_ticks(server.client(), "ticks", "0", wait_ms=None)
        assert [tick.sequence for tick in ticks] == [2, 3, 4, 5]  # the first was lost with the server
        assert sum(tick.calls["infer"].num_ended for tick in ticks) == 3
        assert {tick.source.model for tick in ticks} == {"perception"}
    finally:
        server.stop()


def test_the_stream_is_bounded(make, tmp_path):
    server = RedisServer(tmp_path).begin()
    try:
        monitor = make(redis=server.url, stream="ticks", stream_length=10)
        for _ in range(500):
            monitor._collector.tick()
        assert monitor.flush(30)
        assert server.client().xlen("ticks") < 250  # Redis trims whole nodes of a hundred
    finally:
        server.stop()


def run(program, folder, *, kill_when=None):
    """Run a program of its own in a folder; with `kill_when`, kill it as soon as that is true."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if kill_when is not None:
        until(kill_when, "what the program writes")
        process.send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def lines_of(folder, kind):
    files = sorted(folder.glob(f".pyrometer/monitor/{kind}-*.jsonl"))
    return {file.name: [json.loads(line) for line in file.read_text().splitlines()] for file in files}


def test_the_end_of_the_interpreter_writes_the_last_tick(tmp_path):
    code, _, err = run(
        """
        import pyrometer as pm
        monitor = pm.Monitor("short")
        @monitor.watch
        def infer(): pass
        for _ in range(10): infer()
        class Late:
            def __del__(self): infer()
        late = Late()
        """,
        tmp_path,
    )
    assert (code, err) == (0, "")
    (ticks,) = lines_of(tmp_path, "ticks").values()
    assert sum(tick["calls"]["infer"]["num_ended"] for tick in ticks) == 10


def test_a_kill_loses_no_whole_tick(tmp_path):
    code, _, _ = run(
        """
        import pyrometer as pm
        monitor = pm.Monitor("killed", tick_s=0.05)
        @monitor.watch
        def infer(): pass
        while True: infer()
        """,
        tmp_path,
        kill_when=lambda: any(len(found) > 3 for found in lines_of(tmp_path, "ticks").values()),
    )
    assert code == -signal.SIGKILL
    (ticks,) = lines_of(tmp_path, "ticks").values()
    assert [tick["sequence"] for tick in ticks] == list(range(1, len(ticks) + 1))


def test_a_forked_child_counts_its_own_calls_alone(tmp_path):
    code, _, err = run(
        """
        import os, json
        import pyrometer as pm
        monitor = pm.Monitor("forked", port=0).start()
        @monitor.watch
        def infer(): pass
        for _ in range(100): infer()
        pid = os.fork()
        for _ in range(7): infer()
        if not pid:
            for _ in range(3): infer()
            assert monitor.snapshot()["requests"] == 10, monitor.snapshot()
            assert monitor._collector.is_running
            monitor.close()
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert status == 0, status
        assert monitor.snapshot()["requests"] == 107, monitor.snapshot()
        """,
        tmp_path,
    )
    assert (code, err) == (0, "")
    counted = sorted(
        sum(tick["calls"]["infer"]["num_ended"] for tick in ticks)
        for ticks in lines_of(tmp_path, "ticks").values()
    )
    assert counted == [10, 107]


def test_the_lines_of_a_full_disk_are_whole(make, tmp_path, monkeypatch):
    """A disk that takes half a write leaves no half line, and what was not written is written later."""
    monitor = make(folder=str(tmp_path / "lines"))
    whole = os.write
    full = threading.Event()

    def halved(descriptor, raw):
        return whole(descriptor, raw[: len(raw) // 2]) if full.is_set() else whole(descriptor, raw)

    monkeypatch.setattr("pyrometer.monitor.export.json_lines.os.write", halved)
    monitor.watch(infer)()
    assert monitor.flush(30)
    full.set()
    assert not monitor.flush(0.1)
    until(lambda: faults_of(monitor), "a fault")
    (file,) = (tmp_path / "lines").glob("ticks-*.jsonl")
    assert [json.loads(line)["sequence"] for line in file.read_text().splitlines()] == [1]
    full.clear()
    assert monitor.flush(60)
    assert [json.loads(line)["sequence"] for line in file.read_text().splitlines()] == [1, 2, 3]
