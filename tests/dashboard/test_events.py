"""What is told while it happens."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from streams import messages, until

from pyrometer.store.running import Announcement

WRITER = """
import sys, time
from pyrometer.store.running import Announcement
with Announcement(sys.argv[1], kind="check", target="killed.py:work") as announcement:
    announcement.tell(0.5, "measuring")
    print("told", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def stream(server):
    with server.client.stream("GET", "/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield messages(answer)


def test_it_begins_with_what_is(save, server):
    run = save()
    with server.client.stream("GET", "/events") as answer:
        said = messages(answer)
        assert next(said) == ("runs", {"newest": run.id, "total": 1})
        assert next(said) == ("running", {"schema_version": 2, "running": []})


def test_a_run_that_is_stored_is_told_also_in_a_store_that_comes_later(stream, save, folder):
    assert until(stream, "runs", lambda data: data["total"] == 0) == {"newest": None, "total": 0}
    for total in (1, 2):
        run = save(age_s=-total)
        assert until(stream, "runs", lambda data, total=total: data["total"] == total)["newest"] == run.id


def test_a_run_under_way_is_told_from_its_beginning_to_its_end(stream, folder, save):
    save()
    with Announcement(folder, kind="bench", target="model.py:work") as announcement:
        announcement.tell(0.25, "measuring", num_samples=7, step_s=0.002)
        (one,) = until(stream, "running", lambda data: data["running"])["running"]
        assert one["running"]["target"] == "model.py:work"
        assert (one["running"]["share"], one["running"]["num_samples"]) == (0.25, 7)
        assert one["elapsed_s"] >= 0
        announcement.tell(1.0, "tracing a few steps")
        until(stream, "running", lambda data: data["running"][0]["running"]["stage"] == "tracing a few steps")
    until(stream, "running", lambda data: data["running"] == [])


def test_a_run_that_is_killed_ends_too(stream, folder, save):
    save()
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, folder], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "told\n"
        until(stream, "running", lambda data: data["running"])
        process.send_signal(signal.SIGKILL)
        until(stream, "running", lambda data: data["running"] == [])
    assert not list((folder / "running").glob("*"))


def test_a_store_that_is_locked_or_damaged_meanwhile_ends_no_stream(stream, folder, save):
    save()
    until(stream, "runs", lambda data: data["total"] == 1)
    content = (folder / "runs.db").read_bytes()
    (folder / "runs.db").write_bytes(b"not a database" * 100)
    time.sleep(1.2)
    (folder / "runs.db").write_bytes(content)
    save()
    until(stream, "runs", lambda data: data["total"] == 2)


def test_a_page_of_a_run_under_way_leads_to_its_report(server, folder, save):
    save()
    with Announcement(folder, kind="bench", target="model.py:work") as announcement:
        announcement.tell(0.5, "measuring", step_s=0.002)
        address = f"/running/{announcement._path.stem}"
        assert 'data-part="run"' in server.get(address).text
        (one,) = server.get("/api/running").json()["running"]
        assert [step_s for _, step_s in one["running"]["course"]] == [0.002]
        run = save()
    assert str(server.get(address).url).endswith(f"/runs/{run.id}")


def test_a_page_of_a_run_that_was_not_stored_says_so(server, folder, save):
    save(age_s=60)
    with Announcement(folder, kind="bench", target="model.py:work") as announcement:
        announcement.tell(0.5, "measuring")
        address = f"/running/{announcement._path.stem}"
        server.get(address)
    answer = server.get(address)
    assert answer.status_code == 404
    assert "This run has ended" in answer.text
    assert "nothing of it was stored" in answer.text
    assert server.get("/running/nothing").status_code == 404


def test_open_streams_end_with_the_server(folder, serve):
    with serve(folder) as server, server.client.stream("GET", "/events") as answer:
        stream = messages(answer)
        next(stream)
        server.dashboard.stop()
        list(stream)
