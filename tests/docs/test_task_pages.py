"""What the pages by task tell people to type is typed: every command of them runs, on the files that they show."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pyrometer.cli.main import VERBS, main

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOME = DOCS / "index.md"
START = DOCS / "first-steps.md"
TASKS = [page for page in sorted((DOCS / "tasks").glob("*.md")) if not page.stem.endswith(".zh")]
BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$|<!-- output: (?P<command>.+?) -->',
    re.MULTILINE | re.DOTALL,
)
QUICK = {"idle-gpu"}
"""Pages whose commands start no program."""

STANDING_FOR_ALL = {"first-steps", "ci", "out-of-memory", "recompiles", "idle-gpu"}
"""Pages whose verbs differ; what the others type is like that, on other programs."""

FRAMEWORKS = {"lightning": "lightning", "hf-trainer": "transformers", "accelerate": "accelerate"}
"""Pages of another's framework, which takes longer to import than to train with."""

DECIDED_OR_NOT = {0, 3}
ANY_ANSWER = {0, 1, 3}
"""Of a command whose output stands beside it: that it found something is to be seen there."""


def commands_of(page: Path) -> dict[str, set[int]]:
    """Every command in the order of the page, with the exit codes that it may have; one that another goes on from is part of that."""
    found: dict[str, set[int]] = {}
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        lines = block["text"].splitlines() if block["language"] == "sh" else []
        for line in [block["command"] or "", *lines]:
            command, _, comment = line.partition("  # ")
            code = re.search(r"exits with (\d)", comment)
            if command and not command.startswith("pip "):
                usual = ANY_ANSWER if block["command"] else DECIDED_OR_NOT
                found[command] = {int(code[1])} if code else usual
    return {
        command: codes
        for command, codes in found.items()
        if not any(other.startswith(f"{command} ") for other in found)
    }


def files_of(page: Path) -> dict[str, str]:
    return {
        block["title"]: block["text"] for block in BLOCK.finditer(page.read_text("utf-8")) if block["title"]
    }


def exit_code_of(command: str) -> int:
    """Our own verbs run in this process, which has torch imported already."""
    words = shlex.split(command)
    if words[0] == "pyrometer" and not re.search(r"[|*$]|<\(", command):
        return main(words[1:])
    environment = dict(os.environ)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    shell = ["bash", "-o", "pipefail", "-c", command]
    return subprocess.run(shell, env=environment, check=False, capture_output=True).returncode


@pytest.fixture
def workplace(tmp_path, monkeypatch) -> Path:
    """A folder with the examples, in which little time is spent on each command."""
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYROMETER_BUDGET", "200ms")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


def marks_of(page: Path) -> list[pytest.MarkDecorator]:
    marks = [] if page.stem in QUICK else [pytest.mark.slow]
    return marks if page.stem in STANDING_FOR_ALL else [*marks, pytest.mark.exhaustive]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=marks_of(page)) for page in [START, *TASKS] if commands_of(page)],
)
def test_every_command_runs(page, workplace, capfd):
    if page.stem in FRAMEWORKS and importlib.util.find_spec(FRAMEWORKS[page.stem]) is None:
        pytest.skip(f"{FRAMEWORKS[page.stem]} is not installed")
    for name, text in files_of(page).items():
        (workplace / name).write_text(text, encoding="utf-8")
    for command, allowed in commands_of(page).items():
        code = exit_code_of(command)
        told = capfd.readouterr()
        assert code in allowed, f"{command}\n{told.out[-2000:]}{told.err[-2000:]}"


def test_the_first_page_shows_nothing_that_the_next_does_not_run():
    assert set(commands_of(HOME)) <= set(commands_of(START))


def code_of(page: Path) -> list[tuple[str, str, str, str]]:
    """Everything to type or to run; comments may be translated."""
    comment = re.compile(r"[ ]+# (?!exits).*$", re.MULTILINE)
    return [
        (
            block["language"] or "",
            block["title"] or "",
            comment.sub("", block["text"] or ""),
            block["command"] or "",
        )
        for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("page", [HOME, START, *TASKS], ids=lambda page: page.stem)
def test_the_chinese_page_has_the_same_sections_and_code(page):
    chinese = page.with_name(f"{page.stem}.zh.md")
    assert code_of(chinese) == code_of(page)
    texts = [BLOCK.sub("", one.read_text(encoding="utf-8")) for one in (page, chinese)]
    sections, rows = zip(
        *((re.findall(r"^#+ ", text, re.MULTILINE), text.count("\n|")) for text in texts), strict=True
    )
    assert sections[0] == sections[1]
    assert rows[0] == rows[1]
    assert re.search(r"[\u4e00-\u9fff]", texts[1])


def test_pages_made_while_the_site_is_built_name_all_there_is(monkeypatch):
    import pyrometer as pm

    monkeypatch.syspath_prepend(str(DOCS))
    spec = importlib.util.spec_from_file_location("site_reference", DOCS / "site_reference.py")
    site_reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site_reference)
    api = site_reference.api_page()
    assert [name for name in pm.__all__ if name != "__version__" and f"\n### {name}\n" not in api] == []
    flags = site_reference.flags_page()
    assert [verb for verb in VERBS if f"## pyrometer {verb}\n" not in flags] == []
    schemas = site_reference.schemas_page()
    assert "| `median_s` | number | " in schemas
    assert "[Measurement](#measurement)" in schemas
