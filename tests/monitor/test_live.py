"""The live view shows what processes wrote or sent, and the verbs do what they say."""

from __future__ import annotations

import json
import math

import pytest
from services import RedisServer

from pyrometer.cli.main import main
from pyrometer.histogram import Histogram
from pyrometer.monitor.degrading.ladder import Degradation, Policy, Rung
from pyrometer.monitor.live.fleet import FORGOTTEN_S, MOMENT_S, Fleet
from pyrometer.monitor.live.sources import FolderTicks, open_source
from pyrometer.monitor.tick import Calls, Event, Source, Tick
from pyrometer.monitor.windows import without_calls
from pyrometer.record import to_json


def tick(pid=1, at_s=1000.0, **more):
    calls = {"infer": Calls(num_ended=9, num_failed=1, latency_s=Histogram.of([0.01] * 9), in_flight=2)}
    return Tick(source=Source(model="m", version="2", pid=pid), at_s=at_s, calls=calls, **more)


def test_a_call_is_the_last_minute_of_a_function():
    fleet = Fleet()
    fleet.add(tick(at_s=1000.0 + second) for second in range(120))
    (process,) = fleet.now(1120.0).processes
    (call,) = process.calls
    assert (call.rate_hz, call.num_ended, call.num_failed, call.in_flight) == (10, 540, 60, 2)
    assert math.isclose(call.p99_s, 0.01)
    assert process.silent_s == 1


def test_what_alarms_comes_first_and_who_is_long_silent_goes():
    fleet = Fleet()
    fleet.add([tick(pid=1), tick(pid=2, alarms=["latency"]), tick(pid=3, at_s=1000 - FORGOTTEN_S)])
    assert [one.source.pid for one in fleet.now(1001.0).processes] == [2, 1]


def test_moments_hold_all_processes_and_are_told_once_when_they_are_over():
    fleet = Fleet()
    fleet.add(tick(pid=pid, at_s=1000.0 + second) for second in range(1, 11) for pid in (1, 2))
    first = fleet.now(1007.5).moments
    assert [(one.at_s, one.rate_hz, one.failed_hz) for one in first] == [(1000.0, 20, 2)]
    more = fleet.now(1012.5, after_s=first[-1].at_s).moments
    assert [one.at_s for one in more] == [1005.0]
    assert fleet.now(1010.0 + FORGOTTEN_S + MOMENT_S).moments == []


def test_changes_are_told_the_newest_first_and_calls_are_none():
    fleet = Fleet()
    events = [Event(at_s=1.0, event="alarm"), Event(at_s=2.0, event="recovered")]
    fleet.add([without_calls(tick(events=[*events, Event(at_s=3.0, event="sample")]))])
    assert [one.event.event for one in fleet.now(1000.0).changes] == ["recovered", "alarm"]


def test_where_ladders_stand_is_told(make, tmp_path):
    monitor = make(folder=str(tmp_path / "lines"))
    policy = Policy(rungs=[Rung(name='"tuned"'), Rung(name="eager")])
    degradation = Degradation(policy, {}, alarms=list)
    monitor.add(degradation)
    monitor.watch(name="infer")(lambda: None)()
    assert monitor.flush(30)
    fleet = Fleet()
    fleet.add(open_source(str(tmp_path / "lines"), "").fresh())
    (process,) = fleet.now(0.0).processes
    assert process.rungs == {"degradation": '"tuned"'}


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
    assert main(["monitor", "live", str(tmp_path / "lines"), "--once", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    (process,) = json.loads(line)["processes"]
    assert [(one["call"], one["num_ended"]) for one in process["calls"]] == [("infer", 1)]


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
