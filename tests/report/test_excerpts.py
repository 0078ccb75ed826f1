"""Lines of the program in the cards of findings: the line itself, what stands around it, and the head of its function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from document_fixtures import changed

from pyrometer.advice import Advice
from pyrometer.place import Place
from pyrometer.report import html
from pyrometer.report.attachments import Attachments, SourceText, pack, unpack
from pyrometer.report.documents import CheckDocument
from pyrometer.report.excerpts import AROUND, MOST_OF_FUNCTION, excerpt
from pyrometer.report.sources import functions_at, read_sources
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding

LONG = 40
PROGRAM = "\n".join(
    [
        "class Loader:",
        "    @traced",
        "    def __getitem__(self, item):",
        *(f"        row_{i} = self.rows[{i}]" for i in range(4, LONG)),
        "        return collate(rows)",
        "",
        "    def __len__(self):",
        "        return 7",
    ]
)
HEAD, LAST = 3, LONG
"""Lines of the method's name and of its end."""


def check(plain: CheckDocument, file: Path, *lines: int) -> CheckDocument:
    findings = [
        Finding(
            code="PYR301", name="data-waits", severity="warning", message="it waits", confidence="high",
            advice=Advice(slug="a", title="Load less.", fix_class="exact"), where=Place(file=str(file), line=line),
        )
        for line in lines
    ]  # fmt: skip
    reading = [ReadingStep(question="does it wait?", answer="yes", verdict="fine")]
    return changed(plain, findings=findings, reading=reading)


def shown(file: Path, document: CheckDocument, line: int) -> list[tuple[Any, bool]]:
    return [
        (one.number, one.marked) for one in excerpt(Place(file=str(file), line=line), read_sources(document))
    ]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "loader.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def test_a_line_far_from_the_head_of_its_function_has_that_head_above_a_fold(program, perception):
    found = shown(program, check(perception, program, 30), 30)
    assert found == [
        (HEAD, False),
        (None, False),
        *((line, line == 30) for line in range(30 - AROUND, 30 + AROUND + 1)),
    ]


def test_a_line_next_to_the_head_needs_no_fold(program, perception):
    numbers = [number for number, _ in shown(program, check(perception, program, HEAD + 2), HEAD + 2)]
    assert numbers == list(range(1, HEAD + 2 + AROUND + 1))
    just_below = HEAD + AROUND + 1
    numbers = [number for number, _ in shown(program, check(perception, program, just_below), just_below)]
    assert numbers == list(range(HEAD, just_below + AROUND + 1))


@pytest.mark.parametrize("line", [HEAD - 1, HEAD], ids=["decorator", "head"])
def test_a_place_that_is_a_function_shows_what_is_in_it(program, perception, line):
    numbers = [number for number, _ in shown(program, check(perception, program, line), line)]
    assert numbers == list(range(1, line + MOST_OF_FUNCTION + 1))


def test_a_short_function_is_shown_with_no_more_than_what_is_around(program, perception):
    numbers = [number for number, _ in shown(program, check(perception, program, LAST + 2), LAST + 2)]
    assert numbers == list(range(LAST + 2 - AROUND, LAST + 4))


def test_what_is_no_python_is_shown_without_functions(tmp_path, perception):
    path = tmp_path / "old.py"
    path.write_text(PROGRAM + "\nprint 'of another time'\n", encoding="utf-8")
    assert [number for number, _ in shown(path, check(perception, path, 30), 30)] == list(
        range(30 - AROUND, 30 + AROUND + 1)
    )
    assert functions_at(['"\\d"', "def f(:"], [2]) == []


def test_what_a_parser_warns_of_in_the_users_program_is_not_said_here():
    assert len(functions_at(["def f():", '    return "\\d"'], [2])) == 1


def test_only_what_was_kept_is_shown():
    kept = SourceText(file="train.py", first_line=5, lines=["a", "b"])
    for line, found in ((1, []), (5, ["a", "b"]), (6, ["a", "b"]), (7, []), (None, [])):
        assert [one.text for one in excerpt(Place(file="train.py", line=line), [kept])] == found
    assert excerpt(Place(file="other.py", line=5), [kept]) == []


def test_functions_are_kept_with_a_run(program, perception):
    sources = read_sources(check(perception, program, 30))
    assert unpack(pack(Attachments(sources=sources))).sources == sources


def test_the_page_holds_the_lines_without_its_script(program, perception):
    document = check(perception, program, 30)
    page = html.page(document, Attachments(sources=read_sources(document)))
    static = page.partition("<main")[2].partition("<script")[0]
    assert '<span class="marked"><i>30</i>        row_30 = self.rows[30]' in static
    assert f"<i>{HEAD}</i>    def __getitem__(self, item):" in static
