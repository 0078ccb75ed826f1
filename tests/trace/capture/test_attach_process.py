"""A running process is recorded from another one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pyrometer.errors import InputError
from pyrometer.trace.capture.attach import attach
from pyrometer.trace.capture.listening import disable_attach, enable_attach
from pyrometer.trace.capture.rendezvous import address, own_folder

PROGRAM = """
from pyrometer.trace.capture.listening import enable_if_asked
from pyrometer.trace.span import span
enable_if_asked()
import time, torch
torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
print("ready", flush=True)
while True:
    if KIND == "training":
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
    elif KIND == "loop":
        with span("tick"):
            with span("sense"):
                model(torch.randn(4, 8))
            with span("plan"):
                pass
    else:
        model(torch.randn(4, 8))
    time.sleep(0.005)
"""


@pytest.fixture
def runtime(monkeypatch):
    """A folder whose path is short: those of sockets may have hundred characters."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture
def process(runtime, tmp_path):
    started = []

    def start(kind):
        program = PROGRAM.replace("KIND", repr(kind))
        environment = os.environ | {"PYROMETER_ATTACH": "1"}
        running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment)
        started.append(running)
        assert running.stdout.readline() == b"ready\n"
        return running

    yield start
    for running in started:
        assert running.poll() is None, "the process goes on"
        running.terminate()
        running.wait()
        running.stdout.close()


@pytest.mark.slow
def test_training_steps(process, tmp_path, count):
    running = process("training")
    trace = attach(running.pid, tmp_path / "trace.json.gz", steps=3)
    assert trace.steps.height == 3
    assert count(trace, "aten::linear") == 3
    capture = trace.capture
    assert (capture.source, capture.num_steps, capture.num_untraced) == ("process", 3, 3)
    assert capture.file_bytes == (tmp_path / "trace.json.gz").stat().st_size
    again = attach(running.pid, tmp_path / "again.json", steps=1)
    assert again.steps.height == 1


@pytest.mark.exhaustive
def test_steps_of_a_loop_are_its_outermost_spans(process, tmp_path, count):
    trace = attach(process("loop").pid, tmp_path / "trace.json", steps=3)
    assert trace.steps.height == 3
    assert [count(trace, name) for name in ("tick", "sense", "plan")] == [3, 3, 3]


@pytest.mark.slow
def test_a_time_of_all_threads_or_no_steps(process, tmp_path, count):
    running = process("plain")
    with pytest.raises(InputError, match="ask for a time instead"):
        attach(running.pid, tmp_path / "trace.json", steps=3, patience_s=0.3)
    trace = attach(running.pid, tmp_path / "trace.json", duration_s=0.2)
    assert count(trace, "aten::linear") > 3
    assert trace.capture.asked_steps is None
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_a_process_that_does_not_listen(runtime, tmp_path):
    with pytest.raises(InputError, match="PYROMETER_ATTACH=1"):
        attach(os.getpid(), tmp_path / "trace.json")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(InputError, match="there is none"):
        attach(ended.pid, tmp_path / "trace.json")
    with pytest.raises(InputError, match="one or the other"):
        attach(os.getpid(), tmp_path / "trace.json", steps=1, duration_s=1)


def test_listening_leaves_nothing_behind(runtime):
    enable_attach()
    enable_attach()
    socket = Path(address(own_folder(), os.getpid()))
    assert socket.is_socket()
    assert socket.parent.stat().st_mode & 0o077 == 0
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert socket.is_socket()
    disable_attach()
    assert not socket.exists()


def test_a_folder_that_others_can_enter_is_refused(runtime):
    folder = runtime / "pyrometer"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(InputError, match="only user"):
        enable_attach()


def test_sockets_of_dead_processes_are_swept(runtime):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = Path(address(own_folder(), ended.pid))
    left.touch()
    enable_attach()
    disable_attach()
    assert not left.exists()


def test_importing_alone_listens_to_nothing(runtime):
    code = "import pyrometer, threading; assert threading.active_count() == 1"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYROMETER_ATTACH": "0"})
    assert not (runtime / "pyrometer").exists()
