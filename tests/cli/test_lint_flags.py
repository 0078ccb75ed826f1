"""`pyrometer lint` takes the flags that ruff's users expect: which files, which rules, which settings, which form."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

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
UNUSED = "import torch\n\nx = 1  # pyrometer: ignore[PYR101] once\n"
RULES = "[tool.pyrometer.rules]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Path:
    """Two faults in two folders, and a setting that leaves one of them out."""
    (tmp_path / "pyproject.toml").write_text(f'{RULES}select = ["PYR1"]\nexclude = ["legacy"]\n')
    for name in ("src/slow.py", "src/old/slow.py", "legacy/slow.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def files(capsys):
    """`files("--exclude", "old")`: the files with findings, and the exit code."""

    def run(*arguments: str) -> tuple[set[str], int]:
        code = main(["lint", *arguments, "--json"])
        return {finding["file"] for finding in json.loads(capsys.readouterr().out)}, code

    return run


@pytest.fixture
def codes(capsys):
    """`codes("--select", "PYR2")`: the codes that are found, less those about files and comments."""

    def run(*arguments: str) -> set[str]:
        main(["lint", *arguments, "--json"])
        return {finding["code"] for finding in json.loads(capsys.readouterr().out)}

    return run


BOTH = {"src/slow.py", "src/old/slow.py"}


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ([], BOTH),
        (["--exclude", "old"], {"src/slow.py"}),
        (["--exclude", "src/old/"], {"src/slow.py"}),
        (["--exclude", "nowhere,./src/old"], {"src/slow.py"}),
        (["--exclude", "src/*.py", "--exclude", "old"], set()),
        (["--isolated"], {*BOTH, "legacy/slow.py"}),
        (["--isolated", "--exclude", "legacy"], BOTH),
        (["--config", "exclude=['src']"], {"legacy/slow.py"}),
        (["--config", "exclude=[]", "--exclude", "src"], {"legacy/slow.py"}),
    ],
)
def test_files_are_left_out_by_settings_and_flags_together(project, files, arguments, left):
    assert files(".", *arguments) == (left, 1 if left else 0)


def test_patterns_of_flags_count_from_the_folder_of_the_call(project, monkeypatch, files):
    monkeypatch.chdir(project / "src")
    assert files(".", "--exclude", "old/*.py")[0] == {"slow.py"}
    assert files(".", "--exclude", "src/old")[0] == {"slow.py", "old/slow.py"}


def test_rules_are_added_and_taken_away(project, codes):
    (project / "src" / "graph.py").write_text(
        "import torch\n\ndef train(model, loader):\n    total = 0\n    for batch in loader:\n"
        "        loss = model(batch).mean()\n        loss.backward()\n        total += loss\n        print(loss.item())\n"
    )
    named = ("src/graph.py",)
    assert codes(*named) >= {"PYR101"}
    graph = codes(*named, "--isolated") - codes(*named)
    assert graph
    assert codes(*named, "--extend-select", ",".join(graph)) >= graph | {"PYR101"}
    assert codes(*named, "--select", "PYR101") == {"PYR101"}
    assert codes(*named, "--extend-ignore", "PYR1") == codes(*named, "--ignore", "PYR1") == set()


def test_a_rule_that_is_named_runs_although_the_settings_ignore_it(project, codes):
    (project / "pyproject.toml").write_text(f'{RULES}ignore = {{ PYR1 = "later" }}\n')
    assert not codes("src/slow.py")
    assert codes("src/slow.py", "--extend-select", "PYR101") == {"PYR101"}
    assert not codes("src/slow.py", "--extend-select", "PYR1")
    assert not codes("src/slow.py", "--extend-select", "PYR101", "--ignore", "PYR101")


def test_settings_come_from_the_file_that_is_named(project, files):
    (project / "ci.toml").write_text(f'{RULES}exclude = ["src/old"]\nselect = ["PYR1"]\n')
    assert files(".", "--config", "ci.toml")[0] == {"src/slow.py", "legacy/slow.py"}
    assert files(".", "--config", "ci.toml", "--config", "select=['PYR2']")[0] == set()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--config", "none.toml"], "none.toml: cannot be read as TOML"),
        (["--config", "empty.toml"], "--config: empty.toml has no table [tool.pyrometer.rules]; write one"),
        (["--config", "exclud=['x']"], "--config exclud: no such setting; did you mean exclude?"),
        (["--config", "exclude=legacy"], "--config: got 'exclude=legacy', "),
        (["--config", "select=['PYR9']"], "--config select: PYR9: no such rule"),
        (["--config", "empty.toml", "--config", "pyproject.toml"], "one file of settings can be read"),
        (["--isolated", "--config", "pyproject.toml"], "--isolated reads no file of settings"),
        (["--extend-select", "PYR9"], "PYR9: no such rule"),
        (["--output-format", "xml"], "'xml' is not one of"),
        (["--stdin-filename", "a.py"], "--stdin-filename names the text on stdin"),
        (["--watch", "--diff"], "--watch goes on and on"),
        (["--show-files", "--fix-only"], "--show-files lists files"),
        (["--fix-only", "--diff"], "--diff shows what --fix would write"),
        (["--lsp"], "--lsp serves an editor, which names the files"),
    ],
)
def test_wrong_use_is_one_line(project, capsys, arguments, said):
    (project / "empty.toml").write_text("[tool.ruff]\n")
    assert main(["lint", ".", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_files_are_listed_and_not_read(project, capsys):
    (project / "src" / "bad.py").write_text("import torch\ndef f(:\n")
    assert main(["lint", ".", "--show-files", "--exclude", "old"]) == 0
    assert capsys.readouterr().out == "src/bad.py\nsrc/slow.py\n"


def test_quiet_leaves_findings_and_errors(project, capsys):
    assert main(["lint", "src", "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert "PYR101" in out
    assert err == ""
    assert main(["lint", "nowhere", "-q"]) == 2
    assert capsys.readouterr().err.startswith("error: nowhere: ")


def test_fix_only_mends_and_tells_nothing_of_the_rest(project, capsys):
    fixable = project / "src" / "unused.py"
    fixable.write_text(UNUSED)
    assert main(["lint", "src", "--fix-only", "--select", "ALL"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", "fixes: 1; files changed: 1\n")
    assert fixable.read_text() == "import torch\n\nx = 1\n"


class TestStdin:
    """A text on stdin has a name: of what is told, and by which the settings know it."""

    @pytest.fixture(autouse=True)
    def _text(self, project, monkeypatch):
        import io
        import sys

        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SLOW.encode())))

    @pytest.mark.parametrize("paths", [[], ["-"]])
    def test_its_name_is_told(self, capsys, paths):
        assert main(["lint", *paths, "--stdin-filename", "src/new.py"]) == 1
        assert capsys.readouterr().out.startswith("src/new.py:8:15: PYR101")

    def test_settings_of_its_folder_hold(self, project, capsys):
        (project / "pyproject.toml").write_text(f'{RULES}per-file-ignores = {{ "tests/**" = ["PYR1"] }}\n')
        assert main(["lint", "-", "--stdin-filename", "tests/new.py"]) == 0
        assert capsys.readouterr().out == ""

    def test_what_is_excluded_comes_back_unchanged(self, capsysbinary):
        assert main(["lint", "-", "--stdin-filename", "legacy/slow.py", "--fix"]) == 0
        out, err = capsysbinary.readouterr()
        assert out == SLOW.encode()
        assert b"legacy/slow.py: left out" in err

    def test_fix_only_gives_the_text_alone(self, capsysbinary):
        assert main(["lint", "-", "--fix-only"]) == 0
        assert capsysbinary.readouterr() == (SLOW.encode(), b"")


class TestForms:
    """What code hosts and test servers read."""

    def test_gitlab_gets_a_code_quality_report(self, project, capsys):
        assert main(["lint", "src", "--output-format", "gitlab"]) == 1
        report = json.loads(capsys.readouterr().out)
        assert {issue["location"]["path"] for issue in report} == BOTH
        assert len({issue["fingerprint"] for issue in report}) == len(report)
        assert {"description", "check_name", "fingerprint", "severity", "location"} == set(report[0])
        assert report[0]["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert report[0]["location"]["positions"]["begin"] == {"line": 8, "column": 15}

    def test_junit_has_a_failed_case_per_finding(self, project, capsys):
        assert main(["lint", "src", "--output-format", "junit"]) == 1
        root = ET.fromstring(capsys.readouterr().out)
        failures = root.findall("testsuite/testcase/failure")
        assert len(failures) == int(root.attrib["failures"]) > 1
        assert main(["lint", "src", "--output-format", "junit", "--ignore", "PYR1"]) == 0
        root = ET.fromstring(capsys.readouterr().out)
        assert (root.attrib["tests"], root.attrib["failures"]) == ("1", "0")

    def test_concise_is_text_and_json_has_a_flag_of_its_own(self, project, capsys):
        def said(*arguments: str) -> str:
            main(["lint", "src", *arguments])
            return capsys.readouterr().out

        assert said("--output-format", "concise") == said() == said("--format", "text")
        assert said("--json") == said("--output-format", "json")
