"""What is generated is up to date, and what is written by hand about traces names everything that exists."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import pyrometer as pm
from pyrometer.report.facts import trace as chapters_of_rank
from pyrometer.report.facts import trace_device as chapters_of_device
from pyrometer.report.facts import trace_diff as chapters_of_diff
from pyrometer.report.facts import trace_job as chapters_of_job
from pyrometer.trace import schema
from pyrometer.trace.analysis.registry import analyses
from pyrometer.trace.analysis.what_if import KINDS
from pyrometer.trace.export.formats import FORMATS
from pyrometer.trace.health import contents, recording, starting, times
from pyrometer.trace.sql import VIEWS

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))  # its neighbour is imported as when it is run
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "trace-analyses.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def guide() -> str:
    return (DOCS / "trace.md").read_text(encoding="utf-8")


def test_the_reference_of_analyses_is_up_to_date(generate, page):
    assert page == generate.analyses_page(), "run `make docs`"


def test_the_reference_of_rules_is_up_to_date(generate):
    written = {path: path.read_text(encoding="utf-8") for path in (DOCS / "rules").glob("*.md")}
    assert written == dict(generate.rule_reference.pages(DOCS / "rules")), "run `make docs`"


def test_every_analysis_table_and_view_is_described(page):
    headings = set(re.findall(r"^##+ (\w+)$", page, re.MULTILINE))
    assert {*analyses(), *schema.TABLES, "links", "steps"} <= headings
    assert set(VIEWS) <= set(re.findall(r"^\| `(\w+)` \|", page.split("## Views")[1], re.MULTILINE))


def test_descriptions_are_whole(page):
    assert "None" not in page.split("## Kinds")[0]
    assert not re.search(r"\b(typing|Annotated|NoneType)\b", page)


def first_column(text: str, heading: str) -> set[str]:
    part = text.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]
    return {
        name
        for cell in re.findall(r"^\| (`.+?) \|", part, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", cell)
    }


def test_every_chapter_of_a_report_is_explained(guide):
    told = set()
    for heading in ("The report, chapter by chapter", "Several ranks", "Compare two traces"):
        told |= {name.lower() for name in first_column(guide, heading)}
    source = "\n".join(map(inspect.getsource, (chapters_of_rank, chapters_of_device, chapters_of_job)))
    slugs = set(re.findall(r'\bSection\(\s*"(\w+)"', source))
    slugs |= {"evidence", "parts", "nodes", "groups", "operators", "kernels", "findings"}
    assert len(slugs) > 20
    assert told == slugs
    assert all(
        f'"{slug}' in inspect.getsource(chapters_of_diff) for slug in ("evidence", "parts", "nodes", "groups")
    )


def test_every_health_code_is_explained(guide):
    source = "".join(inspect.getsource(module) for module in (recording, starting, times, contents))
    codes = set(re.findall(r'(?:code=|_limit\(\s*|else )"(\w+)"', source))
    codes |= set(re.findall(r'code="(\w+)" if', source))
    assert first_column(guide, "Health") == codes - {"warning", "info", "error", "high"}


def test_every_kind_of_change_and_every_format_is_explained(guide):
    assert first_column(guide, "What if") == set(KINDS)
    assert first_column(guide, "Exports") == set(FORMATS)


def test_every_public_name_is_documented():
    text = (DOCS / "library.md").read_text(encoding="utf-8")
    assert [name for name in dir(pm) if name != "__version__" and not re.search(rf"\b{name}\b", text)] == []


def test_the_reference_of_levers_is_up_to_date(generate):
    assert (DOCS / "levers.md").read_text(encoding="utf-8") == generate.lever_reference.page(), (
        "run `make docs`"
    )
