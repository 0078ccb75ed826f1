from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pyrometer.rules.lint.run as running
from pyrometer.errors import UsageError
from pyrometer.rules.lint.result import LintResult
from pyrometer.rules.lint.run import is_worth_parsing, lint_paths

SLOW = "import torch\nslow()\n"


def told(result: LintResult) -> list[tuple[str, int, str]]:
    return [(finding.file, finding.line, finding.code) for finding in result.findings]


def test_findings_stand_in_the_order_of_files_and_lines(project, slow_call, only):
    root = project({"b.py": "import torch\nslow()\nslow(slow())\n", "a/z.py": SLOW, "a/n.py": "slow()\n"})
    result = lint_paths(["b.py", "a"], only("PYR890", root=str(root)))
    assert told(result) == [
        ("a/z.py", 2, "PYR890"),
        ("b.py", 2, "PYR890"),
        ("b.py", 3, "PYR890"),
        ("b.py", 3, "PYR890"),
    ]
    assert (result.num_files, result.num_looked_at, result.num_lines) == (3, 2, 7)


@pytest.mark.parametrize("jobs", [2, 3])
def test_several_processes_find_the_same(project, slow_call, only, jobs):
    root = project(
        {f"m{number}.py": SLOW * (1 + number % 3) for number in range(60)} | {"bad.py": "import torch\n("}
    )
    settings = only("PYR890", root=str(root))
    assert lint_paths(["."], settings, jobs) == lint_paths(["."], settings)


def test_new_processes_find_the_same_as_forked_ones(project, only, monkeypatch):
    root = project({f"m{number}.py": "import torch\n(" for number in range(30)})
    settings = only("PYR092", root=str(root))
    monkeypatch.setattr(running, "_context", lambda: running.multiprocessing.get_context("spawn"))
    assert len(lint_paths(["."], settings, 2).findings) == 30


@pytest.mark.slow
def test_a_file_that_kills_its_process_is_named_and_the_others_go_on(project, make_rule, only):
    def dies(module):
        if "killer" in module.path:
            os._exit(3)
        return ()

    make_rule("PYR890", "killer", dies)
    root = project({f"m{number}.py": SLOW for number in range(30)} | {"killer.py": SLOW})
    result = lint_paths(["."], only("PYR890", root=str(root)), 2)
    (failure,) = result.failures
    assert failure.startswith("killer.py: the process that linted it died")
    assert result.num_looked_at == 30


def test_fewer_than_one_process_is_refused(project, only):
    with pytest.raises(UsageError, match="jobs: got 0; legal is 1 or more"):
        lint_paths([str(project({}))], only("PYR092"), 0)


def test_rules_that_are_ignored_in_a_file_do_not_run_there(project, slow_call, only):
    root = project({"tests/a.py": SLOW, "a.py": SLOW})
    settings = only("PYR890", root=str(root), per_file_ignores={"tests/**": ["slow-call"]})
    assert told(lint_paths(["."], settings)) == [("a.py", 2, "PYR890")]


def test_what_is_ignored_is_told_with_its_reason(lint, slow_call):
    result = lint("import torch\nslow()  # pyrometer: ignore[PYR890] rare\n", "PYR890")
    assert result.findings == []
    (one,) = result.suppressed
    assert (one.code, one.where.file, one.where.line, one.reason, one.by) == (
        "PYR890",
        "train.py",
        2,
        "rare",
        "comment",
    )


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"import torch\ndef f(:\n", 2, "not valid Python: "),
        (b"import torch\nx = '\xe9'\n", 2, "not utf-8: "),
        (b"import torch\n\0\n", 2, "a null byte"),
        (b"# coding: no-such\nimport torch\n", 1, "unknown encoding: no-such"),
        (b"import torch\n" + b"(" * 300 + b")" * 300, None, "not valid Python: too many nested parentheses"),
        (b"import torch\nx = " + b"-" * 200_000 + b"1", None, ""),
        (b"import torch\nx = " + b"a." * 200_000 + b"b", None, ""),
        (b"import torch\n" + b"".join(b" " * n + b"if x:\n" for n in range(120)), None, "not valid Python: "),
    ],
)
def test_what_cannot_be_read_is_a_finding(lint, content, line, message):
    (finding,) = lint(content, "PYR092").findings
    assert (finding.code, finding.file) == ("PYR092", "train.py")
    assert line is None or finding.line == line
    assert finding.message.startswith(message)
    assert "\n" not in finding.message


def test_files_that_cannot_be_opened_are_findings(project, only):
    root = project({"a.py": SLOW})
    (root / "self.py").symlink_to("self.py")
    (root / "gone.py").symlink_to("nowhere.py")
    result = lint_paths([".", "gone.py"], only("PYR092", root=str(root)))
    assert [(finding.file, finding.message.partition(":")[0]) for finding in result.findings] == [
        ("gone.py", "cannot be opened"),
        ("self.py", "cannot be opened"),
    ]


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\xef\xbb\xbf", b"import torch", b"import torch\x0c\n", b"import torch\r\nx=1\r\n"],
)
def test_odd_but_legal_files_are_read(lint, content):
    assert lint(content, "ALL").findings == []
    assert lint(content, "ALL").failures == []


def test_a_file_in_another_encoding_is_read(lint, slow_call):
    text = "# coding: latin-1\nimport torch\nx = 'é', slow()\n"
    (finding,) = lint(text.encode("latin-1"), "PYR890").findings
    assert (finding.line, finding.column) == (3, 10)


def test_a_large_file_is_read(lint, slow_call):
    text = (
        "import torch\n"
        + "x = [1, 2, 3, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa']\n" * 20_000
        + "slow()\n"
    )
    (finding,) = lint(text, "PYR890").findings
    assert finding.line == 20_002


@pytest.mark.parametrize(
    ("content", "worth"),
    [
        (b"import torch.nn as nn", True),
        (b"from lightning import Trainer", True),
        (b"x = 1  # pyrometer: ignore[PYR101]", True),
        (b"import numpy as np\nprint('ctrl')", False),
        (b'"source": "x = 1\\nimport torch\\n"', True),
        (b"", False),
    ],
)
def test_files_that_name_nothing_of_torch_are_not_parsed(content, worth):
    assert is_worth_parsing(content) is worth


def test_a_fingerprint_survives_what_moves_the_line_and_nothing_else(lint, slow_call):
    def prints(text: str) -> list[str]:
        return [finding.fingerprint for finding in lint(f"import torch\n{text}", "PYR890").findings]

    before = prints("def f():\n    slow(1)\n    slow(1)\n")
    assert len(set(before)) == 2
    assert prints("\n\nclass A: pass\ndef f():\n    if x:\n        slow(1)  # words\n    slow(1)\n") == before
    assert not set(prints("def g():\n    slow(1)\n    slow(2)\n")) & set(before)


def test_excerpts_are_short(lint, slow_call):
    text = "import torch\nslow(\n" + "    1,\n" * 10 + ")\nslow('" + "x" * 1000 + "')\n"
    first, second = lint(text, "PYR890").findings
    assert first.excerpt == ["slow(", "    1,", "    1,", "    1,"]
    assert len(second.excerpt[0]) == 300


def test_linting_imports_no_torch(project):
    root = project({"a.py": SLOW})
    code = (
        "import sys\n"
        "from pyrometer.rules.lint.run import lint_paths\n"
        "from pyrometer.rules.settings import RuleSettings\n"
        f"lint_paths(['{root}'], RuleSettings(preview=True))\n"
        "heavy = {'torch', 'numpy', 'scipy', 'polars', 'rich', 'sqlalchemy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.exhaustive
def test_linting_a_file_is_far_quicker_than_importing_torch(project):
    root = project({"a.py": SLOW})
    linting = f"from pyrometer.cli.main import main; main(['lint', {str(root)!r}])"

    def best_s(code: str) -> float:
        import time

        times = []
        for _ in range(3):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=root)
            times.append(time.perf_counter() - start)
        return min(times)

    assert best_s(linting) < best_s("import torch") / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("packages", "fewest"),
    [
        pytest.param(("nn", "optim"), 120, id="nn"),
        pytest.param(("nn", "optim", "utils", "distributed"), 300, id="more", marks=pytest.mark.exhaustive),
    ],
)
def test_every_file_of_torch_is_answered(only, packages, fewest):
    folder = Path(*importlib.util.find_spec("torch").submodule_search_locations)
    result = lint_paths([str(folder / name) for name in packages], only("ALL"), 2)
    assert result.failures == []
    assert result.num_looked_at > fewest
