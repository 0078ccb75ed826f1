"""The dashboard in a real browser: silent on its console, live without being loaded again, and readable without script."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from representative import every

from pyrometer.histogram import Histogram
from pyrometer.monitor.tick import Calls, Source, Tick
from pyrometer.record import to_json
from pyrometer.store.running import Announcement

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

HOSTILE = "</script><img src=x onerror=alert(1)>.py:work"


@pytest.fixture
def console() -> list[str]:
    """What pages complained about; a test that expects something takes it out."""
    return []


@pytest.fixture
def visit(new_page, settled, server, console):
    """Opens the dashboard with its token; more options go to the browser context."""
    pages, foreign = [], []

    def opened(address: str = "/", *, width: int = 1280, **options: Any) -> Any:
        page = new_page(viewport={"width": width, "height": 800}, **options)
        pages.append(page)
        page.on(
            "console", lambda said: console.append(said.text) if said.type in {"error", "warning"} else None
        )
        page.on("pageerror", lambda error: console.append(f"uncaught: {error}"))
        page.on("request", lambda asked: foreign.append(asked.url) if not own(asked.url) else None)
        page.goto(server.url)
        if address != "/":
            page.goto(server.origin + address)
        return settled(page) if options.get("java_script_enabled", True) else page

    def own(url: str) -> bool:
        return url.startswith(server.origin) or re.match(r"(data|blob):", url) is not None

    yield opened
    for page in pages:
        page.close()
    assert console == []
    assert foreign == []


def lists(page, runs: list[str]) -> None:
    """Wait until the list shows these runs, in this order."""
    rows = page.locator("tr[data-run]")
    expect(rows).to_have_count(len(runs))
    for place, run in enumerate(runs):
        expect(rows.nth(place)).to_have_attribute("data-run", run)


def stay(page) -> None:
    """Mark the page, so that it can be told from one that was loaded again."""
    page.evaluate("window.marked = true")


def stayed(page) -> bool:
    return page.evaluate("window.marked === true")


@pytest.mark.exhaustive
def test_the_token_leaves_the_address(visit, server):
    page = visit()
    expect(page).to_have_url(server.origin + "/")
    assert page.evaluate("document.cookie") == ""


def test_from_the_list_to_a_report_and_back(visit, save):
    runs = [save(age_s=60 * i).id for i in (2, 1, 0)][::-1]
    page = visit()
    lists(page, runs)
    page.locator("tr[data-run]").nth(1).get_by_role("link", name="model.py:work", exact=True).click()
    page.wait_for_url(f"**/runs/{runs[1]}")
    expect(page.locator("nav.pages")).to_be_visible()
    page.get_by_role("link", name="All runs").click()
    page.wait_for_url("**/")
    lists(page, runs)


def test_the_search_narrows_the_list_as_it_is_typed(visit, save):
    other, run = save(target="other.py:work", kind="check", age_s=60).id, save().id
    page = visit()
    stay(page)
    page.keyboard.press("/")
    expect(page.locator("input[type=search]")).to_be_focused()
    page.keyboard.type("other")
    lists(page, [other])
    expect(page).to_have_url(re.compile(r"/\?q=other$"))
    page.keyboard.press("Escape")
    lists(page, [run, other])
    page.locator("select[name=kind]").select_option("bench")
    lists(page, [run])
    assert stayed(page)
    expect(page).to_have_url(re.compile("kind=bench"))
    page.reload()
    lists(page, [run])


def test_two_runs_are_compared_also_when_the_list_shows_one_of_them_only(visit, save):
    a = save(0.002, target="one.py:work", age_s=60).id
    b = save(0.001, target="two.py:work").id
    page = visit()
    page.locator(f"tr[data-run='{a}'] input[name=a]").check()
    page.locator("input[type=search]").fill("two.py")
    lists(page, [b])
    page.locator(f"tr[data-run='{b}'] input[name=b]").check()
    page.get_by_role("button", name="Compare A with B").click()
    page.wait_for_url(f"**/compare?*a={a}*")
    expect(page).to_have_url(re.compile(f"b={b}"))
    expect(page.locator("h1:visible").first).to_contain_text("two targets", ignore_case=True)


def test_a_new_run_joins_the_list_without_loading_it_again(visit, save):
    old = save(age_s=60).id
    page = visit()
    page.get_by_text("Live: new runs appear by themselves").wait_for()
    stay(page)
    page.locator("input[name=a]").first.check()
    page.locator("tr[data-run] td.target a").first.focus()
    new = save().id
    lists(page, [new, old])
    assert stayed(page)
    expect(page.locator("input[name=a]:checked")).to_have_value(old)
    expect(page.locator(f"tr[data-run='{old}'] td.target a").first).to_be_focused()
    expect(page.locator("#num-runs")).to_have_text("2 runs")
    expect(page.locator(".lamp")).to_contain_text("1 new")


def test_a_run_under_way_is_shown_until_it_is_stored(visit, save, folder):
    old = save(age_s=60).id
    page = visit()
    stay(page)
    with Announcement(folder, kind="bench", target="model.py:work") as announcement:
        announcement.tell(0.25, "measuring", num_samples=1234, step_s=0.002)
        row = page.locator(".running")
        expect(row).to_contain_text("measuring · 1,234 samples · last step 2.00 ms")
        expect(row.locator("progress")).to_have_attribute("value", "0.25")
        announcement.tell(1.0, "tracing a few steps")
        expect(row).to_contain_text("tracing a few steps")
        # all is shared out, and more follows
        expect(row.locator("progress")).not_to_have_attribute("value", re.compile(""))
        new = save().id
    expect(row).to_have_count(0)
    lists(page, [new, old])
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
        page.wait_for_timeout(300)  # for what must not come
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
        expect(page.locator("tr[data-run]")).to_have_count(2)
        expect(page.locator("img")).to_have_count(0)
        expect(page.locator("td.target").first).to_have_text(HOSTILE)


def test_all_of_it_can_be_read_without_script(visit, save):
    a, b = save(0.002, age_s=60).id, save(0.001).id
    save(target="other.py:work", age_s=90)
    page = visit(java_script_enabled=False)
    page.locator("input[type=search]").fill("model.py")
    page.get_by_role("button", name="Search", exact=True).click()
    page.wait_for_url("**/?q=model.py*")
    lists(page, [b, a])
    page.locator(f"tr[data-run='{a}'] input[name=a]").check()
    page.locator(f"tr[data-run='{b}'] input[name=b]").check()
    page.get_by_role("button", name="Compare A with B").click()
    page.wait_for_url("**/compare?*")
    expect(page.get_by_text("not yet proven").first).to_be_visible()


@pytest.mark.parametrize("address", every(2, ["/", "/nowhere", "/targets", "/targets?target=model.py:work"]))
@pytest.mark.parametrize("width", [380, pytest.param(1600, marks=pytest.mark.exhaustive)])
def test_nothing_runs_over_the_side(visit, save, console, address, width):
    for number in range(8):
        save(age_s=60 * number)
    save(target="a/very/long/path/" * 12 + "model.py:work")
    page = visit(address, width=width, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    console[:] = [said for said in console if "404" not in said]


def test_the_pages_speak_chinese(visit, save):
    save()
    page = visit()
    page.get_by_role("button", name="中文").click()
    page.get_by_role("link", name="目标", exact=True).wait_for()
    page.get_by_text("新的运行会自动出现").wait_for()
    save(age_s=60)
    expect(page.locator("tr[data-run]")).to_have_count(2)
    expect(page.get_by_role("columnheader", name="趋势")).to_be_visible()
    expect(page.get_by_role("button", name="比较 A 与 B")).to_be_visible()
    expect(page.locator("h1.words")).to_have_text("本周没有变慢的目标")
    expect(page.get_by_role("searchbox")).to_have_attribute(
        "placeholder", "目标、结果、提交、运行编号或发现的代码"
    )


@pytest.mark.exhaustive
def test_a_comparison_leads_to_its_runs_and_can_be_turned_round(visit, save):
    a, b = save(0.002, age_s=60).id, save(0.001).id
    page = visit(f"/runs/{b}")
    page.get_by_role("link", name="Compare with the run before").click()
    page.wait_for_url(f"**/compare?a={a}&b={b}")
    page.get_by_role("link", name="Swap A and B").click()
    page.wait_for_url(f"**/compare?a={b}&b={a}")
    page.get_by_role("link", name="Run A", exact=True).click()
    page.wait_for_url(f"**/runs/{b}")


@pytest.mark.parametrize("address", ["/", "/targets", "/targets?target=model.py:work"])
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.exhaustive)])
def test_it_is_accessible(visit, save, folder, address, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for number in range(3):
        save(0.002 + number * 1e-3, age_s=60 * number)
    with Announcement(folder, kind="bench", target="model.py:work") as announcement:
        announcement.tell(0.25, "measuring", num_samples=7, step_s=0.002)
        page = visit(address, color_scheme=scheme)
        if address == "/":
            expect(page.locator(".running")).to_be_visible()
        violations = axe.run(page).response["violations"]
    assert [
        (violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations
    ] == []


def test_what_runs_in_production_is_drawn_as_it_comes_and_again_after_a_restart(
    new_page, settled, folder, serve, tmp_path
):
    lines = tmp_path / "monitor" / "ticks-7.jsonl"
    lines.parent.mkdir()

    def tell(at_s: float, alarms: list[str]) -> None:
        calls = {HOSTILE: Calls(num_ended=9, num_failed=1, latency_s=Histogram.of([0.01] * 9))}
        with lines.open("ab") as file:
            told = Tick(source=Source(model=HOSTILE, pid=7), at_s=at_s, calls=calls, alarms=alarms)
            file.write(to_json(told) + b"\n")

    complaints: list[str] = []
    page, now_s = new_page(viewport={"width": 1280, "height": 900}), time.time()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for second in range(30):
        tell(now_s - 30 + second, [])
    with serve(folder, monitor=str(lines.parent)) as server:
        page.goto(server.url)
        page.goto(server.origin + "/monitor")
        settled(page)
        expect(page.locator("path.over-live.p99")).to_have_count(1)
        expect(page.locator(".figures.now")).to_contain_text("10.0 ms")
        tell(now_s, ["infer.latency/cusum"])
        expect(page.locator(".alarms li")).to_contain_text("infer.latency/cusum")
        expect(page.locator(".lamp.live")).to_be_visible()
        port = int(server.origin.rsplit(":", 1)[1])
    expect(page.locator(".lamp.lost")).to_be_visible()
    with serve(folder, monitor=str(lines.parent), port=port) as server:
        expect(page.locator(".lamp.ended")).to_be_visible(timeout=30_000)
        page.context.new_page().goto(server.url)  # the new token, for this browser
        expect(page.locator(".lamp.live")).to_be_visible(timeout=30_000)
    assert page.locator("img[src=x]").count() == 0
    assert complaints == []
