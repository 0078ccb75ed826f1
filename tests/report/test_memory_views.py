"""What people see of a memory profile, of a snapshot and of how data arrives, in every rendering."""

from __future__ import annotations

import io
import os
from pathlib import Path

import msgspec
import pytest
from document_fixtures import changed, document_of
from markdown_it import MarkdownIt
from rich.console import Console

from pyrometer.advice import Advice, Gain
from pyrometer.loading.report import LoaderReport, StageTime
from pyrometer.loading.settings import LoaderSettings
from pyrometer.memory.difference import diff_memory
from pyrometer.memory.place import HeldBytes
from pyrometer.memory.profile import (
    Fit,
    LeakReport,
    LeakSite,
    MemoryProfile,
    PredictedMemory,
    ProcessLevels,
    ScalingLaw,
)
from pyrometer.memory.snapshots.difference import diff_snapshots
from pyrometer.memory.snapshots.report import (
    CacheRelease,
    DeviceReport,
    FailedRequest,
    Fragmentation,
    PeakFragmentation,
    SettingsReport,
    Simulation,
    SnapshotReport,
)
from pyrometer.memory.timeline import PhaseSpan, Timeline
from pyrometer.record import to_dict
from pyrometer.report import html, markdown, terminal
from pyrometer.report.chapters.memory import SLOTS, ledger_shares
from pyrometer.report.charts.stacked_area import stacked_area
from pyrometer.report.documents import CheckDocument, Document, MemoryDocument, SnapshotDocument
from pyrometer.report.kinds import kind_of
from pyrometer.tuning.checkpointing.record import CheckpointPlan, GradientMatch, PlanPoint, StepFigures

SNAPSHOTS = Path(__file__).parent / "snapshots"
CANARY = "</script><img src=x onerror=alert(1)>"
MIB = 2**20

LEDGER = {"parameters": 40 * MIB, "optimizer": 80 * MIB, "activations": 200 * MIB, "temporaries": 10 * MIB}


def timeline() -> Timeline:
    total = [40 * MIB, 240 * MIB, 330 * MIB, 120 * MIB]
    return Timeline(
        event=[0, 10, 25, 40],
        total_bytes=total,
        category_bytes={"parameters": [40 * MIB] * 4, "activations": [one - 40 * MIB for one in total]},
        phases=[PhaseSpan(name="forward", first=0, last=1), PhaseSpan(name="backward", first=2, last=3)],
    )


def profile(text: str = "", **changes: object) -> MemoryProfile:
    """A profile with every chapter; `text` stands wherever the user's program has a say."""
    memory_profile = MemoryProfile(
        name=f"GPT{text}",
        device="cpu",
        source="every operator",
        peak_bytes=330 * MIB,
        peak_phase="backward",
        peak_step=1,
        ledger_bytes=LEDGER,
        steady_bytes=120 * MIB,
        units_per_step=8.0,
        bytes_per_unit=330 * MIB / 8,
        units_per_gib=24.8,
        predicted=PredictedMemory(
            peak_bytes=332 * MIB, ledger_bytes=LEDGER, error=0.006, notes=[f"a guess{text}"]
        ),
        timeline=timeline(),
        at_peak=[
            held(f"project/model.py:31{text}", "blocks.0.mlp", 60, text),
            held(f"project/model.py:31{text}", "blocks.1.mlp", 60, text),
            held("project/model.py:52", None, 30, text),
        ],
        by_module={f"blocks.0.mlp{text}": 60 * MIB},
        by_dtype={"float32": 330 * MIB},
        levels=ProcessLevels(rss_start_bytes=200 * MIB, rss_peak_bytes=610 * MIB),
        formulas={"weights": f"10.5 M × 4 B{text}"},
        scaling=[ScalingLaw(category="activations", law=f"grows with B{text}", remedy="a smaller batch")],
        fits=[
            Fit(budget_bytes=2**30, max_batch=31, peak_bytes=1020 * MIB),
            Fit(budget_bytes=1, max_batch=None),
        ],
        leak=LeakReport(
            verdict="leak",
            sentence=f"leak: 2.00 MiB per step stay in losses[…]{text}",
            bytes_per_step=2.0 * MIB,
            ci=[1.9 * MIB, 2.1 * MIB],
            eta_steps=9300.0,
            limit_bytes=20 * 2**30,
            num_steps=60,
            warmup_steps=7,
            sites=[
                LeakSite(
                    file=f"project/train.py{text}",
                    line=12,
                    holder=f"losses[…]{text}",
                    graph_bytes=3 * MIB,
                    bytes_per_step=2.0 * MIB,
                    fix=f"losses.append(loss.item()){text}",
                )
            ],
            notes=[f"a note{text}"],
        ),
        advice=[
            Advice(
                slug="checkpoint",
                title=f"compute activations again{text}",
                why=f"200 MiB of activations{text}",
                fix_class="exact",
                rewrite=f"pm.plan_checkpoints(work){text}",
                effect=f"the peak falls{text}",
                gain=Gain(saves_bytes=150 * MIB, method="predicted: replayed"),
            )
        ],
        notes=[f"not told{text}"],
    )
    return msgspec.structs.replace(memory_profile, **changes)


def held(site: str, module: str | None, mebibytes: int, text: str) -> HeldBytes:
    return HeldBytes(
        site=site,
        module=module,
        bytes=mebibytes * MIB,
        count=2,
        category="activations",
        source=f"y = mlp(x){text}",
    )


def plan(text: str = "") -> CheckpointPlan:
    return CheckpointPlan(
        name="GPT",
        strategy="optimal",
        sentence=f"2 of 4 blocks computed again{text}",
        modules=[f"blocks.0{text}", "blocks.1"],
        policy={"blocks.1": "keep-matmul"},
        baseline=StepFigures(peak_bytes=330 * MIB, step_s=0.1, step_s_ci=[0.098, 0.102]),
        planned=StepFigures(peak_bytes=250 * MIB, predicted_peak_bytes=251 * MIB, step_s=0.12),
        equal=GradientMatch(bitwise=True),
        frontier=[PlanPoint(modules=["blocks.0"], peak_bytes=290 * MIB, recompute_s=0.01, step_s=0.11)],
        every_k=[PlanPoint(modules=["blocks.1"], peak_bytes=300 * MIB, recompute_s=0.02, step_s=0.12, k=2)],
        notes=[f"a note{text}"],
    )


def document(memory_profile: MemoryProfile, **asked: object) -> MemoryDocument:
    fields = {name: getattr(memory_profile, name) for name in memory_profile.__struct_fields__}
    return document_of(
        MemoryDocument,
        target="model.py:workload",
        tool_version="0.1.0",
        run_id="r7k2m9",
        created="2026-11-21T09:30:00Z",
        **asked,
        **fields,
    )


def fragmentation(event: int) -> Fragmentation:
    return Fragmentation(
        event=event,
        reserved_bytes=1000 * MIB,
        allocated_bytes=600 * MIB,
        pending_free_bytes=0,
        inactive_split_bytes=300 * MIB,
        cached_whole_bytes=100 * MIB,
        rounding_bytes=MIB,
        free_bytes=400 * MIB,
        largest_free_bytes=64 * MIB,
        free_blocks=30,
        external=0.84,
        unused=0.4,
    )


def snapshot(text: str = "") -> SnapshotReport:
    failed = FailedRequest(
        event=8,
        request_bytes=512 * MIB,
        device_free_bytes=20 * MIB,
        allocator_free_bytes=400 * MIB,
        usable_free_bytes=400 * MIB,
        largest_free_bytes=64 * MIB,
        free_blocks=30,
        allocated_bytes=600 * MIB,
        reserved_bytes=1000 * MIB,
        site=f"project/train.py:9{text}",
        sentence=f"the 512 MiB request failed with 400 MiB free in blocks of at most 64 MiB{text}",
    )
    places = [held(f"project/model.py:31{text}", None, 400, text)]
    device = DeviceReport(
        device=0,
        events=900,
        peak_bytes=600 * MIB,
        retries=2,
        releases=[CacheRelease(event=3, reason="empty_cache", released_bytes=MIB, segments=1)],
        simulation=Simulation(
            events=900,
            recorded_peak_reserved_bytes=1000 * MIB,
            simulated_peak_reserved_bytes=1010 * MIB,
            error=0.01,
            trusted=True,
        ),
    )
    return SnapshotReport(
        path=f"oom.pickle{text}",
        device=0,
        peak_bytes=600 * MIB,
        peak_reserved_bytes=1000 * MIB,
        ledger_bytes={"activations": 400 * MIB, "unknown": 200 * MIB},
        timeline=timeline(),
        at_peak=places,
        at_end=places,
        fragmentation=PeakFragmentation(
            at_peak=fragmentation(7), at_oom=[fragmentation(8)], at_end=fragmentation(9)
        ),
        oom=[failed],
        retries=2,
        advice=profile(text).advice,
        settings=SettingsReport(text=f"max_split_size_mb:20{text}", problems=[f"unknown key{text}"]),
        notes=[f"history begins in the middle{text}"],
        devices=[device],
    )


def snapshot_document(report: SnapshotReport, **asked: object) -> SnapshotDocument:
    fields = {name: getattr(report, name) for name in report.__struct_fields__}
    return document_of(SnapshotDocument, target="oom.pickle", tool_version="0.1.0", **asked, **fields)


def loading(text: str = "") -> LoaderReport:
    return LoaderReport(
        verdict="starved-steady",
        sentence=f"the step waits 60 % of its time for data{text}",
        settings=LoaderSettings(num_workers=2, prefetch_factor=2),
        measured_step_s=0.05,
        predicted_step_s=0.048,
        data_share=0.6,
        wait_s=0.03,
        wait_fraction=0.6,
        first_batch_s=0.2,
        free_data_ratio=0.4,
        stages=[StageTime(name="decode", where="worker", per_step_s=0.09, share=1.8, cpu_share=0.97)],
        occupancy=0.05,
        queue_batches=4,
        worker_busy=0.99,
        worker_memory_bytes=80 * MIB,
        advice=[
            Advice(
                slug="add-workers",
                title=f"add workers{text}",
                why="they are busy",
                fix_class="exact",
                rewrite="num_workers=4",
                effect="e",
            )
        ],
        notes=[f"a note{text}"],
    )


DOCUMENTS = {
    "memory": document(profile(), over_limit=["the peak is 330 MiB, 1.00 MiB are allowed"]),
    "memory_asked": document(
        profile(), plan=plan(), diff=diff_memory(profile(peak_bytes=300 * MIB), profile()),
        what_if=[PredictedMemory(peak_bytes=200 * MIB, ledger_bytes=LEDGER, settings={"batch": "4"})],
    ),
    "snapshot": snapshot_document(snapshot(), diff=diff_snapshots(snapshot(), snapshot())),
}  # fmt: skip


def shown(found: Document, width: int = 100) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    console = Console(file=stream, width=width, color_system=None, legacy_windows=False)
    console.print(terminal.render_document(kind_of(found), to_dict(found)))
    stream.flush()
    return stream.buffer.getvalue().decode()


def matches_snapshot(name: str, text: str) -> None:
    path = SNAPSHOTS / name
    plain = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if os.environ.get("PYROMETER_UPDATE_SNAPSHOTS"):
        path.write_text(plain, encoding="utf-8")
    assert plain == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_terminal_and_markdown_are_as_stored(name):
    evidence_document = DOCUMENTS[name]
    matches_snapshot(f"{name}.txt", shown(evidence_document))
    matches_snapshot(
        f"{name}.md", markdown.render_document(kind_of(evidence_document), to_dict(evidence_document))
    )


def test_the_answer_is_the_peak_its_phase_what_for_and_whether_it_grows():
    first = shown(document(profile()), width=300).splitlines()[0]
    assert first == "peak 330 MiB in backward · 60.6 % activations · leak: 2.00 MiB per step"
    still = profile(leak=LeakReport(verdict="stable", sentence="", num_steps=60))
    assert shown(document(still), width=300).splitlines()[0].endswith("no leak in 60 steps")


def test_a_snapshot_begins_with_why_memory_ran_out():
    first = shown(snapshot_document(snapshot()), width=300).splitlines()[0]
    assert first.startswith("the 512 MiB request failed with 400 MiB free in blocks of at most 64 MiB")


def test_blocks_of_a_repeated_module_are_one_row():
    text = shown(document(profile()))
    assert "blocks.*.mlp" in text
    assert "120 MiB" in text


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_line_is_wider_than_the_terminal(name, width):
    assert max(map(len, shown(DOCUMENTS[name], width=width).splitlines())) <= width


HOSTILE = {
    "memory": document(
        profile(CANARY), over_limit=[CANARY], plan=plan(CANARY), diff=diff_memory(profile(), profile(CANARY))
    ),
    "snapshot": snapshot_document(snapshot(CANARY), diff=diff_snapshots(snapshot(), snapshot(CANARY))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_text_of_the_program_stays_text(name):
    evidence_document = HOSTILE[name]
    page = html.page(evidence_document)
    assert "<img src=x" not in page
    assert page.count("</script>") == page.count("<script")
    assert page.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;") > 8
    text = markdown.render_document(kind_of(evidence_document), to_dict(evidence_document))
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = [child for token in reader.parse(text) for child in (token, *(token.children or []))]
    assert not {token.type for token in tokens} & {"html_block", "html_inline", "image", "link_open"}


def test_a_check_has_chapters_about_memory_and_data(documents):
    plain = documents["training"]
    check_document = changed(plain, memory=profile(CANARY), loading=loading(CANARY))
    assert isinstance(check_document, CheckDocument)
    text = shown(check_document, width=200)
    assert "peak 330 MiB in backward" in text
    assert "the step waits 60 % of its time for data" in text
    page = html.page(check_document)
    assert page.count("</script>") == page.count("<script")
    assert "<img src=x" not in page
    assert "How the data arrives" in page
    assert "Where the bytes go" in page
    assert "How the data arrives" in markdown.render_document("check", to_dict(check_document))


def test_the_drawing_keeps_the_peak_and_the_phases():
    drawn = stacked_area(timeline(), SLOTS)
    assert drawn is not None
    assert "peak of tensors alone 330 MiB" in drawn
    assert "backward" in drawn
    assert drawn.count("<polygon") == 2
    assert stacked_area(Timeline(), SLOTS) is None


def test_a_leak_is_told_with_one_figure_of_steps_and_no_interval_without_width():
    leak = LeakReport(
        verdict="leak", sentence="leak: 8.38 KiB per step", num_steps=60, bytes_per_step=8580.0, ci=[8580.0, 8581.0],
        eta_steps=1_750_002.0, limit_bytes=2**34,
    )  # fmt: skip
    text = shown(document(profile(leak=leak)))
    assert "memory is full after about 1,800,000 steps" in text
    assert "growth 8.38 KiB per step\n" in "\n".join(line.rstrip() for line in text.splitlines())


def test_a_total_that_fits_does_not_speak_for_its_parts():
    memory_profile = profile()
    assert memory_profile.predicted is not None
    ledger = dict(memory_profile.ledger_bytes)
    moved = msgspec.structs.replace(
        memory_profile.predicted,
        ledger_bytes={**ledger, "activations": 0, "temporaries": ledger["activations"]},
    )
    text = shown(document(msgspec.structs.replace(memory_profile, predicted=moved)), 200)
    assert "total predicted without running within 0.60 %, its parts divided otherwise" in text


def test_shares_of_the_ledger_add_up():
    shares = ledger_shares(LEDGER, 330 * MIB)
    assert sum(share.share for share in shares) == pytest.approx(1)
    assert len({SLOTS[name] for name in SLOTS}) == len(SLOTS)


def test_figures_of_a_plan_have_their_intervals():
    assert "step 100 ms (98.0–102 ms)" in shown(document(profile(), plan=plan()), width=300)


def test_the_overview_tells_where_the_bytes_go_and_what_leaks():
    leaking = msgspec.structs.replace(profile().leak, unbounded=True)
    page = html.page(document(profile(leak=leaking)))
    assert '<section data-page="overview memory" class="card" aria-labelledby="leak">' in page
    assert page.count(">Does it grow?</h2>") == 1
    assert '<section data-page="overview memory" data-static aria-labelledby="ledger-bar">' in page
    assert '<section data-page="overview memory" aria-labelledby="what-would-lower-it">' in page


def test_memory_in_a_check_stays_on_its_page(documents):
    page = html.page(changed(documents["training"], memory=profile()))
    assert "overview memory" not in page
