"""One habit repeated in a file is one finding with its places."""

from __future__ import annotations

import json
import textwrap

import pytest

from pyrometer.rules.lint.habits import grouped
from pyrometer.rules.lint.output.github import github_of
from pyrometer.rules.lint.output.json import json_of
from pyrometer.rules.lint.output.sarif import sarif_of
from pyrometer.rules.lint.output.text import statistics_of, summary_of, text_of
from pyrometer.rules.lint.result import LintResult
from pyrometer.rules.lint.run import lint_paths
from pyrometer.rules.settings import RuleSettings

TEXT = """\
import torch

device = torch.device("cuda")


def fit(loader, model, optimizer):
    total = hits = 0.0
    for inputs, labels in loader:
        scores = model(inputs.to(device))
        loss = torch.nn.functional.cross_entropy(scores, labels.to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item()
        hits += (scores.argmax(1) == labels.to(device)).sum().item()
        torch.cuda.empty_cache()
        if loss > 3:
            torch.cuda.empty_cache()
"""


@pytest.fixture
def by_place(tmp_path) -> LintResult:
    for name in ("fit.py", "again.py"):
        (tmp_path / name).write_text(textwrap.dedent(TEXT))
    return lint_paths([tmp_path], RuleSettings(select=["PYR101", "PYR205"]))


def test_findings_of_one_rule_in_one_file_are_one_with_its_places(by_place):
    result = grouped(by_place)
    assert [(len(finding.also), finding.code) for finding in result.findings] == [
        (1, "PYR101"),
        (1, "PYR205"),
    ] * 2
    first = result.findings[0]
    assert (first.line, [place.line for place in first.also]) == (14, [15])
    assert "argmax" in first.also[0].message
    assert len(first.fixes) == 0
    assert len(result.findings[1].fixes) == 2


def test_every_form_names_the_places(by_place):
    result = grouped(by_place)
    assert text_of(result).splitlines()[0].endswith("; also at line 15")
    assert "also at line 15" in github_of(result).splitlines()[0]
    assert json_of(result)[0]["also"][0]["line"] == 15
    related = json.loads(json.dumps(sarif_of(result)))["runs"][0]["results"][0]["relatedLocations"]
    assert related[0]["physicalLocation"]["region"]["startLine"] == 15


def test_counts_stay_those_of_places(by_place):
    result = grouped(by_place)
    assert statistics_of(result) == statistics_of(by_place)
    assert summary_of(result).startswith("4 findings at 8 places in 2 files")
    assert "--unsafe-fixes mends 4" in summary_of(result)


def test_another_thing_to_do_is_another_finding(by_place):
    findings = [finding for finding in by_place.findings if finding.file.endswith("fit.py")]
    other = LintResult(findings=[findings[0], *(f for f in findings if f.code == "PYR205")])
    assert len(grouped(other).findings) == 2
    assert all(not finding.also for finding in grouped(other).findings[:1])
