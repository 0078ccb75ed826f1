"""The steps of the GitHub Action and of the GitLab job, run here, against a code host that is a thread of the test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from pyrometer.guard.gate import Gate, GuardReport
from pyrometer.record import to_json
from pyrometer.report.gates.comment import MARKER, comment

ACTIONS = Path(__file__).parents[2] / "actions" / "guard"


class Host(ThreadingHTTPServer):
    """Keeps comments; a token `read` may not write."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.comments = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    def log_message(self, *_arguments): ...

    def _send(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        page = int(re.search(r"[&?]page=(\d+)", self.path)[1])
        self._send(self.server.comments[(page - 1) * 100 : page * 100])

    def _write(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        if "read" in (self.headers.get("Authorization") or ""):
            self._send({"message": "Resource not accessible by integration"}, 403)
            return
        number = re.search(r"/(?:comments|notes)/(\d+)$", self.path)
        if number:
            self.server.comments[int(number[1])]["body"] = body
        else:
            self.server.comments.append({"id": len(self.server.comments), "body": body})
        self._send({})

    do_POST = do_PATCH = do_PUT = _write  # noqa: N815 - names of http.server


@pytest.fixture
def host():
    with Host() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def report(outcome):
    gate = Gate(benchmark="perf_a.py::perf_x", metric="median_s", kind="time", outcome=outcome, ratio=1.2)
    return GuardReport(trusted=True, gates=[gate])


@pytest.fixture
def job(tmp_path, host):
    """Runs steps where `pyrometer` answers as a test says."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(sys.executable)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    (tmp_path / "work").mkdir()

    def run(steps, answer, code, **environment):
        (tmp_path / "answer.json").write_bytes(to_json(answer))
        (tmp_path / "answer.md").write_text(comment(answer))
        (programs / "pyrometer").write_text(
            "#!/bin/sh\n"
            'while [ $# -gt 0 ]; do [ "$1" = --markdown ] && cp "$ANSWERS/answer.md" "$2"; shift; done\n'
            f'cat "$ANSWERS/answer.json"; exit {code}\n'
        )
        (programs / "pyrometer").chmod(0o755)
        known = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "ANSWERS": str(tmp_path),
            "RUNNER_TEMP": str(tmp_path / "temp"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_API_URL": host.url,
            "GITHUB_REPOSITORY": "some/where",
            **environment,
        }
        done = None
        for script in steps:
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", script],
                cwd=tmp_path / "work",
                env=known,
                capture_output=True,
                text=True,
                check=False,
            )
            if (tmp_path / "output").exists():
                known["CODE"] = (tmp_path / "output").read_text().strip().partition("=")[2]
            if done.returncode:
                break
        return done

    return run


@pytest.fixture(scope="module")
def action():
    return yaml.safe_load((ACTIONS / "action.yml").read_text())


@pytest.fixture
def steps(action):
    return [step["run"] for step in action["runs"]["steps"]]


INPUTS = {"BASE": "main", "SELECT": "", "UNDECIDED": "warn", "ENVIRONMENT": "auto"}


def test_a_regression_is_commented_once_and_fails_the_job(job, steps, host, tmp_path):
    for _ in range(2):
        (tmp_path / "output").unlink(missing_ok=True)
        done = job(steps, report("regressed"), 1, PYROMETER_TOKEN="write", **INPUTS)
        assert done.returncode == 1
    [one] = host.comments
    assert one["body"].startswith(MARKER)
    assert "worse" in one["body"]
    assert "worse" in (tmp_path / "summary.md").read_text()


def test_the_comment_says_when_all_is_well_again_and_is_found_behind_many(job, steps, host, tmp_path):
    host.comments += [{"id": number, "body": "+1"} for number in range(120)]
    job(steps, report("regressed"), 1, PYROMETER_TOKEN="write", **INPUTS)
    (tmp_path / "output").unlink()
    done = job(steps, report("unchanged"), 0, PYROMETER_TOKEN="write", **INPUTS)
    assert done.returncode == 0
    assert len(host.comments) == 121
    assert "no change" in host.comments[-1]["body"]


def test_where_nothing_changed_there_is_a_summary_and_no_comment(job, steps, host, tmp_path):
    assert job(steps, report("unchanged"), 0, PYROMETER_TOKEN="write", **INPUTS).returncode == 0
    assert host.comments == []
    assert "no change" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize("token", ["", "read"])
def test_a_fork_without_a_token_gets_the_summary_only(job, steps, host, tmp_path, token):
    done = job(steps, report("regressed"), 1, PYROMETER_TOKEN=token, **INPUTS)
    assert done.returncode == 1
    assert host.comments == []
    assert "worse" in (tmp_path / "summary.md").read_text()


def test_no_text_of_a_pull_request_is_part_of_a_script(action):
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]


def test_the_job_of_gitlab_writes_one_note_and_fails(job, host):
    script = yaml.safe_load((ACTIONS / "gitlab.yml").read_text())["pyrometer-guard"]["script"]
    merge = {
        "CI_MERGE_REQUEST_IID": "3",
        "CI_API_V4_URL": host.url,
        "CI_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "main",
        "PYROMETER_TOKEN": "write",
    }
    for _ in range(2):
        assert job(["\n".join(script)], report("regressed"), 1, **merge).returncode == 1
    assert len(host.comments) == 1
