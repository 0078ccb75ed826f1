"""The live view shows what processes wrote or sent, and the verbs do what they say."""

from __future__ import annotations

import math

import pytest
from services import RedisServer

from pyrometer.cli.main import main
from pyrometer.histogram import Histogram
from pyrometer.monitor.live.fleet import FORGOTTEN_S, Fleet
from pyrometer.monitor.live.sources import FolderTicks, open_source
from pyrometer.monitor.tick import Calls, Source, Tick
from pyrometer.record import to_json


def tick(pid=1, at_s=1000.0, **more):
    calls = {"infer": Calls(num_ended=9, num_failed=1, latency_s=Histogram.of([0.01] * 9), in_flight=2)}
    return Tick(source=Source(model="m", version="2", pid=pid), at_s=at_s, calls=calls, **more)


def test_a_row_is_the_last_minute_of_a_function():
    fleet = Fleet()
    fleet.add(tick(at_s=1000.0 + second) for second in range(120))
    (row,) = fleet.rows(1120.0)
    assert (row.rate_hz, row.num_ended, row.num_failed, row.in_flight) == (10, 540, 60, 2)
    assert math.isclose(row.p99_s, 0.01)
    assert row.silent_s == 1


def test_what_alarms_comes_first_and_who_is_long_silent_goes():
    fleet = Fleet()
    fleet.add([tick(pid=1), tick(pid=2, alarms=["latency"]), tick(pid=3, at_s=1000 - FORGOTTEN_S)])
    assert [row.source.pid for row in fleet.rows(1001.0)] == [2, 1]


def test_lines_are_read_as_they_are_appended(tmp_path):
    file, source = tmp_path / "ticks-7.jsonl", FolderTicks(tmp_path)
    whole = to_json(tick()) + b"\n"
    file.write_bytes(whole + whole[:20])
    assert len(source.fresh()) == 1
    assert source.fresh() == []
    file.write_bytes(whole * 2)
    assert len(source.fresh()) == 1
    file.write_bytes(whole)  # rotated
    assert len(source.fresh()) == 1


def test_files_of_a_monitor_are_shown(make, tmp_path, capsys):
    monitor = make(folder=str(tmp_path / "lines"), model="perception")
    monitor.watch(name="infer")(lambda: None)()
    assert monitor.flush(30)
    assert main(["monitor", "live", str(tmp_path / "lines"), "--once"]) == 0
    shown = capsys.readouterr().out
    assert "perception" in shown
    assert "infer" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_redis_of_many_is_shown(make, tmp_path, capsys):
    server = RedisServer(tmp_path).begin()
    try:
        assert main(["monitor", "live", server.url, "--once"]) == 0
        assert "No ticks yet" in capsys.readouterr().out
        monitor = make(redis=server.url, model="perception")
        monitor.watch(name="infer")(lambda: None)()
        assert monitor.flush(30)
        monitor.flush(30)
        assert [one.sequence for one in open_source(server.url, "pyrometer:ticks").fresh()] == [1, 2]
        assert main(["monitor", "live", server.url, "--once"]) == 0
        assert "perception" in capsys.readouterr().out
    finally:
        server.stop()


def test_a_folder_that_is_not_there_is_told_in_one_line(tmp_path, capsys):
    assert main(["monitor", "live", str(tmp_path / "none"), "--once"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("place", ["redis://127.0.0.1:1/0", "gopher://127.0.0.1"])
def test_a_redis_that_is_not_there_is_told_in_one_line(place, capsys):
    pytest.importorskip("redis")
    assert main(["monitor", "live", place, "--once"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_dashboards_are_written_and_named(tmp_path, capsys):
    folder = tmp_path / "out"
    argv = ["monitor", "dashboards", str(folder), "--latency", "50ms", "--availability", "99%"]
    assert main([*argv, "--webhook", "http://127.0.0.1/x"]) == 0
    named = capsys.readouterr().out.split()
    assert sorted(named) == sorted(str(file) for file in folder.iterdir())
    assert "> 0.05" in (folder / "prometheus-rules.yml").read_text()
    assert "http://127.0.0.1/x" in (folder / "alertmanager.yml").read_text()
