from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyrometer.place import Place
from pyrometer.rules.finding import Suppressed
from pyrometer.rules.lint.output.full import plain_text
from pyrometer.rules.lint.output.github import github_of
from pyrometer.rules.lint.output.json import json_of
from pyrometer.rules.lint.output.sarif import sarif_of
from pyrometer.rules.lint.output.text import line_of, statistics_of, statistics_text, summary_of, text_of
from pyrometer.rules.lint.result import LintFinding, LintResult
from pyrometer.rules.match import Fix
from pyrometer.source.edit import Edit

TEXT = "import torch\nif x:\n\ty = 'é', slow()\nrisky(\n    1)\n"


@pytest.fixture
def result(lint, slow_call, risky_call) -> LintResult:
    return lint(TEXT, "PYR89", name="src/a b.py")


def finding(**fields) -> LintFinding:
    place = {"line": 3, "column": 4, "end_line": 3, "end_column": 9}
    known = {"code": "PYR101", "name": "item-in-hot-loop", "severity": "error", "message": "m"}
    return LintFinding(**{**known, "file": "a.py", **place, **fields})


def test_one_line_per_finding(result):
    assert text_of(result) == (
        "src/a b.py:3:11: PYR890 slow-call: slow() is slow [*fixable]\n"
        "src/a b.py:4:1: PYR891 risky-call: risky() is slow [*unsafe]\n"
    )


def test_a_finding_without_a_fix_has_no_mark():
    assert line_of(finding()) == "a.py:3:4: PYR101 item-in-hot-loop: m"


def test_the_summary_counts_and_says_what_to_type(result):
    assert summary_of(result) == (
        "2 findings in 1 file; looked at 1 file of 1 that use torch;"
        " --fix mends 1; --fix --unsafe-fixes mends 1 more"
    )
    assert summary_of(LintResult(num_files=3)) == "no findings in 0 files of 3 that use torch"


def test_the_summary_counts_what_the_user_chose_not_to_see():
    left_out = [
        Suppressed(code="PYR101", name="item-in-hot-loop", where=Place(file="a.py", line=1), reason="", by=by)
        for by in ("baseline", "comment", "comment")
    ]
    assert summary_of(LintResult(num_files=1, num_looked_at=1, suppressed=left_out)) == (
        "no findings in 1 file of 1 that use torch; left out by comments: 2; left out by the baseline: 1"
    )


def test_statistics_begin_with_the_most_frequent(lint, slow_call, risky_call):
    result = lint("import torch\nrisky()\n" + "slow()\n" * 10, "PYR89")
    assert statistics_of(result) == [
        {"code": "PYR890", "name": "slow-call", "count": 10, "fixable": 10},
        {"code": "PYR891", "name": "risky-call", "count": 1, "fixable": 1},
    ]
    assert statistics_text(result).splitlines() == [
        "10  PYR890  slow-call  [10 with a fix]",
        " 1  PYR891  risky-call  [1 with a fix]",
    ]
    assert statistics_text(LintResult()) == ""


def test_the_full_form_shows_the_lines_and_underlines_the_place(result):
    assert plain_text(result).splitlines() == [
        "PYR890 slow-call: slow() is slow [*fixable]",
        "  --> src/a b.py:3:11",
        "3 |     y = 'é', slow()",
        "  |              ^^^^^^",
        "  = advice: Call fast().",
        "  = fix: Call fast",
        "",
        "PYR891 risky-call: risky() is slow [*unsafe]",
        "  --> src/a b.py:4:1",
        "4 | risky(",
        "  | ^^^^^^",
        "5 |     1)",
        "  = advice: Call safe().",
        "  = fix: Call safe",
        "",
    ]


def test_the_full_form_takes_wide_characters_and_markup_as_they_are():
    lint_finding = finding(
        message="[red]x[/red]",
        column=6,
        end_column=8,
        excerpt=["'日本', [b]xy[/b]"],
        hot="the loop in line 1",
    )
    lines = plain_text(LintResult(findings=[lint_finding])).splitlines()
    assert lines[0] == "PYR101 item-in-hot-loop: [red]x[/red]"
    assert lines[2:5] == ["3 | '日本', [b]xy[/b]", "  |        ^^", "  = hot because: the loop in line 1"]


def test_a_finding_without_lines_is_shown_too():
    assert plain_text(LintResult(findings=[finding()])).splitlines() == [
        "PYR101 item-in-hot-loop: m",
        "  --> a.py:3:4",
        "",
    ]


def test_json_is_a_list_that_programs_can_rely_on(result):
    first, second = json.loads(json.dumps(json_of(result)))
    print_ = first.pop("fingerprint")
    assert len(print_) == 18
    assert first == {
        "code": "PYR890",
        "name": "slow-call",
        "severity": "warning",
        "file": "src/a b.py",
        "cell": None,
        "line": 3,
        "column": 11,
        "end_line": 3,
        "end_column": 17,
        "message": "slow() is slow",
        "advice": "Call fast().",
        "confidence": "high",
        "fix": {
            "class": "exact",
            "title": "Call fast",
            "edits": [{"line": 3, "column": 11, "end_line": 3, "end_column": 15, "text": "fast"}],
        },
        "also": [],
    }
    assert second["fix"]["class"] == "semantic"
    assert json_of(LintResult(findings=[finding()]))[0]["fix"] is None
    assert json_of(LintResult()) == []


def test_github_annotations(result):
    assert github_of(result).splitlines() == [
        "::warning file=src/a b.py,line=3,endLine=3,col=11,endColumn=17,title=PYR890 slow-call::slow() is slow",
        "::warning file=src/a b.py,line=4,endLine=5,title=PYR891 risky-call::risky() is slow",
    ]


def test_github_annotations_cannot_be_broken_out_of():
    lint_finding = finding(file="a,b:c\n::error::x.py", message="100%\r\n::error::y")
    (line,) = github_of(LintResult(findings=[lint_finding])).splitlines()
    assert line == (
        "::error file=a%2Cb%3Ac%0A%3A%3Aerror%3A%3Ax.py,line=3,endLine=3,col=4,endColumn=9,"
        "title=PYR101 item-in-hot-loop::100%25%0D%0A::error::y"
    )


def test_github_is_told_the_cell_in_words():
    lint_finding = finding(file="a.ipynb", cell=2, severity="info")
    assert github_of(LintResult(findings=[lint_finding])) == (
        "::notice file=a.ipynb,title=PYR101 item-in-hot-loop::cell 2, line 3: m\n"
    )


def test_forms_are_functions_of_the_result_alone(result, monkeypatch):
    def refused(*_arguments, **_options):
        raise AssertionError("a form opened a file")

    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(Path, "read_bytes", refused)
    for form in (text_of, github_of, json_of, sarif_of):
        assert form(result) == form(result)


def test_edits_of_a_notebook_count_within_the_cell():
    edit = Edit(line=1, column=0, end_line=1, end_column=2, text="x")
    lint_finding = finding(file="a.ipynb", cell=2, fix=Fix(fix_class="exact", title="t", edits=[edit]))
    assert json_of(LintResult(findings=[lint_finding]))[0]["fix"]["edits"][0]["column"] == 1
