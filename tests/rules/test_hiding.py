"""Findings that the user does not want to see are told apart, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyrometer.advice import Advice
from pyrometer.place import Place
from pyrometer.rules.finding import Finding
from pyrometer.rules.hiding import hidden_by
from pyrometer.rules.settings import RuleSettings
from pyrometer.source.module import Module

TEXT = """\
import torch
x = torch.ones(3)
y = x.sum().item()  # pyrometer: ignore[PYR101] once per epoch
z = x.sum().item()
"""


def at(line: int | None, code: str = "PYR101", file: str | None = "train.py") -> Finding:
    return Finding(
        code=code,
        name="n",
        severity="warning",
        message="m",
        where=Place(file=file, line=line),
        confidence="high",
        advice=Advice(slug="a", title="a", fix_class="exact"),
    )


def hidden(finding: Finding, text: str = TEXT, path: str = "train.py", **settings: Any) -> Any:
    return hidden_by([Module.parse(path, text)], RuleSettings(**settings))(finding)


def test_a_comment_hides_its_line_and_gives_the_reason() -> None:
    found = hidden(at(3))
    assert (found.code, found.where.line, found.reason, found.by) == (
        "PYR101",
        3,
        "once per epoch",
        "comment",
    )


def test_other_lines_other_rules_and_other_files_are_shown() -> None:
    assert hidden(at(4)) is None
    assert hidden(at(3, code="PYR102")) is None
    assert hidden(at(3, file="other.py")) is None
    assert hidden(at(None, file=None)) is None


def test_a_record_that_shortens_the_path_is_hidden_as_well() -> None:
    assert hidden(at(3), path="src/deep/train.py") is not None


def test_a_whole_file_is_hidden_even_where_no_line_is_known() -> None:
    text = TEXT + "# pyrometer: ignore-file[PYR2] a script of a second\n"
    assert hidden(at(None, code="PYR215"), text).reason == "a script of a second"
    assert hidden(at(4), text) is None


def test_a_pattern_of_the_settings_hides_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "tests" / "bench.py")
    found = hidden(at(4, file=path), path=path, root=str(tmp_path), per_file_ignores={"tests/**": ["PYR1"]})
    assert (found.by, found.reason) == ("configuration", "ignored in this file by the settings")
    assert (
        hidden(at(4, "PYR215", path), path=path, root=str(tmp_path), per_file_ignores={"tests/**": ["PYR1"]})
        is None
    )
