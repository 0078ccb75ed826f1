"""`pyrometer serve --cluster local`: a real Ray with two replicas, one of which is killed while it answers."""

import os
import re
import signal

import httpx
import psutil
import pytest
from served import SETTINGS, URL, Load, answers, process
from services import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.name != "posix" or os.uname().sysname != "Linux", reason="Ray brings HAProxy there"
    ),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    pytest.importorskip("ray")
    folder = tmp_path_factory.mktemp("served")
    with process(folder, "--cluster", "local", settings=SETTINGS + "threads = 1\n") as (server, url, lines):
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


def test_the_metrics_are_those_of_all_replicas(served):
    _, url, _ = served

    def told():
        page = httpx.get(f"{url}/metrics", timeout=60).text
        assert page.count("# TYPE pyrometer_requests_total") <= 1
        return set(re.findall(r'replica="([^"]+)"', page))

    with Load(url):
        until(lambda: len(told()) == 2, "one replica tells nothing")
