"""The dashboard in a real browser: silent on its console, live without being loaded again, and readable without script."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from pyrometer.store.running import Announcement

pytestmark = pytest.mark.slow  # a real browser per test

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
HOSTILE = "</script><img src=x onerror=alert(1)>.py:work"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def console() -> list[str]:
    """What pages complained about; a test that expects something takes it out."""
    return []


@pytest.fixture
def visit(chromium, server, console):
    """Opens the dashboard with its token; more options go to the browser context."""
    contexts, foreign = [], []

    def opened(address: str = "/", *, width: int = 1280, **options: Any) -> Any:
        context = {"viewport": {"width": width, "height": 800}, "locale": "en-GB", "reduced_motion": "reduce"}
        contexts.append(chromium.new_context(**context | options))
        page = contexts[-1].new_page()
        page.set_default_timeout(20_000)
        page.on(
            "console", lambda said: console.append(said.text) if said.type in {"error", "warning"} else None
        )
        page.on("pageerror", lambda error: console.append(f"uncaught: {error}"))
        page.on("request", lambda asked: foreign.append(asked.url) if not own(asked.url) else None)
        page.goto(server.url)
        if address != "/":
            page.goto(server.origin + address)
        return page

    def own(url: str) -> bool:
        return url.startswith(server.origin) or re.match(r"(data|blob):", url) is not None

    yield opened
    for context in contexts:
        context.close()
    assert console == []
    assert foreign == []


def rows(page) -> list[str]:
    return page.locator("tr[data-run]").evaluate_all("rows => rows.map(row => row.dataset.run)")


def until_rows(page, count: int) -> None:
    """Wait until the list shows so many runs; the pages' own policy forbids to wait for a text of script."""
    from playwright.sync_api import expect

    expect(page.locator("tr[data-run]")).to_have_count(count, timeout=20_000)


def stay(page) -> None:
    """Mark the page, so that it can be told from one that was loaded again."""
    page.evaluate("window.marked = true")


def stayed(page) -> bool:
    return page.evaluate("window.marked === true")


def test_the_token_leaves_the_address(visit, server):
    page = visit()
    assert page.url == server.origin + "/"
    assert page.evaluate("document.cookie") == ""


def test_from_the_list_to_a_report_and_back(visit, save):
    runs = [save(age_s=60 * i).id for i in range(3)]
    page = visit()
    assert rows(page) == runs
    page.locator("tr[data-run]").nth(1).get_by_role("link", name="model.py:work", exact=True).click()
    page.wait_for_url(f"**/runs/{runs[1]}")
    assert page.locator("nav.pages").is_visible()
    page.get_by_role("link", name="All runs").click()
    page.wait_for_url("**/")
    assert rows(page) == runs


def test_the_search_narrows_the_list_as_it_is_typed(visit, save):
    run, other = save().id, save(target="other.py:work", kind="check", age_s=60).id
    page = visit()
    stay(page)
    page.keyboard.press("/")
    page.keyboard.type("other")
    until_rows(page, 1)
    assert rows(page) == [other]
    assert page.url.endswith("/?q=other")
    page.keyboard.press("Escape")
    until_rows(page, 2)
    page.locator("select[name=kind]").select_option("bench")
    until_rows(page, 1)
    assert rows(page) == [run]
    assert stayed(page)
    page.reload()
    assert rows(page) == [run]


def test_two_runs_are_compared_also_when_the_list_shows_one_of_them_only(visit, save):
    a = save(0.002, target="one.py:work", age_s=60).id
    b = save(0.001, target="two.py:work").id
    page = visit()
    page.locator(f"tr[data-run='{a}'] input[name=a]").check()
    page.locator("input[type=search]").fill("two.py")
    until_rows(page, 1)
    page.locator(f"tr[data-run='{b}'] input[name=b]").check()
    page.get_by_role("button", name="Compare A with B").click()
    page.wait_for_url(f"**/compare?*a={a}*")
    assert f"b={b}" in page.url
    assert "two targets" in page.locator("h1:visible").first.inner_text().lower()


def test_a_new_run_joins_the_list_without_loading_it_again(visit, save):
    old = save(age_s=60).id
    page = visit()
    page.get_by_text("Live: new runs appear by themselves").wait_for()
    stay(page)
    page.locator("input[name=a]").first.check()
    page.locator("tr[data-run] td.target a").first.focus()
    new = save().id
    page.locator(f"tr[data-run='{new}']").wait_for()
    assert rows(page) == [new, old]
    assert stayed(page)
    assert page.locator("input[name=a]:checked").evaluate("input => input.value") == old
    assert page.evaluate("document.activeElement.closest('tr').dataset.run") == old
    assert page.locator("#num-runs").inner_text() == "2 runs"
    assert "1 new" in page.locator(".lamp").inner_text()


def test_a_run_under_way_is_shown_until_it_is_stored(visit, save, folder):
    save(age_s=60)
    page = visit()
    stay(page)
    with Announcement(folder, kind="bench", target="model.py:work") as announcement:
        announcement.tell(0.25, "measuring", num_samples=1234, step_s=0.002)
        row = page.locator(".running")
        row.wait_for()
        assert "measuring · 1,234 samples · last step 2.00 ms" in row.inner_text()
        assert row.locator("progress").get_attribute("value") == "0.25"
        announcement.tell(1.0, "tracing a few steps")
        page.get_by_text("tracing a few steps").wait_for()
        assert row.locator("progress").get_attribute("value") is None  # all is shared out, and more follows
        new = save().id
    row.wait_for(state="detached")
    assert rows(page)[0] == new
    assert stayed(page)


def test_a_page_of_a_run_under_way_draws_its_course_and_becomes_the_report(visit, save, folder, monkeypatch):
    from pyrometer.store import running

    monkeypatch.setattr(running, "LEAST_S", 0.05)
    save(age_s=60)
    with Announcement(folder, kind="bench", target="model.py:work") as announcement:
        for number in range(5):
            announcement.tell(
                0.1 * number, f"block {number}", num_samples=number, step_s=0.002 + number * 1e-4
            )
            announcement._written_s -= 1
        page = visit("/running/" + announcement._path.stem)
        page.locator("figure svg path.course").wait_for()
        new = save().id
    page.wait_for_url(f"**/runs/{new}")


def test_a_server_that_has_ended_is_said(visit, save, server, console):
    save()
    page = visit()
    page.get_by_text("Live: new runs appear by themselves").wait_for()
    server.dashboard.stop()
    page.get_by_text("Not connected; trying again").wait_for()
    console.clear()  # of the browser: the connection was refused


def test_the_policy_is_in_force(visit, save, console):
    run = save()
    page = visit()
    for address in ("/", f"/runs/{run.id}"):
        page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/")[2] + address)
        page.evaluate(
            """() => {
                const script = document.createElement("script");
                script.textContent = "window.broken = 1";
                document.body.append(script);
                const image = document.createElement("img");
                image.setAttribute("onerror", "window.broken = 2");
                image.src = "/x.png";
                document.body.append(image);
            }"""
        )
        page.wait_for_timeout(300)
        assert page.evaluate("window.broken") is None
    assert page.evaluate("fetch('/api/runs').then(() => 'answered', () => 'refused')") == "refused"
    assert any("Content Security Policy" in said for said in console)
    console.clear()


def test_hostile_names_are_text_here_too(visit, save, folder):
    save(target=HOSTILE)
    page = visit()
    with Announcement(folder, kind="bench", target=HOSTILE) as announcement:
        announcement.tell(0.5, HOSTILE)
        page.locator(".running").wait_for()
        save(target=HOSTILE, age_s=60)
        until_rows(page, 2)
        assert page.locator("img").count() == 0
        assert page.locator("td.target").first.inner_text() == HOSTILE


def test_all_of_it_can_be_read_without_script(visit, save):
    a, b = save(0.002, age_s=60).id, save(0.001).id
    save(target="other.py:work", age_s=90)
    page = visit(java_script_enabled=False)
    page.locator("input[type=search]").fill("model.py")
    page.get_by_role("button", name="Search", exact=True).click()
    page.wait_for_url("**/?q=model.py*")
    assert page.locator("tr[data-run]").count() == 2
    page.locator(f"tr[data-run='{a}'] input[name=a]").check()
    page.locator(f"tr[data-run='{b}'] input[name=b]").check()
    page.get_by_role("button", name="Compare A with B").click()
    page.wait_for_url("**/compare?*")
    assert page.get_by_text("not yet proven").first.is_visible()


@pytest.mark.parametrize("address", ["/", "/targets", "/targets?target=model.py:work", "/nowhere"])
@pytest.mark.parametrize("width", [380, 1600])
def test_nothing_runs_over_the_side(visit, save, console, address, width):
    for number in range(8):
        save(age_s=60 * number)
    save(target="a/very/long/path/" * 12 + "model.py:work")
    page = visit(address, width=width, color_scheme="dark")
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    console[:] = [said for said in console if "404" not in said]


def test_the_pages_speak_chinese(visit, save):
    save()
    page = visit()
    page.get_by_role("button", name="中文").click()
    page.get_by_role("link", name="目标", exact=True).wait_for()
    page.get_by_text("新的运行会自动出现").wait_for()
    save(age_s=60)
    until_rows(page, 2)
    assert page.get_by_role("columnheader", name="趋势").is_visible()
    assert page.get_by_role("button", name="比较 A 与 B").is_visible()


@pytest.mark.parametrize("address", ["/", "/targets", "/targets?target=model.py:work"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(visit, save, folder, address, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for number in range(3):
        save(0.002 + number * 1e-3, age_s=60 * number)
    with Announcement(folder, kind="bench", target="model.py:work") as announcement:
        announcement.tell(0.25, "measuring", num_samples=7, step_s=0.002)
        page = visit(address, color_scheme=scheme)
        page.wait_for_timeout(800)
        found = axe.run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
