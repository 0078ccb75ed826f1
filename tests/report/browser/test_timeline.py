"""The timeline in a browser: it draws, answers to pointer and keys, keeps the address, and exports what it shows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import polars as pl
import pytest

from pyrometer.report.attachments import Attachments
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import RankTrace
from pyrometer.trace.view.record import StepView
from pyrometer.trace.view.view import view_trace

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

HOSTILE = "</script><img onerror=alert(1) src=x>"
KERNEL = "void gemm<float, 4>(float*)"
CANVAS = ".timeline-view canvas"


def recorded(folder: Path, rank: int = 0, *, kernels: int = 40) -> RankTrace:
    """A step of some operators, each with a launch and a kernel; one has a hostile name."""
    events: list[dict[str, Any]] = []

    def add(cat: str, name: str, ts: float, dur: float, *, pid: int = 9, tid: int = 9, **args: Any) -> None:
        events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        )

    add("user_annotation", "ProfilerStep#0", 1000, 100 * kernels)
    for i in range(kernels):
        at = 1000 + 100 * i
        add("cpu_op", HOSTILE if i == 5 else "aten::mm", at + 2, 30.123)
        add("cuda_runtime", "cudaLaunchKernel", at + 10, 6.5, correlation=i + 1)
        add("kernel", KERNEL, at + 40, 50.125, pid=0, tid=7, correlation=i + 1, device=0, stream=7)
    path = folder / f"rank{rank}.json"
    path.write_text(json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": events}), encoding="utf-8")
    return read_trace(path).ranks[0]


@pytest.fixture
def trace(tmp_path: Path) -> RankTrace:
    return recorded(tmp_path)


@pytest.fixture
def timeline(open_page: Any, settled: Any, perception: Any, trace: RankTrace) -> Any:
    """Opens the page of the timeline; more parameters follow `#/timeline`."""

    def opened(parameters: str = "", **options: Any) -> Any:
        page = open_page(
            perception,
            Attachments(traces=[view_trace(trace)]),
            fragment=f"#/timeline{parameters}",
            **options,
        )
        page.locator(CANVAS).wait_for()
        return settled(page)

    return opened


def tells(page: Any, text: str | re.Pattern[str]) -> None:
    """Wait until what is selected is described so."""
    expect(page.locator(".timeline-details")).to_contain_text(text)


def begins(name: str) -> re.Pattern[str]:
    return re.compile(rf"^\s*{re.escape(name)}")


def addresses(page: Any, said: Callable[[dict[str, str]], bool]) -> dict[str, str]:
    """The parameters of the address, once the page has written what is asked for."""

    def parameters(url: str) -> dict[str, str]:
        query = urlsplit(url).fragment.partition("?")[2]
        return {key: values[0] for key, values in parse_qs(query).items()}

    page.wait_for_url(lambda url: said(parameters(url)))
    return parameters(page.url)


def extent(parameters: dict[str, str]) -> int:
    """How much the address shows, in ns; 0 where it names no range."""
    return int(parameters.get("to", 0)) - int(parameters.get("from", 0))


# Pixels are read from a copy, since Chromium warns of a page whose own canvas is read again and again.
PIXELS = """(x, y, width) => { const canvas = document.querySelector('.timeline-view canvas');
    const copy = new OffscreenCanvas(width, 1).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, x, y * devicePixelRatio, width, 1, 0, 0, width, 1);
    return copy.getImageData(0, 0, width, 1).data; }"""


def draws(page: Any, x: int, y: int, colour: list[int]) -> None:
    """Wait until the canvas has this colour at a place."""
    page.wait_for_function(
        f"([x, y, colour]) => String([...({PIXELS})(x * devicePixelRatio, y, 1)]) == String(colour)",
        arg=[x, y, colour],
    )


def colours_of_row(page: Any, y: int) -> list[list[int]]:
    script = f"""y => {{ const {{ width }} = document.querySelector('.timeline-view canvas');
        const row = ({PIXELS})(0, y, width);
        return Array.from({{ length: width }}, (_, x) => [...row.slice(4 * x, 4 * x + 4)]); }}"""
    colours: list[list[int]] = page.evaluate(script, y)
    return colours


def test_draws_kernels_in_their_colour(timeline: Any) -> None:
    page = timeline("?from=40000&to=88000")

    draws(page, 400, 34 + 20 + 2, [0, 0x72, 0xB2, 255])


@pytest.mark.exhaustive
def test_follows_the_theme(timeline: Any) -> None:
    page = timeline("?from=40000&to=88000")
    page.emulate_media(color_scheme="dark")

    draws(page, 400, 34 + 20 + 2, [0x3A, 0x93, 0xD4, 255])


@pytest.mark.exhaustive
def test_merged_slices_look_as_busy_as_they_are(
    open_page: Any, settled: Any, perception: Any, tmp_path: Path
) -> None:
    view = view_trace(recorded(tmp_path, kernels=4000), max_slices=1000)
    page = open_page(
        perception, Attachments(traces=[view]), fragment="#/timeline?from=1000000&to=1100000&find=gemm"
    )
    expect(page.get_by_text("4,000 matches")).to_be_visible()
    expect(page.get_by_text("merged slices are not searched")).to_be_visible()

    assert 100 < max(alpha for *_, alpha in colours_of_row(settled(page), 34 + 20 + 2)) < 220


@pytest.mark.exhaustive
def test_thousands_of_steps_are_marked(open_page: Any, settled: Any, perception: Any, tmp_path: Path) -> None:
    view = view_trace(recorded(tmp_path))
    steps = [StepView(name=f"ProfilerStep#{i}", start_ns=500 * i, end_ns=500 * i + 490) for i in range(6756)]
    page = open_page(
        perception, Attachments(traces=[msgspec.structs.replace(view, steps=steps)]), fragment="#/timeline"
    )
    page.locator(CANVAS).wait_for()

    row = [tuple(colour) for colour in colours_of_row(settled(page), 8)[400:440]]
    assert len(set(row)) >= 2


def test_a_click_tells_all_and_leads_to_the_launch(timeline: Any) -> None:
    page = timeline("?from=40000&to=88000")
    page.locator(CANVAS).click(position={"x": 400, "y": 34 + 28})
    for part in (KERNEL, "50.1 µs", "40 in 2.00 ms"):
        tells(page, part)

    page.get_by_role("button", name="Go to launch").click()
    tells(page, begins("cudaLaunchKernel"))
    tells(page, KERNEL)
    addresses(page, lambda said: said.get("select", "").isdigit())


def test_a_link_selects_and_searches(timeline: Any) -> None:
    page = timeline("?select=cudaLaunchKernel&find=mm")

    tells(page, begins("cudaLaunchKernel"))
    expect(page.locator("input[type=search]:visible").first).to_have_value("mm")
    expect(page.get_by_text("79 matches")).to_be_visible()


@pytest.mark.exhaustive
def test_following_a_link_on_the_page(timeline: Any) -> None:
    page = timeline()
    page.evaluate("location.hash = '#/timeline?select=aten::mm&from=0&to=500000'")

    tells(page, begins("aten::mm"))
    addresses(page, lambda said: said.get("to") == "500000" and said.get("select", "").isdigit())


def test_keys(timeline: Any, settled: Any) -> None:
    page = timeline()
    page.keyboard.press("w")
    closer = addresses(page, lambda said: int(said.get("from", 0)) > 0)
    settled(page).keyboard.press("d")
    addresses(page, lambda said: int(said.get("from", 0)) > int(closer["from"]))
    settled(page).keyboard.press("0")
    addresses(page, lambda said: said == {})

    settled(page).keyboard.press("/")
    search = page.locator("input[type=search]:visible").first
    expect(search).to_be_focused()
    search.fill("gemm")
    tools = page.locator(".explored .tools").first
    expect(tools).to_contain_text("40 matches")
    for key, place in (("Enter", 1), ("Shift+Enter", 40), ("Shift+Enter", 39)):
        settled(page)
        search.press(key)
        expect(tools).to_contain_text(f"{place} of 40")
    addresses(page, lambda said: said.get("find") == "gemm")

    search.press("Escape")
    expect(search).not_to_be_focused()
    settled(page).keyboard.press("f")
    addresses(page, lambda said: 0 < extent(said) < 100_000)
    settled(page).keyboard.press("Escape")
    expect(page.locator(".timeline-details")).to_have_count(0)


def test_measuring_adds_up_by_kind(timeline: Any) -> None:
    page = timeline("?from=40000&to=88000")
    box = page.locator(CANVAS).bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")

    row = page.locator(".timeline-details tbody tr").filter(has_text=re.compile(r"^\s*kernel"))
    expect(row).to_contain_text("12.0 µs")
    expect(row).to_contain_text("100 %")


def test_drag_wheel_and_pinch_move_the_view(timeline: Any, settled: Any) -> None:
    page = timeline("?from=1000000&to=2000000", has_touch=True)
    box = page.locator(CANVAS).bounding_box()
    middle, y = box["x"] + box["width"] / 2, box["y"] + 60
    page.mouse.move(middle, y)
    page.mouse.down()
    page.mouse.move(middle - box["width"] / 4, y, steps=3)
    page.mouse.up()
    addresses(page, lambda said: abs(int(said["from"]) - 1_250_000) < 5000)

    settled(page)
    touch = page.context.new_cdp_session(page)
    for kind, apart in (("touchStart", 50), ("touchMove", 75), ("touchMove", 100), ("touchEnd", None)):
        points = [] if apart is None else [{"x": middle - apart, "y": y}, {"x": middle + apart, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    addresses(page, lambda said: abs(extent(said) - 500_000) < 5000)


@pytest.mark.exhaustive
def test_folding_a_track(timeline: Any) -> None:
    page = timeline()
    track = page.get_by_role("button", name="thread 9")
    expect(track).to_have_attribute("aria-expanded", "true")
    track.click()

    expect(track).to_have_attribute("aria-expanded", "false")


def test_hostile_names_are_text(timeline: Any) -> None:
    page = timeline("?select=" + HOSTILE.replace("<", "%3C").replace(">", "%3E").replace("/", "%2F"))

    tells(page, begins(HOSTILE))
    expect(page.locator("main img")).to_have_count(0)


def test_what_the_browser_exports_can_be_read_back(timeline: Any, trace: RankTrace, tmp_path: Path) -> None:
    page = timeline()
    with page.expect_download() as download:
        page.get_by_role("button", name="Perfetto JSON").click()
    path = tmp_path / "exported.json"
    download.value.save_as(path)
    back = read_trace(path, strict=True).ranks[0]

    columns = ("name", "kind", "start_ns", "dur_ns", "depth")
    expected, rows = [rank_trace.events.select(columns).sort(columns) for rank_trace in (trace, back)]
    since_start = pl.col("start_ns") - pl.col("start_ns").min()
    assert rows.with_columns(since_start).equals(expected.with_columns(since_start))
    assert back.device_work["parent"].null_count() == 0
    assert {name for name in back.tracks["thread_name"].to_list() if name} == {"stream 7", "thread 9"}
    assert back.rank == trace.rank


@pytest.mark.exhaustive
def test_a_range_is_exported(timeline: Any, tmp_path: Path) -> None:
    page = timeline("?from=0&to=399000")
    with page.expect_download() as download:
        page.get_by_role("button", name="Perfetto JSON").click()
    download.value.save_as(tmp_path / "exported.json")

    assert read_trace(tmp_path / "exported.json").ranks[0].of_kind("kernel").height == 4


@pytest.mark.exhaustive
def test_a_picture_is_saved(timeline: Any, tmp_path: Path) -> None:
    page = timeline()
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").click()
    download.value.save_as(tmp_path / "view.png")

    assert download.value.suggested_filename == "timeline-rank-0.png"
    assert (tmp_path / "view.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_several_ranks_share_one_place(open_page: Any, perception: Any, tmp_path: Path) -> None:
    views = [view_trace(recorded(tmp_path, rank, kernels=3 + rank)) for rank in (0, 2)]
    page = open_page(perception, Attachments(traces=views), fragment="#/timeline?rank=2&select=aten::mm")

    expect(page.locator(CANVAS)).to_have_count(1)
    expect(page.locator("select[aria-label=Rank]")).to_have_value("2")
    tells(page, "5 in 151 µs")
    page.locator("select[aria-label=Rank]").select_option("0")
    expect(page.locator(".timeline-details")).to_have_count(0)
    expect(page.locator(CANVAS)).to_have_count(1)
    addresses(page, lambda said: said == {})


@pytest.mark.parametrize("width", [380, pytest.param(1600, marks=pytest.mark.exhaustive)])
def test_fits_the_window(timeline: Any, width: int) -> None:
    page = timeline("?select=aten::mm", width=width, dark=width < 1000)

    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.exhaustive
def test_a_trace_without_slices_says_so(open_page: Any, perception: Any, tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    instant = {
        "ph": "i",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": 1,
        "s": "t",
    }
    path.write_text(json.dumps({"traceEvents": [instant]}), encoding="utf-8")
    page = open_page(
        perception, Attachments(traces=[view_trace(read_trace(path).ranks[0])]), fragment="#/timeline"
    )

    expect(page.get_by_text("There is nothing to draw")).to_be_visible()
