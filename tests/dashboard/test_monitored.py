"""What monitors tell is shown as it comes: by a page, a stream and data, to those who have the token."""

from __future__ import annotations

import time

import pytest
from streams import messages, until

from pyrometer.histogram import Histogram
from pyrometer.monitor.tick import Calls, Event, Source, Tick
from pyrometer.record import to_json

HOSTILE = "</script><img src=x onerror=alert(1)>"


def tick(at_s, **more):
    calls = {HOSTILE: Calls(num_ended=9, num_failed=1, latency_s=Histogram.of([0.01] * 9))}
    return Tick(source=Source(model=HOSTILE, pid=7), at_s=at_s, calls=calls, **more)


@pytest.fixture
def lines(tmp_path):
    """Where a monitor writes."""
    folder = tmp_path / "monitor"
    folder.mkdir()
    return folder / "ticks-7.jsonl"


def tell(lines, *ticks):
    with lines.open("ab") as file:
        file.write(b"".join(to_json(one) + b"\n" for one in ticks))


@pytest.fixture
def watching(folder, lines, serve):
    with serve(folder, monitor=str(lines.parent)) as server:
        yield server


def test_ticks_are_streamed_as_they_come(watching, lines):
    now_s = time.time()
    with watching.client.stream("GET", "/monitor/events") as answer:
        said = messages(answer)
        assert until(said, "live", lambda _: True)["processes"] == []
        tell(lines, *(tick(now_s - 20 + second) for second in range(20)))
        first = until(said, "live", lambda data: data["processes"])
        assert first["processes"][0]["calls"][0]["num_failed"] == 20
        assert {one["call"] for one in first["moments"]} == {HOSTILE}
        alarm = Event(at_s=now_s, event="alarm", fields={"alarm": "x"})
        tell(lines, tick(now_s, alarms=["x"], events=[alarm]))
        more = until(said, "live", lambda data: data["processes"][0]["alarms"] == ["x"])
        assert [one["event"]["event"] for one in more["changes"]] == ["alarm"]
        told = {one["at_s"] for one in first["moments"]}
        assert told.isdisjoint(one["at_s"] for one in more["moments"])


def test_the_page_and_its_data_escape_names_and_need_the_token(watching, lines):
    tell(lines, tick(time.time()))
    page = watching.get("/monitor").text
    assert "&lt;/script&gt;&lt;img" in page
    assert HOSTILE not in page
    assert watching.get("/api/monitor").json()["processes"][0]["source"]["model"] == HOSTILE
    with watching.stranger() as stranger:
        for address in ("/monitor", "/monitor/events", "/api/monitor"):
            assert stranger.get(address).status_code == 403


def test_without_a_monitor_the_page_says_so(server):
    assert "No monitor has told anything here yet" in server.get("/monitor").text


def test_a_source_that_cannot_be_read_is_told_and_asked_again(watching, monkeypatch):
    from pyrometer.errors import InputError
    from pyrometer.monitor.live.sources import FolderTicks

    def gone(_self):
        raise InputError("redis: gone; start it")

    with monkeypatch.context() as patched:
        patched.setattr(FolderTicks, "fresh", gone)
        assert watching.get("/api/monitor").status_code == 422
        with watching.client.stream("GET", "/monitor/events") as answer:
            assert until(messages(answer), "away", lambda _: True) == {"error": "redis: gone; start it"}
    assert watching.get("/api/monitor").status_code == 200
