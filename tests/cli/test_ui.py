"""`pyrometer ui`: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import click
import httpx
import pytest

from pyrometer.cli import ui
from pyrometer.cli.main import main
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.running import announced, announcement
from pyrometer.store.running import list_running

RUN = "import sys; from pyrometer.cli.main import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def dashboard(tmp_path):
    """The command in a process of its own, and the address that it printed."""
    command = [sys.executable, "-c", RUN, "ui", "--no-open", "--store", str(tmp_path / "store")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        url = process.stdout.readline().strip()
        yield process, url
        process.kill()


def test_the_address_is_all_of_stdout_and_ctrl_c_ends_it_well(dashboard):
    process, url = dashboard
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", url)
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        assert client.get(url).status_code == 200
        with client.stream("GET", url.split("/?")[0] + "/events") as stream:
            next(stream.iter_lines())
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == ""
    assert re.fullmatch(r"serving \S+/store; Ctrl-C ends it\n", err)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "error: --host 0.0.0.0: other machines could reach the dashboard"),
        (["--host", "no-such-host.invalid", "--allow-remote"], "error: --host no-such-host.invalid"),
        (["--port", "70000"], "70000"),
    ],
)
def test_wrong_use_is_one_line(arguments, said, tmp_path, capsys):
    assert main(["ui", "--no-open", "--store", str(tmp_path), *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_it_says_which(missing, tmp_path):
    code = f"import sys; sys.modules[{missing!r}] = None\n{RUN}"
    done = subprocess.run(
        [sys.executable, "-c", code, "ui", "--store", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"error: pyrometer ui needs {missing}, which is not installed; install it by pip install 'pyrometer[ui]'\n"
    )


def test_neither_help_nor_the_dashboard_imports_torch():
    code = (
        "import sys\n"
        "from pyrometer.cli.main import main\n"
        "assert main(['ui', '--help']) == 0\n"
        "assert not {'torch', 'starlette', 'uvicorn'} & set(sys.modules)\n"
        "import pyrometer.dashboard.server\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_browser_is_led_by_a_file_since_command_lines_are_public(monkeypatch):
    opened = []
    monkeypatch.setattr(
        "webbrowser.open", lambda address: opened.append((address, Path(address[7:]).read_text()))
    )
    with ui._opening("http://127.0.0.1:1/?token=secret"):
        (address, page) = opened[0]
        assert "secret" not in address
        assert "secret" in page
        assert Path(address[7:]).parent.stat().st_mode & 0o077 == 0
    assert not Path(address[7:]).exists()


@pytest.mark.parametrize(("asked", "wanted"), [(True, True), (False, False), (None, False)])
def test_a_browser_is_opened_where_somebody_looks(asked, wanted):
    assert ui._wanted(asked) is wanted


@pytest.mark.parametrize(
    ("flags", "target"),
    [
        ({"target": "model.py:work"}, "model.py:work"),
        ({"target": "a.py:w", "vs": "b.py:w", "more_axes": ()}, "a.py:w vs b.py:w"),
        ({"target": "train.py", "arguments": ("--epochs", "a b")}, "train.py --epochs 'a b'"),
        ({"inputs": ("model.py:work",)}, "model.py:work"),
        ({"target": None}, "calibrate"),
        ({"target": "x" * 1000}, "x" * 300),
    ],
)
def test_a_verb_is_announced_by_what_it_measures(tmp_path, flags, target):
    with click.Context(click.Command("calibrate"), info_name="calibrate"):
        with announced(str(tmp_path / "store"), flags), progress_bar() as progress:
            progress(0.5, "measuring")
            (running,) = list_running(tmp_path / "store")
            assert (running.kind, running.target, running.stage, running.share) == (
                "calibrate",
                target,
                "measuring",
                0.5,
            )
        assert list_running(tmp_path / "store") == []


def test_nothing_is_announced_where_nothing_is_stored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert announcement() is None
    with click.Context(click.Command("bench"), info_name="bench"), announced(None, {"target": "x"}):
        assert announcement() is None
        with progress_bar() as progress:
            progress(0.5, "measuring")
    assert list(tmp_path.iterdir()) == []


MODEL = """
import time
import pyrometer as pm, torch

class Slow(torch.nn.Module):
    def forward(self, x):
        time.sleep(0.01)
        return x

def work():
    return pm.Inference(Slow(), torch.ones(1))
"""


@pytest.mark.slow
def test_a_real_measurement_is_seen_from_outside(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    command = [
        sys.executable,
        "-c",
        RUN,
        "bench",
        "model.py:work",
        "--budget",
        "1s",
        "--store",
        "store",
        "--json",
    ]
    seen = []
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        done = threading.Event()

        def watch():
            while not done.is_set():
                seen.extend(list_running(tmp_path / "store"))
                time.sleep(0.05)

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, _ = process.communicate()
        done.set()
        watcher.join()
    assert process.returncode == 0
    assert list_running(tmp_path / "store") == []
    stages = list(dict.fromkeys(running.stage for running in seen))
    assert stages[0] == "starting"
    assert "measuring" in stages
    timed = [running.step_s for running in seen if running.step_s is not None]
    assert timed
    assert min(timed) >= 0.01
    assert len({running.id for running in seen}) == 1
    assert json.loads(out)["run_id"]


def test_trace_files_are_not_announced_since_nothing_of_them_is_stored(tmp_path, monkeypatch):
    told: list[str] = []
    monkeypatch.setattr(
        "pyrometer.cli.saving.announced", lambda where, _flags: told.append(where) or nullcontext()
    )
    (tmp_path / "trace.json").write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "add", "ts": 1, "dur": 1}]}'
    )
    assert main(["trace", str(tmp_path / "trace.json"), "--store", str(tmp_path / "store")]) == 0
    assert main(["trace", str(tmp_path / "absent.py"), "--store", str(tmp_path / "store")]) == 2
    assert told == [None, str(tmp_path / "store")]


def test_a_measurement_that_fails_leaves_no_announcement(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "no_such.py:work"]) == 2
    capsys.readouterr()
    assert list(tmp_path.iterdir()) == []
