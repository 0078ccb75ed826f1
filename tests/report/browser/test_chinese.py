"""How much English is left in Chinese pages of five documents: names and code, and little else."""

from __future__ import annotations

import re

import pytest
from representative import every

from recorded import checked

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.slow  # a real browser per test

PROGRAMS = ("broken_perception", "item_each_step", "rows", "slow_loader", "memory_churn")
MOST_WORDS = 45
"""Of sentences: what is left are words out of the program and of torch beside them, such as names of functions."""

TEXTS = """() => {
  const apart = "code, pre, kbd, script, style, svg, .controls, .target, .brand, .place, .explained, tbody th, [hidden], .elsewhere";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const { parentElement: above } = node;
    if (above !== null && above.closest(apart) === null && above.checkVisibility()) found.push(node.nodeValue.trim());
  }
  return found;
}"""
WORD = re.compile(r"(?<![\w./:_\-–×=])[a-z]{3,}(?![\w./:_(\-=]|\.\w)")
PROPER = frozenset(
    [
        "dropout",
        "kernel",
        "worker",
        "eager",
        "rank",
        "guard",
        "token",
        "autocast",
        "lever",
        "torch",
        "module",
        "object",
        "method",
        "built",
        "type",
        "item",
    ]
)


def english_in(text: str) -> list[str]:
    """Words of an English sentence; a text with a path or a call in it is a name."""
    return (
        []
        if re.search(r"\.py\b|<|\w=|::", text)
        else [word for word in WORD.findall(text) if word not in PROPER]
    )


@pytest.mark.parametrize("program", every(5, PROGRAMS))
def test_little_english_is_left_in_a_chinese_page(open_page, settled, program):
    page = open_page(checked(program), locale="zh-CN")
    page.wait_for_function("document.documentElement.lang === 'zh-CN'")
    left: dict[str, list[str]] = {}
    for link in page.locator("nav.pages a").all():
        link.click()
        for text in settled(page).evaluate(TEXTS):
            if words := english_in(text):
                left[text] = words
    assert sum(map(len, left.values())) <= MOST_WORDS, left
