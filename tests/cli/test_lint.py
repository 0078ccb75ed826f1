"""`pyrometer lint`: files in, findings out; exit codes, forms, fixes, baselines, stdin."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from pyrometer.cli.main import main

SLOW = """\
import torch

def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
CLEAN = "import torch\n\nx = torch.zeros(3)\n"
UNUSED = "import torch\n\nx = 1  # pyrometer: ignore[PYR101] once\n"


class Done(NamedTuple):
    """What a run of the verb gave."""

    returncode: int
    stdout: bytes
    stderr: bytes


@pytest.fixture
def lint(capsysbinary, monkeypatch) -> Callable[..., Done]:
    """`lint("a.py", "--fix", cwd=folder, text=b"on stdin")`, in this process."""

    def run(*arguments: str, cwd: Path, text: str | bytes = "") -> Done:
        data = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        monkeypatch.chdir(cwd)
        code = main(["lint", *arguments])
        return Done(code, *capsysbinary.readouterr())

    return run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.pyrometer]\nseed = 1\n")
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "clean.py").write_text(CLEAN)
    return tmp_path


def test_findings_exit_with_one_and_silence_with_zero(lint, project):
    done = lint(".", cwd=project)
    assert done.returncode == 1
    assert b"slow.py:8:15: PYR101 item-in-hot-loop: " in done.stdout
    assert b"looked at 2 files of 2 that use torch" in done.stderr
    done = lint("clean.py", cwd=project)
    assert (done.returncode, done.stdout) == (0, b"")
    assert lint(".", "--exit-zero", cwd=project).returncode == 0


def test_rules_are_selected_and_ignored_by_code_name_and_beginning(lint, project):
    assert lint(".", "--select", "PYR1", "--ignore", "item-in-hot-loop,PYR103", cwd=project).returncode == 0
    assert lint(".", "--select", "PYR2,PYR3", cwd=project).returncode == 0
    assert lint(".", "--select", "item-in-hot-loop", cwd=project).returncode == 1


def test_settings_of_the_project_hold(lint, project):
    (project / "pyproject.toml").write_text('[tool.pyrometer.rules]\nexclude = ["slow.py"]\n')
    assert lint(".", cwd=project).returncode == 0
    assert lint("slow.py", cwd=project).returncode == 0
    (project / "pyproject.toml").write_text('[tool.pyrometer.rules]\nexlude = ["slow.py"]\n')
    done = lint(".", cwd=project)
    assert done.returncode == 2
    assert b"exlude: no such setting; did you mean exclude?" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no path was named; pass files, folders, patterns, or - for stdin"),
        (["nowhere.py"], "nowhere.py: there is no such file or folder"),
        ([".", "--select", "PYR9"], "PYR9: no such rule"),
        ([".", "--unsafe-fixes"], "--unsafe-fixes goes with --fix or --diff"),
        ([".", "--fix", "--diff"], "--diff shows what --fix would write"),
        ([".", "--diff", "--format", "json"], "--diff prints a diff"),
        (
            [".", "--statistics", "--format", "sarif"],
            "--statistics: got --output-format sarif; legal are text, concise and json",
        ),
        ([".", "--add-ignores", "x", "--fix"], "--add-ignores goes without fixes and baselines"),
        ([".", "--update-baseline", "--fix"], "--update-baseline changes no sources"),
        (["-", "a.py"], "- reads one text from stdin"),
        (["-", "--update-baseline"], "- reads one text from stdin"),
        ([".", "--baseline", "none.json"], "none.json: cannot be read: No such file or directory"),
        ([".", "--output", "no/such/folder.txt"], "no/such/folder.txt: cannot be written"),
        ([".", "--add-ignores", " "], "--add-ignores: got ' '; legal is one line that says why"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_two(lint, project, arguments, said):
    done = lint(*arguments, cwd=project)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.decode().splitlines() if line.startswith("error: ")]
    assert said in line
    assert b"Traceback" not in done.stderr


def test_a_file_that_cannot_be_read_is_a_finding(lint, project):
    (project / "bad.py").write_text("import torch\ndef f(:\n")
    done = lint("bad.py", "--select", "PYR1", cwd=project)
    assert done.returncode == 1
    assert done.stdout.startswith(b"bad.py:2:1: PYR092 unreadable-file: not valid Python")


def test_fixes_are_applied_and_what_is_left_is_told(lint, project):
    (project / "unused.py").write_text(UNUSED)
    done = lint("unused.py", "--diff", cwd=project)
    assert done.returncode == 1
    assert b"-x = 1  # pyrometer: ignore[PYR101] once\n+x = 1\n" in done.stdout
    assert (project / "unused.py").read_text() == UNUSED
    done = lint("unused.py", "slow.py", "--fix", cwd=project)
    assert done.returncode == 1
    assert b"fixes: 1; files changed: 1" in done.stderr
    assert b"unused.py" not in done.stdout
    assert (project / "unused.py").read_text() == "import torch\n\nx = 1\n"
    assert (project / "slow.py").read_text() == SLOW
    assert lint("unused.py", "--diff", cwd=project).returncode == 0


def test_comments_that_ignore_are_written_with_the_reason(lint, project):
    done = lint(".", "--add-ignores", "one a day", cwd=project)
    assert (done.returncode, done.stdout) == (0, b"")
    text = (project / "slow.py").read_text()
    assert "] one a day" in text
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(SLOW))
    assert (project / "clean.py").read_text() == CLEAN


def test_a_baseline_keeps_old_findings_quiet(lint, project):
    done = lint(".", "--update-baseline", cwd=project)
    assert done.returncode == 0
    assert b"wrote .pyrometer-baseline.json" in done.stderr
    known = ("--baseline", ".pyrometer-baseline.json")
    assert lint(".", *known, cwd=project).returncode == 0
    (project / "slow.py").write_text(SLOW.replace("import torch\n", "import torch\n\n\n"))
    assert lint(".", *known, cwd=project).returncode == 0
    (project / "slow.py").write_text(SLOW + "        losses.append(loss.item())\n")
    done = lint(".", *known, cwd=project)
    assert done.returncode == 1
    assert b"slow.py:9:" in done.stdout
    assert b"slow.py:8:" not in done.stdout
    (project / "slow.py").write_text(CLEAN)
    assert b"was written: 1; --update-baseline takes them out" in lint(".", *known, cwd=project).stderr


def test_forms_are_whole_documents(lint, project):
    document = json.loads(lint(".", "--format", "json", cwd=project).stdout)
    assert {"code", "name", "file", "line", "column", "message", "fix"} <= set(document[0])
    assert json.loads(lint(".", "--format", "sarif", cwd=project).stdout)["version"] == "2.1.0"
    assert lint(".", "--format", "github", cwd=project).stdout.startswith(b"::")
    assert b"  --> slow.py:8:15" in lint(".", "--format", "full", cwd=project).stdout
    assert json.loads(lint("clean.py", "--format", "json", cwd=project).stdout) == []
    counts = json.loads(lint(".", "--statistics", "--format", "json", cwd=project).stdout)
    assert sum(row["count"] for row in counts) == len(document)
    assert b"PYR101  item-in-hot-loop" in lint(".", "--statistics", cwd=project).stdout


@pytest.mark.parametrize("form", ["text", "full", "json", "sarif", "github"])
def test_a_file_takes_every_form(lint, project, form):
    done = lint(".", "--format", form, "--output", "found.txt", cwd=project)
    assert (done.returncode, done.stdout) == (1, b"")
    assert (project / "found.txt").read_text() == lint(".", "--format", form, cwd=project).stdout.decode()


def test_stdin_is_linted_and_fixed(lint, project):
    done = lint("-", cwd=project, text=SLOW)
    assert done.returncode == 1
    assert done.stdout.startswith(b"<stdin>:8:15: PYR101")
    done = lint("-", "--fix", cwd=project, text=UNUSED.replace("\n", "\r\n"))
    assert (done.returncode, done.stdout) == (0, b"import torch\r\n\r\nx = 1\r\n")
    done = lint("-", "--diff", cwd=project, text=UNUSED)
    assert done.returncode == 1
    assert b"--- <stdin>\n+++ <stdin>\n" in done.stdout


@pytest.mark.parametrize(
    "text", [b"", b"import torch\ndef f(:\n", b"import torch\n\xff\n", b"import torch\n\0", CLEAN.encode()]
)
def test_what_cannot_be_fixed_on_stdin_comes_back(lint, project, text):
    assert lint("-", "--fix", cwd=project, text=text).stdout == text


def test_a_name_that_is_no_text_is_printed_and_no_torch_is_imported(project):
    try:
        (project / os.fsdecode(b"\xff.py")).write_text(SLOW)
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    code = (
        "import sys; from pyrometer.cli.main import main; code = main(['lint', '.'])\n"
        "assert not {'torch', 'numpy', 'rich'} & set(sys.modules)\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=project)
    assert done.returncode == 1, done.stderr
    assert b"\\xff.py:8:15: PYR101" in done.stdout


def test_results_are_kept_between_runs_and_do_not_differ(lint, project):
    first = lint(".", cwd=project)
    assert list((project / ".pyrometer" / "lint-cache").glob("*.json"))
    assert lint(".", cwd=project).stdout == first.stdout
