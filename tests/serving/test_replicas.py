"""`pyrometer serve --cluster local` in a rollout: a real Ray with two replicas, one of which dies in its first start, and one while it answers."""

import importlib.util
import os
import re
import signal
import subprocess
import sys

import httpx
import psutil
import pytest
from rollouts import make_plan
from served import MODEL, SETTINGS, URL, Load, answers, process
from services import until

from pyrometer.rollout.controller import command, start_rollout
from pyrometer.rollout.ledger import open_ledger
from pyrometer.rollout.observed import observed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray"),
    pytest.mark.skipif(
        os.name != "posix" or os.uname().sysname != "Linux", reason="Ray brings HAProxy there"
    ),
]


DIES_ONCE = """
import os, signal
from pathlib import Path
mark = Path(__file__).with_name("died")
if not mark.exists():
    mark.touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    found = open_ledger(tmp_path_factory.mktemp("served") / ".pyrometer")
    start_rollout(found, make_plan(name="scaled", old="1", new="2", stages=[0.5, 1.0]), "me")
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory, ledger):
    folder = tmp_path_factory.getbasetemp() / "served0"
    flags = ("--cluster", "local", "--canary", "model.py:workload", "--rollout", "scaled")
    settings = SETTINGS + "threads = 1\n"
    with process(folder, *flags, settings=settings, model=DIES_ONCE + MODEL) as (server, url, lines):
        yield server, url, lines
        server.send_signal(signal.SIGTERM)
        assert server.wait(120) == 0


def replicas(server):
    """Of a server, by process id."""
    found = {}
    for child in psutil.Process(server.pid).children(recursive=True):
        try:
            if child.cmdline()[:1] and child.cmdline()[0].startswith("ray::ServeReplica:workload"):
                found[child.pid] = child
        except psutil.NoSuchProcess:
            continue
    return found


def test_replicas_answer_as_one_server_does(served):
    server, url, lines = served
    screen = "\n".join(lines)
    assert "takes    x FP32[-1, 3]" in screen
    assert "replicas 2, started, watched and replaced by Ray" in screen
    assert "version 2 (model.py:workload) answers the share of rollout scaled" in screen
    assert screen.count("a replica died while it started; another one starts") == 1
    assert "raylet" not in screen
    assert len(replicas(server)) == 2
    assert httpx.get(f"{url}/v2/health/ready", timeout=60).json() == {"ready": True}
    assert answers(url)[0].json()["outputs"][0]["data"] == [2.0, 4.0, 6.0]
    bad = httpx.post(url + URL, content=b'{"inputs": []}', timeout=60)
    assert bad.status_code == 400
    assert "x" in bad.json()["error"]


def test_a_killed_replica_takes_no_accepted_request_along_and_is_replaced(served):
    server, url, _ = served
    with Load(url, num_clients=8) as load:
        before = replicas(server)
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        until(
            lambda: set(replicas(server)) - set(before),
            "no replica came in the place of the one that was killed",
        )
        load.has(len(load.answers) + 200)
    assert load.faults == []
    assert {answer.status_code for answer in load.answers} <= {200, 429, 503}
    assert all("retry-after" in answer.headers for answer in load.answers if answer.status_code != 200)
    assert load.firsts() == {2.0}


def test_a_rollout_gets_the_counts_of_all_replicas_and_all_follow_its_share(served, ledger):
    _, url, _ = served

    def counted():
        reports = ledger.reports("scaled", 1)
        epochs = observed([0.5], reports, keep_reports=False).epochs
        enough = [min(epoch.new.num, epoch.old.num) > 10 for epoch in epochs]
        return len({one.reporter for one in reports}) >= 2 and enough == [True]

    with Load(url):
        until(counted, "one replica counts, or one version")
    command(ledger, "scaled", "abort", "me")

    def versions():
        return {answer.json()["model_version"] for answer in answers(url, 20)}

    until(lambda: versions() == {"1"}, "a replica goes on with the version that was taken back")


def test_the_metrics_are_those_of_all_replicas(served):
    _, url, _ = served

    def told():
        page = httpx.get(f"{url}/metrics", timeout=60).text
        assert page.count("# TYPE pyrometer_requests_total") <= 1
        return set(re.findall(r'replica="([^"]+)"', page))

    with Load(url):
        until(lambda: len(told()) == 2, "one replica tells nothing")


@pytest.mark.exhaustive
def test_a_model_that_raises_in_a_replica_ends_the_command_with_what_it_raised(tmp_path):
    (tmp_path / "model.py").write_text("raise ValueError('no weights')\n")
    command = [sys.executable, "-m", "pyrometer", "serve", "model.py:workload", "--cluster", "local"]
    ended = subprocess.run(
        [*command, "--port", "0"], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "importing it raised ValueError: no weights" in ended.stderr.splitlines()[-1]
