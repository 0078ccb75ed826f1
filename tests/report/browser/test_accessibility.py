"""Every page of a rich check as axe-core sees it, in both themes; contrast, focus and motion."""

from __future__ import annotations

import json
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

GRAVE = {"serious", "critical"}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""What a theme alone can break: both show the same elements."""


@pytest.fixture(scope="module")
def case(rich):
    return rich()


@pytest.fixture(scope="module")
def axe():
    module = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    return module.Axe()


def faults(axe: Any, page: Any, rules: dict[str, Any] = RULES) -> list[str]:
    violations = axe.run(page, options=rules).response["violations"]
    return [
        f"{violation['id']}: {json.dumps(node['target'])} {node['any'][0]['message'] if node['any'] else violation['help']}"
        for violation in violations
        if violation["impact"] in GRAVE
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize(
    "dark",
    [pytest.param(False, id="light"), pytest.param(True, id="dark", marks=pytest.mark.exhaustive)],
)
def test_no_page_has_a_grave_fault(open_page, settled, case, axe, dark):
    page = open_page(*case, dark=dark)
    wrong = {}
    for name in [link.get_attribute("href") for link in page.locator("nav.pages a").all()]:
        page.evaluate("name => { location.hash = name }", name)
        page.wait_for_function("name => '#/' + document.body.dataset.shown == name", arg=name)
        found = faults(axe, settled(page), COLOURS if dark else RULES)
        if found:
            wrong[name] = found
    assert wrong == {}


def test_help_has_no_grave_fault(open_page, perception, axe):
    page = open_page(perception)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert faults(axe, page) == []


def test_the_document_without_its_script_has_no_grave_fault(open_page, case, axe):
    page = open_page(*case)
    page.evaluate(
        "document.querySelectorAll('.elsewhere').forEach(part => part.classList.remove('elsewhere'))"
    )
    assert faults(axe, page) == []


def test_first_key_reaches_the_result(open_page, perception):
    page = open_page(perception)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    expect(page.locator("body")).to_have_attribute("data-shown", "overview")


def test_focus_is_seen(open_page, perception):
    page = open_page(perception)
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement == document.body"):
            break  # behind the last of the page
        style = page.evaluate(
            "(({outlineStyle, outlineWidth}) => [outlineStyle, outlineWidth])(getComputedStyle(document.activeElement))"
        )
        assert style[0] != "none", page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        assert style[1] != "0px"


def test_nothing_moves_for_those_who_want_no_motion(open_page, case):
    page = open_page(*case)
    moving = page.evaluate(
        "[...document.querySelectorAll('*')].filter(one => { const style = getComputedStyle(one);"
        "return style.animationName != 'none' || parseFloat(style.transitionDuration) > 0.01 })"
        ".map(one => one.outerHTML.slice(0, 80))"
    )
    assert moving == []
