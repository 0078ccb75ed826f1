"""`pyrometer serve` as a process: its screen, signals, a new version under load, and a kill."""

import json
import re
import signal
import subprocess
import sys
import time

import httpx
import pytest
from served import BODY, MODEL, Load, answers, process

pytestmark = pytest.mark.slow


def test_the_start_prints_one_screen_and_a_new_version_and_sigterm_under_load_lose_nothing_accepted(tmp_path):
    with process(tmp_path) as (server, url, lines):
        screen = lines[next(place for place, line in enumerate(lines) if "is ready at" in line) :]
        assert len(screen) <= 25
        assert all(len(line) <= 110 for line in screen[:-1])
        text = "\n".join(screen)
        for part in ("takes    x FP32[-1, 3]", "proof", "batch    up to 8 rows", "threads", "queue"):
            assert part in text
        said = subprocess.run(screen[-1], shell=True, capture_output=True, text=True, timeout=60, check=True)
        assert json.loads(said.stdout)["outputs"][0]["shape"] == [1, 3]
        assert answers(url)[0].json()["outputs"][0]["data"] == [2.0, 4.0, 6.0]
        with Load(url) as load:
            (tmp_path / "model.py").write_text(MODEL.format(factor=5.0))
            server.send_signal(signal.SIGHUP)
            end = time.monotonic() + 60
            while 5.0 not in load.firsts():
                assert time.monotonic() < end, "the new version never answered"
                time.sleep(0.05)
            load.has(len(load.answers) + 20)
        assert {answer.status_code for answer in load.answers} == {200}
        assert not load.faults
        assert load.firsts() == {2.0, 5.0}
        assert answers(url)[0].json()["model_version"] == "2"
        (tmp_path / "model.py").write_text("def workload():\n    raise ValueError('no weights')\n")
        answer = httpx.post(f"{url}/v2/repository/models/workload/load", timeout=60)
        assert answer.status_code == 409
        assert "no weights" in answer.json()["error"]
        assert answers(url)[0].json()["outputs"][0]["data"] == [5.0, 10.0, 15.0]
        with Load(url) as load:
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0
        assert {answer.status_code for answer in load.answers} <= {200, 503}
        # Who asks once more finds a closed port or an idle connection that is closed; nobody waits for an answer in vain.
        assert all(
            isinstance(fault, (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError))
            for fault in load.faults
        )


def test_a_canary_answers_its_share_of_the_batches_and_after_a_kill_the_port_is_free_at_once(tmp_path):
    (tmp_path / "next.py").write_text(MODEL.format(factor=3.0))
    with process(tmp_path, "--canary", "next.py:workload@30%") as (server, url, lines):
        assert any("version 2 (next.py:workload) answers 30" in line for line in lines)
        versions = [answer.json()["model_version"] for answer in answers(url, 300)]
        assert 50 < versions.count("2") < 150  # five standard deviations
        pinned = httpx.post(f"{url}/v2/models/workload/versions/2/infer", content=BODY, timeout=60)
        assert pinned.json()["outputs"][0]["data"] == [3.0, 6.0, 9.0]
        with Load(url) as load:
            server.kill()
            server.wait(60)
        assert load.faults
        assert {answer.status_code for answer in load.answers} == {200}
        with process(tmp_path, "--port", url.rpartition(":")[2]) as (_, again, _):
            assert again == url
            assert answers(again)[0].status_code == 200


def rollout(folder, *arguments):
    command = [sys.executable, "-m", "pyrometer", "rollout", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.exhaustive
def test_a_shadow_that_says_something_else_is_taken_back_before_it_ever_answers(tmp_path):
    (tmp_path / "next.py").write_text(MODEL.format(factor=3.0))
    (tmp_path / "plan.toml").write_text("agreement = 0.01\n")
    flags = ("--old", "1", "--new", "2", "--control", "1b", "--stages", "50%,100%", "--plan", "plan.toml")
    started = rollout(tmp_path, "start", "perception", *flags)
    assert started.returncode == 0, started.stderr
    with process(tmp_path, "--shadow", "next.py:workload", "--rollout", "perception") as (_, url, lines):
        assert any("computes beside, unseen, the share of rollout perception" in line for line in lines)
        with Load(url) as load:
            end = time.monotonic() + 120
            while (watched := rollout(tmp_path, "watch", "perception", "--once")).returncode != 1:
                assert time.monotonic() < end, watched.stderr
        counted = httpx.get(f"{url}/metrics", timeout=60).text
        assert re.search('pyrometer_serve_shadow_answers_total{.*outcome="differs"', counted)
        assert {answer.json()["model_version"] for answer in load.answers} == {"1"}
    assert "roll back" in watched.stdout
    assert "disagreed" in watched.stdout
