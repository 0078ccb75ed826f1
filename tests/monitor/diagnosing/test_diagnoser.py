"""An alarm leaves a run in the store that `pyrometer show` opens; limits hold, and failures leave the program alone."""

from __future__ import annotations

import json
import threading

import pytest
import torch

from pyrometer.cli.main import main
from pyrometer.errors import InputError
from pyrometer.monitor.detecting.alarm import Change
from pyrometer.monitor.detecting.detector import Reading
from pyrometer.monitor.detecting.listener import Notice
from pyrometer.monitor.detecting.watch import Noticed
from pyrometer.monitor.diagnosing.diagnoser import Diagnoser
from pyrometer.monitor.diagnosing.limits import Allowance, Limits
from pyrometer.monitor.tick import Event, Tick
from pyrometer.store.store import Store


def notice(*, firing=True):
    reading = Reading(at_s=1.0, after=1, score=2.0, value=0.5, evidence="median 0.5, normal is 0.1")
    return Notice(
        "infer.latency", Noticed("cusum", Change(at_s=1.0, firing=firing, since_s=1.0, reading=reading), 1)
    )


def serve(diagnoser, stop):
    model = torch.nn.Linear(32, 32)
    with torch.inference_mode():
        while not stop.is_set():
            model(torch.ones(4, 32))
            diagnoser.samples("infer", 0.0, [0.001])


def test_an_alarm_becomes_a_run_that_show_opens(tmp_path, capsys):
    saved, stop = [], threading.Event()
    diagnoser = Diagnoser(
        tmp_path / "runs", Limits(requests=5), saved=lambda run, alarm: saved.append((run, alarm))
    )
    diagnoser.start()
    diagnoser.tick(
        Tick(events=[Event(at_s=1.0, event="sample", call="infer")], counters={"compilations": 3.0})
    )
    server = threading.Thread(target=serve, args=(diagnoser, stop), name="server")
    server.start()
    try:
        diagnoser(notice(firing=False))
        diagnoser(notice())
        diagnoser(notice())
        assert diagnoser.wait(120)
    finally:
        stop.set()
        server.join()
    assert list(diagnoser.faults) == []
    assert [name for _, name in saved] == ["infer.latency/cusum"]
    assert len(diagnoser.refused) == 1
    store = Store.open(tmp_path / "runs", create=False)
    run = store.load("last")
    files = {artifact.name for artifact in run.artifacts}
    assert {"trace.json", "stacks.txt", "recent.json", "compilations.json", "alert.json"} <= files
    assert b"aten::linear" in store.read_file(run, "trace.json")
    assert b"server" in store.read_file(run, "stacks.txt")
    assert json.loads(store.read_file(run, "compilations.json")) == {"compilations": 3}
    assert run.document["evidence"]["trace"] is not None
    assert run.document["diagnosis"] is not None
    assert main(["show", run.id, "--full", "--store", str(tmp_path / "runs")]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"run {run.id}")
    assert "aten::linear" in told
    assert run.target == "production: infer.latency/cusum"
    assert not torch.autograd._profiler_enabled()


def test_without_requests_it_ends_in_time(tmp_path):
    diagnoser = Diagnoser(tmp_path / "runs", Limits(requests=10**6, longest_s=0.2))
    diagnoser(notice())
    assert diagnoser.wait(120)
    assert len(diagnoser.runs) == 1


def test_a_trace_that_is_too_large_is_not_kept(tmp_path):
    diagnoser = Diagnoser(tmp_path / "runs", Limits(requests=10**6, longest_s=0.1, trace_bytes=10))
    diagnoser(notice())
    assert diagnoser.wait(120)
    run = Store.open(tmp_path / "runs", create=False).load("last")
    assert "trace.json" not in {artifact.name for artifact in run.artifacts}
    assert any("not kept" in note for note in run.document["evidence"]["notes"])


def test_a_store_that_cannot_be_written_is_counted(tmp_path):
    (tmp_path / "runs").write_text("a file")
    diagnoser = Diagnoser(tmp_path / "runs", Limits(requests=10**6, longest_s=0.1))
    diagnoser(notice())
    assert diagnoser.wait(120)
    assert len(diagnoser.faults) == 1
    assert not diagnoser.runs


def test_limits_of_rate_day_and_disk():
    allowance = Allowance(Limits(apart_s=10, most_per_day=3, most_bytes=100))
    allowed = []
    for now_s in range(0, 86_500, 5):
        if allowance.refusal(float(now_s)) is None:
            allowance.take(float(now_s))
            allowed.append(now_s)
    assert allowed == [0, 10, 20, 86_400, 86_410, 86_420]
    allowance.bytes_kept = 100
    assert "bytes" in allowance.refusal(1e9)
    with pytest.raises(InputError, match="legal"):
        Limits(requests=0)
