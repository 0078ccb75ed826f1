"""One concept, one figure: the terminal, Markdown, the page and its data blocks tell the same of one document."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from document_fixtures import changed, document_of
from rich.console import Console

from pyrometer.advice import Advice
from pyrometer.evidence.data_share import data_share, measured_share
from pyrometer.loading.report import LoaderReport, StageTime
from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.verdict import LoadingFigures, retold, sentence
from pyrometer.memory.profile import Fit, MemoryProfile, ProcessLevels
from pyrometer.memory.timeline import Timeline
from pyrometer.place import Place
from pyrometer.quantity import format_bytes, format_seconds
from pyrometer.record import to_dict
from pyrometer.report import html, markdown, terminal
from pyrometer.report.attachments import Attachments
from pyrometer.report.chapters.documents import tell
from pyrometer.report.documents import CheckDocument, TraceDocument
from pyrometer.report.facts import trace_document as of_trace
from pyrometer.report.facts.findings import cards, reading_section
from pyrometer.report.facts.memory import sections
from pyrometer.report.facts.trace_words import median_step
from pyrometer.report.payloads.blocks import blocks_of
from pyrometer.rules.case import Case
from pyrometer.rules.data.data_waits import explain
from pyrometer.rules.finding import Finding
from pyrometer.rules.reading.steps import read_profile
from pyrometer.trace.jobs.executor import SerialExecutor
from pyrometer.trace.reporting.job_report import report_files
from pyrometer.trace.reporting.verdict import judge

MIB = 2**20
DATA_S, STEP_S = 0.0337, 0.1231


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Five steps of 2 ms on a host: a quarter is waiting for data, and threads overlap."""
    path = tmp_path_factory.mktemp("one") / "host.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events())}))
    return report_files([path], executor=SerialExecutor()).ranks[0]


def events() -> Iterator[dict[str, Any]]:
    def event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
        return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}

    for number in range(5):
        at = 2000.0 * number
        yield event("user_annotation", f"ProfilerStep#{number}", at, 1990)
        yield event("user_annotation", "phase:data", at + 1, 500)
        yield event("user_annotation", "phase:forward", at + 510, 1400)
        shapes = {"Input Dims": [[64, 32], [32, 16], []], "Input type": ["float", "float", "Scalar"]}
        yield event("cpu_op", "aten::mm", at + 520, 1200, **shapes)
        yield event("cpu_op", "aten::mm", at + 530, 1300, tid=2, **shapes)


def loader() -> LoaderReport:
    share = DATA_S / STEP_S
    seen = LoadingFigures(has_loader=True, num_workers=2, step_s=STEP_S, data_s=DATA_S, worker_busy=0.99)
    return LoaderReport(
        verdict="starved-steady",
        sentence=sentence(seen),
        settings=LoaderSettings(num_workers=2, prefetch_factor=2),
        measured_step_s=STEP_S,
        data_share=share,
        wait_s=DATA_S,
        wait_fraction=0.437,  # the median of single steps is another figure, and told nowhere
        first_batch_s=0.2,
        free_data_ratio=1 - share,
        stages=[
            StageTime(name="decode", where="worker", per_step_s=0.2, share=0.2 / STEP_S, cpu_share=1.25),
            StageTime(name="wait", where="main", per_step_s=DATA_S, share=share),
        ],
        num_steps=12,
    )


@pytest.fixture(scope="module")
def document(documents: dict[str, CheckDocument], report: Any) -> CheckDocument:
    steady = documents["steady"]
    profile = MemoryProfile(
        name="net",
        device="cpu",
        source="every operator",
        peak_bytes=330 * MIB,
        peak_phase="backward",
        ledger_bytes={"activations": 300 * MIB, "workspace": 30 * MIB},
        timeline=Timeline(event=[0, 1], total_bytes=[8 * MIB, 300 * MIB]),
        levels=ProcessLevels(rss_start_bytes=100 * MIB, rss_peak_bytes=777 * MIB),
    )
    evidence = Case(
        target=steady.target, measurement=steady.evidence.measurement, trace=report, loading=loader()
    )
    findings = [waiting(steady)]
    share = data_share(steady.evidence.measurement, loader())
    assert share is not None
    heard = retold(loader(), step_s=share.step_s, data_s=share.wait_s)
    return changed(
        steady,
        trace=report,
        trace_verdict=judge(report, data_share=share.share),
        loading=msgspec.structs.replace(loader(), sentence=heard),
        memory=profile,
        findings=findings,
        reading=read_profile(evidence, findings),
    )


def waiting(document: CheckDocument | None = None) -> Finding:
    measurement = document.evidence.measurement if document is not None else None
    limits = {"PYR301.min_share": 0.05}
    return next(iter(explain(Case(target="t", loading=loader(), measurement=measurement, limits=limits))))


@pytest.fixture(scope="module")
def views(document: CheckDocument) -> dict[str, str]:
    """Every view as plain text; figures keep their unit beside them."""
    console = Console(file=io.StringIO(), width=200)
    console.print(terminal.view(document, brief=False))
    console.print(terminal.view(document))
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", html.page(document), flags=re.DOTALL)
    return {
        "terminal": flat(console.file.getvalue()),  # type: ignore[attr-defined]
        "markdown": flat(
            markdown.render_document("check", to_dict(document)).replace("\\", "").replace("*", "")
        ),
        "page": flat(re.sub(r"<[^>]+>", " ", page)),
        "blocks": " ".join(block.content.decode() for block in blocks_of(document, Attachments())),
    }


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("&lt;", "<").replace("&#39;", "'"))


WRITTEN = ("terminal", "markdown", "page")


@pytest.mark.parametrize("view", WRITTEN)
def test_the_bar_is_one_step_on_the_clock_of_the_measurement(views: dict[str, str], view: str) -> None:
    assert "median of the measured steps" in views[view]
    assert "(5 steps together)" not in views[view]
    assert view != "page" or "The bar is one step, divided as 5 traced steps were" in views[view]


def test_steps_that_outlast_the_recorded_work_are_not_told_beside_it(report: Any) -> None:
    def told(span_ns: int) -> str:
        one = msgspec.structs.replace(report, span_ns=span_ns)
        return of_trace.subtitle(document_of(TraceDocument, target="a.json", ranks=[one]))

    assert "5 steps, median 1.99 ms" in told(report.span_ns)
    assert "median" not in told(1_000_000)


@pytest.mark.parametrize("view", WRITTEN)
def test_getting_batches_is_one_share_of_one_step(
    views: dict[str, str], document: CheckDocument, view: str
) -> None:
    """That of the measured steps, whose phases were timed; the watched and the traced ones differ from them."""
    matches = re.findall(
        r"([\d.]+) % of a step(?! \(waiting)|waiting for data ([\d.]+) %|per step \(([\d.]+) %\)|of it.{0,3}getting batches, of a step ([\d.]+) %",
        views[view],
    )
    shares = {float(one) for group in matches for one in group if one}
    measured = measured_share(document.evidence.measurement)
    assert measured is not None
    assert shares == {float(f"{100 * measured.share:.3g}")}
    if view == "page":  # beside the reason why they differ
        assert re.search(r"watched, part by part of the loader 33\.7 ms 89\.4 ms 27\.4 %", views[view])
    assert "43.7 %" not in views[view]


@pytest.mark.parametrize("view", WRITTEN)
def test_each_peak_has_one_name_and_each_name_one_figure(
    views: dict[str, str], document: CheckDocument, view: str
) -> None:
    text = views[view]
    assert document.evidence.measurement is not None
    assert document.evidence.measurement.memory is not None
    process = format_bytes(document.evidence.measurement.memory.peak_bytes)
    assert "peak 330 MiB in backward" in text
    if view == "terminal":
        return  # its chapter of peaks is on the page and in `pyrometer memory`
    for name, figure in (
        ("tensors and scratch", "330 MiB"),
        ("tensors alone", "300 MiB"),
        ("the process", process),
    ):
        assert re.search(rf"{name}[ |]+{re.escape(figure)}", text), name
    assert re.search(r"the process, recording[ |]+777 MiB", text)


def test_the_overview_leads_with_the_peak_of_the_headline(document: CheckDocument) -> None:
    (figures,) = (chapter for chapter in tell(document).chapters if chapter.slug == "figures")
    assert [(fact.label, fact.value) for fact in figures.blocks[0].facts if "Peak" in fact.label] == [
        ("Peak of tensors and scratch", "330 MiB")
    ]


@pytest.mark.parametrize("view", WRITTEN)
def test_the_step_is_the_median_that_was_measured(
    views: dict[str, str], document: CheckDocument, view: str
) -> None:
    assert document.evidence.measurement is not None
    assert f"{format_seconds(document.evidence.measurement.median_s)} per step" in views[view]


def test_shares_of_the_span_are_the_same_in_table_block_and_reading(
    views: dict[str, str], document: CheckDocument, report: Any
) -> None:
    op = max(report.top_ops, key=lambda top_op: top_op.host_share)
    text = f"{op.host_share:.3g}×"
    assert op.host_share > 1  # on two threads at the same time
    table = next(
        part for part in views["terminal"].split("Operators operator") if part.lstrip().startswith("calls")
    )
    assert text in table[:200]
    assert f"aten::mm takes {text} the traced time" in views["page"]
    assert "64×32, 32×16" in views["page"]
    assert "[[64" not in views["page"]


def test_a_median_of_an_even_number_of_steps_lies_between_the_middle_ones(report: Any) -> None:
    steps = report.steps[:2]
    shorter = msgspec.structs.replace(steps[0], end_ns=steps[0].end_ns - 1000)
    lengths = [one.end_ns - one.start_ns for one in (shorter, steps[1])]
    assert median_step(msgspec.structs.replace(report, steps=[shorter, steps[1]])) == sum(lengths) / 2


@pytest.mark.parametrize("view", WRITTEN)
def test_no_share_of_one_whole_is_above_it(views: dict[str, str], view: str) -> None:
    shares = [float(one) for one in re.findall(r"(?<![\d.])(\d+(?:\.\d+)?) %", views[view])]
    assert shares
    assert max(shares) <= 100, re.findall(r".{50}1\d\d(?:\.\d+)? %.{20}", views[view])
    assert "1.62× the step" in views[view]  # a worker's stage runs beside the step
    assert "1.25 CPUs" in views[view]


CODES = r"starved-steady|few_samples|competing_load|not_steady|\bNone\b|\bnan\b|\bpin thread\b|fix semantic|\b\d{7,} ns\b"


@pytest.mark.parametrize("view", WRITTEN)
def test_no_view_shows_names_that_only_the_program_needs(views: dict[str, str], view: str) -> None:
    text = views[view].replace("set them to None", "").replace("sets them to None", "")
    assert re.findall(CODES, text) == []
    assert re.findall(r"\d\.\d{6,}(?!\d*Z)", text) == []


def test_a_question_with_findings_is_never_fine() -> None:
    steps = read_profile(Case(target="t"), [waiting()])
    assert [(step.verdict, step.codes) for step in steps if step.codes] == [("look", ["PYR301"])]
    rows = reading_section(steps).table
    assert rows is not None
    assert all(row[1] not in {"fine", "not seen"} for row in rows.rows if row[3])


def finding(**evidence: Any) -> Finding:
    return Finding(
        code="PYR503", name="n", severity="info", message="m", where=Place(), confidence="low",
        advice=Advice(slug="a", title="a", fix_class="semantic"), evidence=evidence,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("share_of_roof", 0.0188, ("of the roof", "1.88 %")),
        ("seconds_per_call", 0.177, ("per call", "177 ms")),
        ("stalled_ns_per_step", 2.5e6, ("stalled per step", "2.50 ms")),
        ("gb_per_s", 24.0, ("", "24.0 GB/s")),
        ("bytes_per_step", 2**21, ("per step", "2.00 MiB")),
        ("num_gaps", 1234, ("gaps", "1,234")),
        ("half_width", 0.559, ("the median is known to ±", "55.9 %")),
        ("verdict", "serial", ("verdict", "loading and computing take turns")),
        ("shapes", "[[16,32],[32,8],[]]", ("shapes", "16×32, 32×8")),
    ],
)
def test_evidence_is_told_in_units_and_words(name: str, value: Any, told: tuple[str, str]) -> None:
    [card] = cards([finding(**{name: value})])
    fact = card.facts[-1]
    assert fact.value == told[1]
    assert not told[0] or fact.label == told[0]


@pytest.fixture
def fits() -> Callable[..., str]:
    def text(fit: Fit) -> str:
        profile = MemoryProfile(name="n", device="cpu", peak_bytes=1, ledger_bytes={"inputs": 1}, fits=[fit])
        table = next(section.table for section in sections(profile) if section.slug == "fits")
        assert table is not None
        return " | ".join(table.rows[0])

    return text


def test_a_search_that_ended_by_itself_says_so(fits: Callable[..., str]) -> None:
    assert fits(Fit(budget_bytes=2**40, max_batch=2**24, peak_bytes=2**30, is_capped=True)) == (
        "1.00 TiB | at least 16,777,216 | 1.00 GiB | larger ones were not looked for"
    )
    assert "any: nothing grows with it" in fits(Fit(budget_bytes=2**30, max_batch=None, peak_bytes=2**20))
    assert "not even one" in fits(Fit(budget_bytes=1, max_batch=None))
