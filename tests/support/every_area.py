"""Documents in which all areas have something to show, made of the records of several modules of tests."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from document_fixtures import changed

from pyrometer.advice import Advice, Cost, Gain
from pyrometer.place import Place
from pyrometer.report.attachments import Attachments, PastRun, SourceText
from pyrometer.report.documents import CheckDocument, Document
from pyrometer.report.facts.comparison import target as comparison_target
from pyrometer.report.history_documents import CompareDocument
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding
from pyrometer.store.comparison import compare_runs
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.verdict import judge
from pyrometer.trace.view.tables import tables_of
from pyrometer.trace.view.view import view_trace


class Case(NamedTuple):
    """A document with what its page draws beside it."""

    document: CheckDocument
    attachments: Attachments


@pytest.fixture(scope="session")
def rich(documents: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """Makes a check in which all areas have something to show; a text given stands wherever a user's text may."""

    @functools.cache
    def made(text: str = "") -> Case:
        return _rich(documents["training"], tmp_path_factory.mktemp("rich"), text)

    return made


def _rich(plain: CheckDocument, folder: Path, text: str) -> Case:
    traces, memory, compiled = (
        _beside(name) for name in ("test_trace_views", "test_memory_views", "test_compile_views")
    )
    names = {"op": text, "kernel": text, "file": f"{text}/net.py(3): {text}", "module": f"module:{text}"}
    writer = traces.Writer(names=names if text else None)
    for number in range(4):
        writer.step(number)
    rank = read_trace(writer.write(folder / "trace.json")).ranks[0]
    report = report_rank(rank)
    document = changed(
        plain,
        target=text or plain.target,
        command=["pyrometer", "check", text or plain.target],
        trace=report,
        trace_verdict=judge(report),
        memory=memory.profile(text),
        loading=memory.loading(text),
        compiled=compiled.report(text),
        findings=_findings(text),
        reading=[ReadingStep(question="is it steady?", answer=text or "yes", verdict="fine")],
        notes=[text] if text else [],
    )
    attachments = Attachments(
        traces=[view_trace(rank)],
        tables=[tables_of(rank)],
        sources=[SourceText(file=text or "train.py", first_line=10, lines=[text or "x = loss.item()"] * 6)],
        history=[PastRun(run_id=f"r{i}", created=f"2026-11-{i:02}", median_s=0.03) for i in range(1, 9)],
    )
    return Case(document, attachments)


@pytest.fixture(scope="session")
def areas(
    rich: Callable[[str], Case], measured: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """A document of each verb that has pages of its own, with its drawings, by the name of the verb."""
    traces, memory, compiled = (
        _beside(name) for name in ("test_trace_views", "test_memory_views", "test_compile_views")
    )
    comparison = compare_runs(measured.measured_run(0.002, age_s=60), measured.measured_run(0.001))
    compared = CompareDocument(target=comparison_target(comparison), comparison=comparison)
    return {
        "compare": (compared, Attachments(traces=rich("").attachments.traces * 2)),
        "ranks": _job(traces, tmp_path_factory.mktemp("job")),
        "compile": (compiled.document(compiled.report()), Attachments()),
        "memory": (memory.document(memory.profile()), Attachments()),
        "snapshot": (memory.snapshot_document(memory.snapshot()), Attachments()),
    }


def _job(traces: ModuleType, folder: Path) -> tuple[Document, Attachments]:
    """Three ranks, of which the last one computes for longer between collectives and makes the others wait."""
    paths = []
    for rank in range(3):
        writer = traces.Writer(rank=rank, world=3)
        for number in range(5):
            writer.step(number, late_us=60 * (rank == 2))
        paths.append(writer.write(folder / f"rank{rank}.json"))
    ranks = [read_trace(path).ranks[0] for path in paths]
    attachments = Attachments(
        traces=[view_trace(rank) for rank in ranks], tables=[tables_of(rank) for rank in ranks]
    )
    return traces.of_files(*paths, target="rank0.json rank1.json rank2.json"), attachments


def _findings(text: str) -> list[Finding]:
    def finding(code: str, name: str, links: list[str], **more: Any) -> Finding:
        return Finding(
            code=code, name=name, severity=more.pop("severity", "warning"), message=text or f"{name} costs 48 % of a step",
            where=Place(file=text or "train.py", line=12, function=text or "step"), confidence="high", links=links,
            advice=Advice(
                slug="a", title=text or "Load with `num_workers=2`.", fix_class="semantic",
                rewrite=text or "DataLoader(..., num_workers=2)", gain=more.pop("gain", None),
            ),
            cost=Cost(seconds_per_step=0.09, share=0.48, method="measured: the wait"), **more,
        )  # fmt: skip

    gain = Gain(ratio_low=0.52, ratio_high=0.74, method="measured: the step without waiting")
    return [
        finding("PYR301", "data-waits", ["/loading/stages"], gain=gain),
        finding("PYR302", "no-workers", ["/loading/advice/0"], overlaps=["PYR301"]),
        finding("PYR101", "item-in-hot-loop", ["/trace/sync_points/0", "/trace/breakdown_ns"]),
        finding("PYR401", "graph-break", ["/compiled/breaks/0"], severity="error"),
        finding("PYR220", "leak", ["/memory/leak", "/predict"], severity="info"),
    ]


def _beside(name: str) -> ModuleType:
    """A module of tests of the report, whose makers of records are used here as well."""
    path = Path(__file__).parents[1] / "report" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"made_by_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
