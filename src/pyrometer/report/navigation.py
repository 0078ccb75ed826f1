"""The pages into which the script divides a document, what each is called, and how one leads to another.

A chapter says by `data-page` on which pages it stands. Each page has an anchor of the form `#/timeline`, which is an
ordinary anchor without the script, and its address with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.report.widgets import InteractivePart

PAGES = {
    "overview": "Overview",
    "comparison": "Comparison",
    "findings": "Findings",
    "timeline": "Timeline",
    "flame": "Flame graph",
    "operators": "Operators",
    "roofline": "Roofline",
    "idle": "Idle & sync",
    "ranks": "Ranks",
    "memory": "Memory",
    "compile": "Compile",
    "data": "Data loading",
    "quality": "Measurement",
    "environment": "Environment",
    "history": "History",
}
"""All pages in their order, with their titles."""

REPLACED = {
    "breaks": "breaks",
    "compile": "recompiles compiling-bar",
    "graphs": "graph-pictures",
    "icicle": "tree",
    "idle": "idle gaps sync",
    "loading": "loading data-part",
    "memory": "ledger-bar ledger held end fragmentation leak",
    "operators": "operators lines modules kernels copies",
    "roofline": "roofline",
    "samples": "histogram strips",
    "steps": "compiling-steps",
}
"""Interactive parts, and the chapters that say the same as text: they are folded where the part is shown."""

_PLACED = re.compile(r'<\w+(?: [^<>]*)? data-page="([^"]+)"')
_NAMED = re.compile(r'(?<= )(id|aria-labelledby|aria-describedby)="([^"]*)"')
_TO_PAGE = re.compile(r'<a class="to-page" href="#(/\w+|[\w-]+)"[^<>]*>.*?</a>', re.DOTALL)


def replaced(slug: str, widgets: Iterable[InteractivePart], rank: str = "") -> str:
    """The attribute of a chapter that an interactive part of the same page stands for; nothing where none does.

    Args:
        slug: the chapter.
        widgets: the interactive parts of the page.
        rank: of the chapter, where there is one for each: a part of that rank must be there.

    >>> replaced("roofline", [InteractivePart("roofline", "roofline", "roofline/1")], "1"), replaced("roofline", [])
    (' data-static', '')
    """
    stands = any(
        slug in REPLACED.get(place.widget, "").split()
        and place.block.partition("/")[2] == (rank or place.block.partition("/")[2])
        for place in widgets
    )
    return " data-static" if stands else ""


class Entry(NamedTuple):
    """A page of a document."""

    page: str
    title: str
    drawn: bool  # holds nothing but interactive parts, and so is empty without the script


class Assembled(NamedTuple):
    """The chapters of a document, ready to be divided."""

    body: Markup
    entries: list[Entry]


def assemble(body: str, widgets: Iterable[str] = ()) -> Assembled:
    """Give each page its anchor, and every element an id of its own; links to pages that are not there become nothing.

    Args:
        body: the chapters, as our templates made them.
        widgets: the pages of the interactive parts that stand before them.

    >>> chapters = '<section data-page="memory"><h2 id="modules"></h2></section><section data-page="compile"><h2 id="modules">'
    >>> found = assemble(chapters, ["flame"])
    >>> [entry.title for entry in found.entries]
    ['Flame graph', 'Memory', 'Compile']
    >>> str(found.body).count('id="modules"'), str(found.body).count('id="compile-modules"')
    (1, 1)
    """
    drawn = set(widgets)
    written = {page for pages in _PLACED.findall(body) for page in pages.split()}
    entries = [
        Entry(page, title, page not in written)
        for page, title in PAGES.items()
        if page in written or page in drawn
    ]
    there = {f"/{page}" for page in written | drawn} | {
        name for kind, name in _NAMED.findall(body) if kind == "id"
    }
    text = _TO_PAGE.sub(lambda link: link[0] if link[1] in there else "", body)
    text = "".join(_mark(entry.page) for entry in entries if entry.drawn) + _anchored(_distinct(text))
    return Assembled(Markup(text), entries)  # noqa: S704 - made by our templates


def _distinct(body: str) -> str:
    """Chapters of several areas may share a slug: the first keeps it, later ones put their page before it."""
    taken: set[str] = set()
    begins = [match.start() for match in _PLACED.finditer(body)]
    parts = [body[: begins[0]]] if begins else [body]
    parts += [body[a:b] for a, b in zip(begins, [*begins[1:], len(body)], strict=True)]
    return "".join(_renamed(part, taken) for part in parts)


def _renamed(part: str, taken: set[str]) -> str:
    placed = _PLACED.match(part)
    area = placed[1].split()[-1] if placed else "part"
    names = {}
    for attribute, name in _NAMED.findall(part):
        if attribute == "id":
            names[name] = _free(name, area, taken)
            taken.add(names[name])
    return _NAMED.sub(lambda match: f'{match[1]}="{names.get(match[2], match[2])}"', part)


def _free(name: str, area: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    fresh, number = f"{area}-{name}", 2
    while fresh in taken:
        fresh, number = f"{area}-{name}-{number}", number + 1
    return fresh


def _anchored(body: str) -> str:
    """A mark before the first element of each page."""
    seen: set[str] = set()

    def mark(match: re.Match[str]) -> str:
        first = [page for page in dict.fromkeys(match[1].split()) if page not in seen]
        seen.update(first)
        return "".join(map(_mark, first)) + match[0]

    return _PLACED.sub(mark, body)


def _mark(page: str) -> str:
    return f'<span id="/{page}"></span>'
