"""`--cluster`: addresses, what is missing, and a real local Ray whose workers are killed in the middle of their work."""

import contextlib
import gc
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings

import psutil
import pytest

from pyrometer.cli.main import main
from pyrometer.cluster import connected, host_of
from pyrometer.errors import InputError, UsageError, UserProgramError


@pytest.mark.parametrize(
    "address", ["", "ray://", "ray://head", "head:0", "http://head:10001", "head:10001/x", "here"]
)
def test_what_is_no_address_is_refused_with_those_that_are(address):
    with pytest.raises(InputError, match="no address of a cluster; legal is ray://HOST:10001"):
        host_of(address)


needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")


@needs_ray
@pytest.mark.parametrize("verb", ["serve", "tune", "trace"])
@pytest.mark.parametrize("kind", ["ray://", ""])
def test_a_cluster_that_is_away_is_told_in_one_line(verb, kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"{kind}127.0.0.1:{free.getsockname()[1]}"
    given = tmp_path / "rank0.json"
    given.write_text('{"traceEvents": []}')
    if verb == "tune":  # the search is not begun in vain
        (tmp_path / "model.py").write_text("raise RuntimeError('was run')")
        given = "model.py:work"
    if verb == "serve":
        (tmp_path / "model.py").write_text("work = None")
        monkeypatch.setenv("PYROMETER_SERVE_TOKEN", "0123456789abcdef")
        given = "model.py:work"
    assert main([verb, str(given), "--cluster", address]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert f"--cluster {address}: nothing answers there" in said[-1]
    assert "ray start --head" in said[-1]


def test_without_ray_one_line_says_how_it_is_installed(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else found(name))
    with pytest.raises(UsageError, match=r"pip install 'pyrometer\[cluster\]'"), connected("local"):
        pass


@needs_ray
def test_other_machines_need_a_token(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYROMETER_SERVE_TOKEN", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"ray://127.0.0.1:{head.getsockname()[1]}"
        assert main(["serve", "model.py:work", "--cluster", address]) == 2
    assert "PYROMETER_SERVE_TOKEN" in capsys.readouterr().err


@needs_ray
def test_what_a_cluster_would_leave_undone_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "model.py:work", "--cluster", "local", "--plan", "poisson:10"]) == 2
    assert "--plan and --cluster" in capsys.readouterr().err
    assert main(["trace", "rank0.json", "--cluster", "local", "--sql", "select 1"]) == 2
    assert "leave out all but FILE..." in capsys.readouterr().err
    assert main(["tune", "model.py:work", "--cluster", "local", "--verify"]) == 2
    assert "are for this machine" in capsys.readouterr().err


@needs_ray
def test_a_rollout_that_replicas_could_not_follow_is_refused_before_ray_is_asked(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYROMETER_SERVE_TOKEN", "0123456789abcdef")
    serve = ["serve", "model.py:work", "--canary", "next.py:work", "--rollout", "new", "--cluster"]
    with socket.create_server(("127.0.0.1", 0)) as head:
        assert main([*serve, f"ray://127.0.0.1:{head.getsockname()[1]}"]) == 2
    assert "cannot read the folder" in capsys.readouterr().err
    assert main(["rollout", "start", "new", "--old", "a", "--new", "b"]) == 0
    assert main([*serve, "local"]) == 2
    assert "start it with --old 1 --new 2" in capsys.readouterr().err


def test_what_a_replica_raised_is_told_in_its_words_and_what_ray_raised_in_one_line():
    from pyrometer.serving.replicas.deploying import told_plainly

    raised = "ray::ServeReplica:x (pid=1)\n  File …\npyrometer.errors.InputError: model.py:work: takes 2 rows and fails on 3\n"
    with pytest.raises(InputError, match=r"^model\.py:work: takes 2 rows and fails on 3$"), told_plainly("x"):
        raise RuntimeError(raised)
    with pytest.raises(UserProgramError, match=r"^importing it raised$"), told_plainly("x"):
        raise RuntimeError("…\npyrometer.errors.UserProgramError: importing it raised\n")
    with (
        pytest.raises(InputError, match=r"^x: Ray cannot serve it: no port; `ray status`"),
        told_plainly("x"),
    ):
        raise RuntimeError("\nno port\nand more")


def test_ray_is_not_imported_before_it_is_asked_for():
    code = "import sys, pyrometer.cli.main as m; m.main(['serve', '--help']); import pyrometer, pyrometer.serving.deployment; assert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.fixture(scope="module")
def ray():
    """A Ray of these tests, on two cores."""
    pytest.importorskip("ray")
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(connected("local", cores=2))
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ResourceWarning
            )  # Ray does not wait for the processes that it has ended
            stack.close()
            gc.collect()


class Killing:
    """Kills the first worker of a function of Ray, with SIGKILL, as soon as it begins."""

    def __init__(self, name):
        self.victim = None
        self._thread = threading.Thread(target=self._watch, args=(name,), daemon=True)

    def _watch(self, name):
        end = time.monotonic() + 100
        while self.victim is None and time.monotonic() < end:
            for child in psutil.Process().children(recursive=True):
                try:
                    if child.cmdline()[:1] and child.cmdline()[0].startswith(f"ray::{name}"):
                        os.kill(child.pid, signal.SIGKILL)
                        self.victim = child.pid
                        return
                except (psutil.NoSuchProcess, psutil.ZombieProcess, ProcessLookupError):
                    continue
            time.sleep(0.005)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join(100)
        assert self.victim is not None, "no worker was killed"


def trace_of(rank):
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 5.0}
    return {"distributedInfo": {"rank": rank, "world_size": 3}, "traceEvents": [event]}


@pytest.mark.slow
def test_a_job_is_read_alike_on_a_cluster_whose_worker_dies(ray, tmp_path):
    from pyrometer.trace.jobs.executor import SerialExecutor
    from pyrometer.trace.jobs.job import RankFailure
    from pyrometer.trace.jobs.on_cluster import RayExecutor
    from pyrometer.trace.jobs.reduce import reduce_rank

    paths = []
    for rank in range(3):
        paths.append(tmp_path / f"rank{rank}.json")
        paths[-1].write_text(json.dumps(trace_of(rank)))
    paths.append(tmp_path / "rank3.json")
    paths[-1].write_text("no trace")

    def told(outcomes):
        return {
            str(each.path): each.message if isinstance(each, RankFailure) else each.rank for each in outcomes
        }

    here = told(SerialExecutor().map_ranks(paths, reduce_rank))
    with Killing("reduce_file"):
        there = told(RayExecutor(ray).map_ranks(paths, reduce_rank))
    assert there == here
    assert len(there) == 4


MODEL = """
import os
import torch
from torch import nn

class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Dropout(0.1))

    def forward(self, x):
        return self.net(x)

def work():
    with open({log!r}, "a") as file:
        file.write(f"{{os.getppid()}}\\n")
    torch.manual_seed(0)
    return Padded().eval(), torch.randn(2, 3, 32, 32)
"""


def environment_of_a_new_process():
    """As the verb sees it; tests before this one may have left this process one thread."""
    from pyrometer.hardware.record import Environment
    from pyrometer.record import from_json

    told = "from pyrometer.hardware.environment import *; from pyrometer.record import *; print(to_json(read_environment()).decode())"
    said = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, timeout=300, check=True
    )
    return from_json(Environment, said.stdout)


@pytest.mark.slow
def test_a_candidate_whose_worker_is_killed_is_measured_again(ray, tmp_path, monkeypatch):
    from pyrometer.tuning.levers.choice import LeverChoice
    from pyrometer.tuning.search.budget import Budget
    from pyrometer.tuning.search.journal import Journal
    from pyrometer.tuning.search.on_cluster import Order, crew
    from pyrometer.tuning.search.search import Search
    from pyrometer.tuning.search.settings import TuneSettings
    from pyrometer.tuning.search.weighing import Weighing
    from pyrometer.tuning.trials.gate import Limits
    from pyrometer.tuning.trials.protocol import Source
    from pyrometer.workload.target import parse_target

    monkeypatch.chdir(tmp_path)
    log = tmp_path / "parents.txt"
    (tmp_path / "model.py").write_text(MODEL.format(log=str(log)))
    settings, fold = TuneSettings(), LeverChoice(lever="fold_batchnorm")
    source = Source(spec=parse_target("model.py:work").spec)
    order = Order(
        source, None, False, str(tmp_path), Limits(), settings, 0.001, environment_of_a_new_process()
    )
    journal = Journal(tmp_path / "journal.jsonl", "id", resume=False)
    weighing = Weighing(None, settings, Budget(settings.budget_s), 0.001)
    search = Search(weighing, journal, {}, lambda *_: None)
    with crew("local", order) as machines, Killing("Bench.attempt") as killing:
        machines.ahead(search, [fold])
    outcome = journal.recall((), (fold,))
    assert outcome is not None
    assert outcome.outcome in {"kept", "no gain", "slower", "undecided"}, outcome
    assert outcome.max_rel_error is not None
    assert machines.note == "1 trial ran on 1 machine of the cluster"
    parents = {int(line) for line in log.read_text().split()}
    assert killing.victim in parents
    assert len(parents) == 2
