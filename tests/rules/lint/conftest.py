"""A rule of the tests' own: what linting does is shown without any real one."""

from __future__ import annotations

import ast
import multiprocessing
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrometer.rules import registry
from pyrometer.rules.lint import run as running
from pyrometer.rules.lint.result import LintResult
from pyrometer.rules.lint.run import lint_paths
from pyrometer.rules.match import Fix, match
from pyrometer.rules.rule import Rule, declare, declared
from pyrometer.rules.settings import RuleSettings
from pyrometer.source.edit import Edit
from pyrometer.source.module import Module

DOC = "A call of slow().\n\n## What it does\n\nReports it.\n\n## Why it costs\n\nIt is slow.\n"


def no_matches(_module: Module):
    return ()


@pytest.fixture(autouse=True)
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are forked even where other tests have loaded torch: only forks know the rules that tests make."""
    monkeypatch.setattr(running, "_context", lambda: multiprocessing.get_context("fork"))


@pytest.fixture
def make_rule() -> Iterator[Callable[..., Rule]]:
    """`make_rule("PYR890", "slow-call", check)`: a rule that is gone after the test."""
    before = dict(declared)

    def make(code: str, name: str, check: Callable[[Module], Any] = no_matches, **fields: Any) -> Rule:
        rule = declare(
            **{"code": code, "name": name, "doc": DOC, "severity": "warning", "fix_class": "exact", **fields}
        )
        rule.in_source(check)
        registry.rules.cache_clear()
        return rule

    yield make
    added = set(declared) - set(before)
    for code in added - {rule.code for rule in _real_rules()}:
        del declared[code]
    registry.rules.cache_clear()


def _real_rules() -> list[Rule]:
    return [rule for rule in declared.values() if rule.doc != DOC]


def renaming(module: Module, old: str, new: str, fix_class: Any = "exact"):
    """Matches of calls of one name, each with a fix that puts another in its place."""
    for call in module.nodes(ast.Call):
        if not isinstance(call.func, ast.Name) or call.func.id != old:
            continue
        line, column, end_line, end_column = module.span(call.func)
        edit = Edit(line=line, column=column, end_line=end_line, end_column=end_column, text=new)
        fix = Fix(fix_class=fix_class, title=f"Call {new}", edits=[edit])
        yield match(call, f"{old}() is slow", advice=f"Call {new}().", fix=fix)


@pytest.fixture
def slow_call(make_rule: Callable[..., Rule]) -> Rule:
    """PYR890: finds `slow()`, and mends it to `fast()`."""
    return make_rule("PYR890", "slow-call", lambda module: renaming(module, "slow", "fast"))


@pytest.fixture
def risky_call(make_rule: Callable[..., Rule]) -> Rule:
    """PYR891: finds `risky()`, and mends it to `safe()`, which changes results."""
    return make_rule(
        "PYR891",
        "risky-call",
        lambda module: renaming(module, "risky", "safe", "semantic"),
        fix_class="semantic",
    )


@pytest.fixture
def only() -> Callable[..., RuleSettings]:
    """`only("PYR890", root=folder)`: settings that select just these rules."""
    return lambda *codes, **fields: RuleSettings(**{"select": list(codes), **fields})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`project({"a.py": "..."})`: files below a folder that is then the working folder."""

    def make(files: dict[str, str | bytes]) -> Path:
        for name, content in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            data = content if isinstance(content, bytes) else textwrap.dedent(content).encode()
            file.write_bytes(data)
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return make


@pytest.fixture
def lint(project: Callable[..., Path], only: Callable[..., RuleSettings]) -> Callable[..., LintResult]:
    """`lint("import torch\\nslow()", "PYR890")`: what rules find in one text."""

    def look(content: str | bytes, *codes: str, name: str = "train.py") -> LintResult:
        root = project({name: content})
        return lint_paths([name], only(*codes, root=str(root)))

    return look
