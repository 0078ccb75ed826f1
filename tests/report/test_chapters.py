"""Terminal, Markdown and HTML show the same chapters of every kind of document, in the same order."""

from __future__ import annotations

import html as markup
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from document_fixtures import changed
from every_area import areas, rich  # noqa: F401 - fixtures
from representative import every
from rich.console import Console, RenderableType

from pyrometer.bench.calibration import Calibration, Resolution
from pyrometer.evidence.evidence import Evidence
from pyrometer.guard.exchange.past import PastFigure, PastPoint
from pyrometer.guard.gate import Cause, Gate, GuardReport, Missed, Revision
from pyrometer.guard.history.history import history_of
from pyrometer.guard.history.series import Recorded
from pyrometer.hardware.record import Environment
from pyrometer.monitor.logs.record import LogAnalysis
from pyrometer.place import Place
from pyrometer.record import to_dict
from pyrometer.report import html, kinds, markdown, terminal
from pyrometer.report.chapters.chapter import Chapter
from pyrometer.report.chapters.documents import TELLERS, tell
from pyrometer.report.documents import AuditDocument, Document
from pyrometer.report.history_documents import GuardHistoryDocument, RolloutDocument
from pyrometer.report.target_documents import CalibrationDocument, ScaleDocument
from pyrometer.rollout.judging.judgement import Guard, MetricTest
from pyrometer.rollout.state import Decision, Point
from pyrometer.rules.audit.record import Audit, AuditGroup, AuditItem
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.scaling.record import (
    Basis,
    CollectiveCall,
    LinkFit,
    Links,
    ScaleCheck,
    ScalePrediction,
    Scaling,
    Schedule,
)
from recorded import CHECKED, checked, page_of

TEASER = "What to do first"
NAMES = (*TELLERS, "everything", "failed", "verdict", "soak", "leak", *every(3, CHECKED))


@pytest.fixture(scope="module")
def told(documents: Mapping[str, Any], areas: Mapping[str, Any], rich: Any) -> dict[str, Document]:  # noqa: F811
    """One document of every kind, and some of which more is told."""
    environment = documents["steady"].environment
    resolution = Resolution(
        name="matmul", step_s=0.001, metric="cpu", num_blocks=40, block_s=0.01, noise=0.01, resolves_10s=0.02, resolves_60s=0.01,
        outcome="same", false_share=0.0,
    )  # fmt: skip
    item = AuditItem(
        code="A1", title="a loader with workers", status="fail", reason="none seen", advice="Add some."
    )
    audit = Audit(
        target="t", groups=[AuditGroup(name="data", items=[item])], score=0.0, band="below 70", applicable=1, passed=0, unknown=0
    )  # fmt: skip
    failed = msgspec.structs.replace(
        documents["steady"].evidence.measurement, failure="step 3 raised ValueError: bad"
    )
    lost = msgspec.structs.replace(areas["memory"][0].profile.leak, unbounded=True)
    leaking = msgspec.structs.replace(areas["memory"][0].profile, leak=lost)
    return {
        "audit": AuditDocument(
            evidence=Evidence(target="t", environment=environment),
            diagnosis=Diagnosis(target="t", findings=[], reading=[], audit=audit, notes=["no trace"]),
        ),
        "bench": documents["starts"],
        "calibration": CalibrationDocument(
            target="t", environment=environment,
            calibration=Calibration(resolutions=[resolution], peaks=None, conditions=None, advice=[], elapsed_s=60.0),
        ),
        "check": documents["steady"],
        "compare": areas["compare"][0],
        "compile": areas["compile"][0],
        "guard": guard_report(environment),
        "guard-past": PastPoint(tool="asv", commit="2" * 40, machine={"cpu": "c"}, figures=[PastFigure(benchmark="b.f", metric="median_s", kind="time", value=0.1)]),
        "guard-proof": guard_report(environment),
        "guard-record": guard_report(environment),
        "guard-history": GuardHistoryDocument(
            target="1" * 40, environment=environment, history=history_of([Recorded("r1", "2026-11-21T09:30:00.000000Z", guard_report(environment))])
        ),
        "logs": LogAnalysis(files=["calls.jsonl"], lines=3, num_requests=2, span_s=1.0, p50_s=0.01, p95_s=0.02, p99_s=0.02),
        "matrix": documents["matrix"],
        "rollout": rollout_document(),
        "scale": scale_document(environment),
        "tune": documents["convolutions"],
        "memory": areas["memory"][0],
        "snapshot": areas["snapshot"][0],
        "trace": areas["ranks"][0],
        "everything": rich("").document,
        "verdict": documents["verdict_slower"],
        "soak": documents["soak"],
        "failed": changed(documents["steady"], measurement=failed),
        "leak": changed(areas["memory"][0], memory=leaking, over_limit=["the peak is 3 GiB"]),
        **{program: checked(program) for program in CHECKED},
    }  # fmt: skip


def rollout_document() -> RolloutDocument:
    """One that was taken back, with a course."""
    test = MetricTest(metric="errors", estimate=3.0, ci_low=1.4, ci_high=5.0, e_value=200.0, needed=40.0, margin=2.0, outcome="worse",
                      num_new=9, num_old=30, share_new=0.01, share_old=0.003)  # fmt: skip
    points = [
        Point(num=num, share=share, tests={"errors": (2.0, 0.5, None, 3.0)})
        for num, share in ((10, 0.01), (20, 0.05), (30, 0.05))
    ]
    decision = Decision(number=1, at_s=0.0, attempt=1, action="roll back", share=0.0, reason="errors: worse")
    guard = Guard(guard="p99", said="P99 of latency is 90 ms", value=0.09, limit=0.03)
    return RolloutDocument(name="perception", old="v1", new="v2", state="rolled back", stage=2, stages=[0.01, 0.05, 1.0], share=0.0,
                           outcome="worse", reason="errors: worse", tests=[test], guards=[guard], decisions=[decision], course=points)  # fmt: skip


def scale_document(environment: Environment) -> ScaleDocument:
    """Two numbers of ranks, and a real run."""
    schedule = Schedule(ranks=8, parallel="ddp", calls=[CollectiveCall(operation="all_reduce", bytes=1 << 20, at=0.5)], forward_ends=0.3,
                        backward_ends=0.8, overlaps=True, wrapping_ratio=1.1, trained_bytes=1 << 20, state_bytes=1 << 22)  # fmt: skip
    links = Links(backend="nccl", ranks_measured=2, inside=LinkFit(alpha_s=1e-6, beta_s=1e-11, error=0.1))
    common = {
        "step_s": 0.1,
        "low_s": 0.09,
        "high_s": 0.12,
        "compute_s": 0.08,
        "units_per_s": 4e3,
        "peak_bytes": 1 << 30,
    }
    predictions = [
        ScalePrediction(
            ranks=8,
            exposed_s=0.01,
            straggler_s=0.0,
            efficiency=0.95,
            binds="compute",
            cost_per_million=2.0,
            **common,
        ),
        ScalePrediction(
            ranks=64,
            exposed_s=0.02,
            straggler_s=0.01,
            efficiency=0.7,
            binds="communication",
            cost_per_million=3.0,
            **common,
        ),
    ]
    check = ScaleCheck(ranks=2, predicted_s=0.1, low_s=0.09, high_s=0.11, measured_s=0.104, alone_s=0.08)
    basis = Basis(parallel="ddp", unit="samples", units_per_step=64.0, links=links, schedules=[schedule])
    scaling = Scaling(
        basis=basis, predictions=predictions, assumptions=["All links are alike."], checks=[check]
    )
    return ScaleDocument.of("train.py:work", scaling, environment)


def guard_report(environment: Environment) -> GuardReport:
    """One with everything that a guard can tell."""
    cause = Cause(text="aten::clone: 0 → 3 calls per step", place=Place(file="model.py", line=11))
    gates = [
        Gate(benchmark="perf_a.py::perf_x", metric="median_s", kind="time", outcome="regressed", ratio=1.2, ci_low=1.1, ci_high=1.3,
             base=1e-3, head=1.2e-3, limit=1.05, why=[cause]),
        Gate(benchmark="perf_a.py::perf_x", metric="peak_bytes", kind="memory", outcome="unchanged", ratio=1.05, base=100.0, head=105.0,
             limit=1.1, warning="grew from 100 to 105, within the limit of 10 %"),
    ]  # fmt: skip
    missed = [Missed(benchmark="perf_b.py::perf_y", side="base", reason="new", failed=False)]
    base, head = Revision(ref="main", sha="0" * 40), Revision(ref="change", sha="1" * 40)
    return GuardReport(
        target="HEAD",
        environment=environment,
        trusted=True,
        gates=gates,
        base=base,
        head=head,
        missed=missed,
        num_pairs=5,
    )


def title_of(chapter: Chapter) -> str:
    return f"{chapter.title}: {chapter.says}" if chapter.says else chapter.title


def in_page(page: str, chapters: Sequence[Chapter]) -> list[str]:
    """The headings in the order of the page, where findings stand first among what to do first."""
    main = page.partition("<main")[2].partition("</main>")[0]
    headings = [markup.unescape(re.sub("<[^>]+>", "", found)) for found in re.findall("<h2.*?</h2>", main)]
    findings = next((title_of(chapter) for chapter in chapters if chapter.slug == "findings"), "")
    if TEASER in headings:
        headings = [heading for heading in headings if heading != findings or findings == TEASER]
    return [findings if heading == TEASER else heading for heading in headings]


def in_markdown(text: str) -> list[str]:
    headings = re.findall(r"^###? (.*)$", text.partition("\n")[2], re.MULTILINE)
    return [re.sub(r"\\(.)", r"\1", heading) for heading in headings]


def in_terminal(view: RenderableType) -> list[str]:
    """The words at the beginning of rows, below the answer."""
    console = Console(file=io.StringIO(), width=400)
    console.print(view)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    rows = [line for line in lines if line.strip() and not line.startswith(" ")]
    return [re.split(r"\s{2,}", line)[0].strip() for line in rows if re.search(r"^\S+( \d+)?\s{2,}", line)]


@pytest.mark.parametrize("name", NAMES)
def test_all_renderers_show_the_same_chapters_in_the_same_order(told: dict[str, Document], name: str) -> None:
    document = told[name]
    kind = kinds.kind_of(document)
    chapters = tell(document).chapters
    titles = [title_of(chapter) for chapter in chapters]
    assert titles
    page = page_of(name) if name in CHECKED else html.page(document)
    assert in_page(page, chapters) == titles
    assert in_markdown(markdown.render_document(kind, to_dict(document))) == titles
    assert in_terminal(terminal.render_document(kind, to_dict(document))) == [
        terminal.label(chapter) for chapter in chapters
    ]
