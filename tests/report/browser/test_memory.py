"""Memory in the browser: an instant is kept and linked to, the peak is opened part by part, nothing of a program is markup."""

from __future__ import annotations

import re
from typing import Any

import pytest
from document_fixtures import document_of

from pyrometer.memory.difference import diff_memory
from pyrometer.memory.place import HeldBytes
from pyrometer.memory.profile import LeakReport, LeakSite, MemoryProfile, PredictedMemory
from pyrometer.memory.snapshots.report import DeviceReport, Fragmentation, PeakFragmentation, SnapshotReport
from pyrometer.memory.timeline import PhaseSpan, Timeline
from pyrometer.report.documents import MemoryDocument, SnapshotDocument

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

MIB = 2**20
CANARY = "</script><img src=x onerror=alert(1)>"


def held(site: str, mebibytes: int, module: str | None, category: str = "activations") -> HeldBytes:
    return HeldBytes(
        site=site,
        bytes=mebibytes * MIB,
        count=2,
        module=module,
        category=category,
        source=f"y = f(x) {CANARY}",
    )


def make_profile(**changes: Any) -> MemoryProfile:
    activations = [0, 100, 200, 50, 0]
    values: dict[str, Any] = {
        "name": f"GPT{CANARY}",
        "device": "cpu",
        "peak_bytes": 240 * MIB,
        "peak_phase": "backward",
        "ledger_bytes": {"parameters": 40 * MIB, "activations": 200 * MIB},
        "timeline": Timeline(
            event=[0, 10, 20, 30, 40],
            total_bytes=[(40 + activation) * MIB for activation in activations],
            category_bytes={"parameters": [40 * MIB] * 5, "activations": [activation * MIB for activation in activations]},
            phases=[PhaseSpan(name="forward", first=0, last=1), PhaseSpan(name="backward", first=2, last=4)],
        ),
        "at_peak": [
            held("model.py:3", 90, "blocks.0.mlp"),
            held("model.py:3", 60, "blocks.1.mlp"),
            held(f"model.py:9{CANARY}", 30, "head"),
            held("parameters (before the steps)", 40, None, "parameters"),
        ],
        "predicted": PredictedMemory(peak_bytes=250 * MIB, ledger_bytes={"activations": 250 * MIB}, error=0.04),
        "leak": LeakReport(
            verdict="leak",
            sentence=f"leak: 2.00 MiB per step stay in losses[…]{CANARY}",
            bytes_per_step=2.0 * MIB,
            ci=[1.9 * MIB, 2.1 * MIB],
            steps=list(range(30)),
            live_bytes=[(50 + 2 * step) * MIB for step in range(30)],
            num_steps=30,
            warmup_steps=5,
            sites=[
                LeakSite(
                    file="train.py", line=12, holder="losses[…]", bytes_per_step=2.0 * MIB, chain=["module", CANARY],
                    fix="losses.append(loss.item())",
                )
            ],
        ),
    }  # fmt: skip
    return MemoryProfile(**{**values, **changes})


def document(found: Any, kind: type[Any] = MemoryDocument, **asked: Any) -> Any:
    fields = {name: getattr(found, name) for name in found.__struct_fields__}
    return document_of(kind, target="model.py:workload", tool_version="0.1.0", **asked, **fields)


def press(page: Any, share: float) -> None:
    canvas = page.locator("canvas.surface").first
    box = canvas.bounding_box()
    page.mouse.click(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)


def test_a_kept_instant_stands_in_the_table_and_in_the_address(open_page, settled):
    page = open_page(document(make_profile()), fragment="#/memory")
    press(page, 0.55)
    heading = page.locator(".ledger thead th").nth(1)
    expect(heading).to_contain_text("event 20 · backward")
    cell = page.locator(".ledger tbody tr", has_text="activations").locator("td").first
    expect(cell).to_have_text("200 MiB")
    page.wait_for_url(re.compile(r"#/memory\?at=20$"))
    settled(page).keyboard.press(".")
    expect(heading).to_contain_text("event 30")
    settled(page).keyboard.press("Escape")
    expect(heading).to_contain_text("at the peak")


def test_a_link_leads_to_the_instant_the_range_and_the_part(open_page):
    page = open_page(document(make_profile()), fragment="#/memory?at=10&from=5&held=2&to=25")
    expect(page.locator(".ledger thead th").nth(1)).to_contain_text("event 10 · forward")
    expect(page.locator(".axis-ends").first.locator("span")).to_have_text(
        ["5", "allocations and frees", "25"]
    )
    expect(page.locator(".crumbs button").last).to_have_text("blocks.*.mlp")


def test_keys_zoom_and_the_pointer_reads_every_category(open_page):
    page = open_page(document(make_profile()), fragment="#/memory")
    canvas = page.locator("canvas.surface").first
    first = page.locator(".axis-ends").first.locator("span").first
    expect(first).to_have_text("0")
    canvas.press("w")
    expect(first).not_to_have_text("0")
    canvas.press("0")
    expect(first).to_have_text("0")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 150)
    for part in ("event 10 · forward", "100 MiB", "40.0 MiB", "140 MiB"):
        expect(page.locator(".tooltip")).to_contain_text(part)


@pytest.mark.exhaustive
def test_a_category_can_be_left_out(open_page):
    page = open_page(document(make_profile()), fragment="#/memory")
    drawn = "document.querySelector('canvas.surface').toDataURL()"
    before = page.evaluate(drawn)
    page.get_by_role("checkbox", name="activations").uncheck()
    page.wait_for_function(f"before => {drawn} != before", arg=before)


def test_the_peak_opens_part_by_part_and_goes_back(open_page):
    page = open_page(document(make_profile()), fragment="#/memory")
    parts = page.locator(".held li .what b")
    expect(parts).to_have_text(["activations", "parameters", "not told by place"])
    page.get_by_role("button", name="Open activations").click()
    expect(parts).to_have_text(["blocks.*.mlp", re.compile("^head")])
    page.get_by_role("button", name="Open blocks.*.mlp").click()
    expect(parts).to_have_text(["blocks.0.mlp", "blocks.1.mlp"])
    expect(page.locator(".held .crumbs > span")).to_have_text("150 MiB")
    expect(page.get_by_role("grid", name="Places that hold bytes")).to_have_attribute("aria-rowcount", "3")
    page.wait_for_url(re.compile("held="))
    page.get_by_role("button", name="All that is held").click()
    expect(parts).to_have_count(3)


def test_a_leak_shows_its_chain_and_what_to_write(open_page):
    page = open_page(document(make_profile()), fragment="#/memory")
    site = page.locator(".site").first
    expect(site.locator(".chain li")).to_have_text(["module", CANARY])
    expect(site).to_contain_text("losses.append(loss.item())")
    expect(page.locator("img")).to_have_count(0)


@pytest.mark.exhaustive
def test_what_grew_stands_on_the_page_of_comparisons(open_page):
    before = make_profile(
        peak_bytes=200 * MIB, ledger_bytes={"parameters": 80 * MIB, "activations": 120 * MIB}
    )
    page = open_page(
        document(make_profile(), diff=diff_memory(before, make_profile())), fragment="#/comparison"
    )
    expect(page.locator(".grown li .much b")).to_have_text(["▲ +80.0 MiB", "▼ -40.0 MiB"])


@pytest.mark.exhaustive
def test_little_data_is_shown_and_what_is_missing_told(open_page):
    bare = make_profile(timeline=Timeline(), at_peak=[], predicted=None, leak=None)
    page = open_page(document(bare), fragment="#/memory")
    expect(page.locator(".memory .ledger tbody tr")).to_have_count(2)
    expect(page.locator(".memory canvas")).to_have_count(0)
    page.locator(".missing summary").click()
    expect(page.locator(".missing li")).to_have_count(2)


@pytest.mark.exhaustive
def test_devices_of_a_snapshot_can_be_chosen(open_page):
    part = Fragmentation(
        event=3, reserved_bytes=100, allocated_bytes=60, pending_free_bytes=0, inactive_split_bytes=40, cached_whole_bytes=0,
        rounding_bytes=0, free_bytes=40, largest_free_bytes=40, free_blocks=1, external=0.0, unused=0.4,
    )  # fmt: skip
    other = DeviceReport(device=1, events=4, peak_bytes=30, ledger_bytes={"inputs": 30})
    report = SnapshotReport(
        path="oom.pickle", device=0, peak_bytes=60, ledger_bytes={"unknown": 60},
        fragmentation=PeakFragmentation(at_peak=part), devices=[DeviceReport(device=0, events=9, peak_bytes=60), other],
    )  # fmt: skip
    page = open_page(document(report, SnapshotDocument), fragment="#/memory")
    expect(page.locator(".bars .pieces span")).to_have_text(["in use 60 B", "split off 40 B"])
    page.get_by_label("Device").select_option("1")
    expect(page.locator(".memory .ledger tbody th")).to_have_text(["inputs"])


@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_nothing_is_wider_than_a_telephone(open_page, dark):
    page = open_page(document(make_profile()), fragment="#/memory", width=380, dark=dark)
    page.locator(".memory").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
