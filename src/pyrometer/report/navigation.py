"""Which page of the interactive report each chapter of a trace stands on; those of other areas have a page of their own."""

from __future__ import annotations

_CHAPTERS = {
    "overview timeline": "breakdown",
    "timeline": "steps path",
    "findings": "gains",
    "flame": "tree",
    "operators": "operators lines modules kernels copies phases",
    "roofline": "roofline",
    "idle": "idle gaps sync launches",
    "memory": "allocations",
    "ranks": "ranks matched stragglers collectives pipeline",
    "quality": "health capture",
    "comparison": "evidence parts groups changed nodes difference",
}
_PAGES = {slug: page for page, slugs in _CHAPTERS.items() for slug in slugs.split()}


def page_of(slug: str) -> str:
    """The pages, separated by spaces, that show a chapter of a trace.

    >>> page_of("breakdown"), page_of("idle")
    ('overview timeline', 'idle')
    """
    return _PAGES.get(slug, "operators")
