"""What a check of a real program says is said by terminal, Markdown and HTML alike."""

from __future__ import annotations

import html as markup
import io
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from pyrometer.record import to_dict
from pyrometer.report import markdown, terminal
from recorded import CHECKED, FILES, checked, page_of


def words(text: str) -> str:
    """Letters and digits only: renderers break lines and escape in their own ways."""
    return re.sub(r"[^\w]+", " ", text).strip()


def in_page(program: str) -> str:
    return markup.unescape(re.sub("<[^>]+>", "", page_of(program)))


def in_markdown(program: str) -> str:
    return re.sub(r"\\(.)", r"\1", markdown.render_document("check", to_dict(checked(program))))


def in_terminal(program: str) -> str:
    console = Console(file=io.StringIO(), width=1000)
    console.print(terminal.render_document("check", to_dict(checked(program))))
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("render", [in_page, in_markdown, in_terminal])
@pytest.mark.parametrize("program", CHECKED)
def test_what_to_do_first_is_told_with_its_place(program: str, render: Callable[[str], str]) -> None:
    document = checked(program)
    first = next(
        finding
        for finding in document.diagnosis.findings
        if finding.severity != "info" and finding.where.line is not None
    )
    text = render(program)
    assert first.code in text
    assert words(first.message) in words(text)
    assert f"{FILES[program].name}:{first.where.line}" in text
