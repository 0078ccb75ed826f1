"""Five classic bottlenecks: a capture of each leads with its finding and the line, and one without the mistake does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from document_fixtures import document_of

from pyrometer.evidence.evidence import Evidence
from pyrometer.report.documents import TraceDocument
from pyrometer.report.facts import trace as of_rank
from pyrometer.report.facts import trace_document
from pyrometer.rules.explain import explain
from pyrometer.rules.finding import Finding
from pyrometer.trace.capture.record import CaptureOptions
from pyrometer.trace.capture.workload import record_trace
from pyrometer.trace.records.rank import RankReport, TraceVerdict
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.verdict import judge
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target

pytestmark = pytest.mark.measuring  # which finding is first rests on shares of time

EXAMPLES = Path(__file__).parents[2] / "examples" / "bottlenecks"
NAMES = tuple(path.stem for path in sorted(EXAMPLES.glob("*.py")))
OPTIONS = CaptureOptions(record_shapes=True, with_stack=True, profile_memory=True, with_modules=True)
STEPS = {"slow_loader": 1, "tiny_ops": 1}
"""These record many events per step; of the others two are traced."""


class Seen(NamedTuple):
    """What one capture says."""

    report: RankReport
    verdict: TraceVerdict

    @property
    def findings(self) -> list[Finding]:
        """What the rules say of it, the most rewarding first."""
        return explain(Evidence(target="test", trace=self.report, trace_verdict=self.verdict)).findings

    def first(self) -> tuple[str, Finding]:
        """Code of the first finding, and the finding."""
        return self.findings[0].code, self.findings[0]

    def steps(self) -> int:
        """Traced steps."""
        return len(self.report.steps)


@pytest.fixture(scope="module")
def seen() -> Callable[..., Seen]:
    """Captures a variant of an example, once; on one thread, so that steps are alike on any machine."""
    found: dict[tuple[str, str], Seen] = {}
    threads = torch.get_num_threads()

    def capture(name: str, factory: str = "workload") -> Seen:
        if (name, factory) not in found:
            torch.set_num_threads(1)
            try:
                work = load_workload(parse_target(f"{EXAMPLES / name}.py:{factory}", ()))
                trace = record_trace(work, steps=STEPS.get(name, 2), options=OPTIONS)
            finally:
                torch.set_num_threads(threads)
            report = report_rank(trace.ranks[0])
            found[name, factory] = Seen(report, judge(report))
        return found[name, factory]

    return capture


def line_of(name: str, text: str) -> int:
    """The line of an example that holds a text: where its function begins."""
    lines = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def working(report: RankReport) -> list[Any]:
    """The lines whose file is an example: threads that wait, such as that of pytest-xdist, are not of the program."""
    return [line for line in report.top_lines if Path(line.file or "").stem in NAMES]


def is_at(where: Any, name: str, function: str, text: str | None = None) -> bool:
    """Whether a place is a function of an example, at the line where it begins."""
    line = line_of(name, text or f"def {function}(")
    return (Path(where.file or "").name, where.function, where.line) == (f"{name}.py", function, line)


def test_a_slow_loader_is_named(seen: Callable[..., Seen]) -> None:
    report, verdict = slow = seen("slow_loader")
    assert verdict.bound == "data"
    assert verdict.share > 0.5
    assert verdict.sentence.startswith("data-bound: ")
    assert re.search(r"in (decode|<genexpr>) \(slow_loader\.py:\d+\)", verdict.sentence)
    assert is_at(working(report)[0], "slow_loader", "decode")
    assert report.critical_path.mostly == "data"
    gain = report.recoverable[0]
    assert (gain.kind, gain.ratio < 0.6) == ("data", True)
    code, finding = slow.first()
    assert (code, is_at(finding.where, "slow_loader", "decode")) == ("PYR301", True)


def test_what_a_vectorised_loader_leaves_is_much_less(seen: Callable[..., Seen]) -> None:
    slow, fast = seen("slow_loader").report, seen("slow_loader", "fixed").report
    assert fast.breakdown_ns.data / fast.span_ns < slow.breakdown_ns.data / slow.span_ns
    assert not any(line.function == "decode" for line in fast.top_lines)


def test_fetching_every_element_is_named(seen: Callable[..., Seen]) -> None:
    report = (each := seen("item_each_step")).report
    point = report.sync_points[0]
    assert (point.name, point.num_calls) == ("aten::item", 512 * each.steps())
    assert is_at(point.where, "item_each_step", "logged_loss")
    assert report.synchronisation.would_stall
    code, finding = each.first()
    assert (code, is_at(finding.where, "item_each_step", "logged_loss")) == ("PYR101", True)
    assert "runs 512× per step" in finding.message


def test_a_quiet_loss_fetches_nothing(seen: Callable[..., Seen]) -> None:
    quiet = seen("item_each_step", "fixed")
    assert not [point for point in quiet.report.sync_points if point.num_calls >= quiet.steps()]


def test_thousands_of_tiny_operators_are_named(seen: Callable[..., Seen]) -> None:
    report = (tiny := seen("tiny_ops")).report
    dispatch = report.launches.host
    assert dispatch.ops_per_step is not None
    assert dispatch.ops_per_step > 5000
    assert is_at(dispatch.sites[0].where, "tiny_ops", "forward")
    assert is_at(working(report)[0], "tiny_ops", "forward")
    code, finding = tiny.first()
    assert (code, is_at(finding.where, "tiny_ops", "forward")) == ("PYR111", True)
    assert not report.sync_points, "what an operator reads for itself on the CPU is no synchronisation point"


def test_an_inefficient_operator_is_named(seen: Callable[..., Seen]) -> None:
    report, verdict = sort = seen("inefficient_op")
    top = max(report.top_ops, key=lambda op: op.host_self_ns)
    assert top.name == "aten::sort"
    assert top.host_share > 0.4
    code, finding = sort.first()
    assert (code, is_at(finding.where, "inefficient_op", "forward")) == ("PYR516", True)
    assert "aten::sort takes " in verdict.sentence
    assert "in forward (inefficient_op.py:" in verdict.sentence


def test_memory_that_comes_and_goes_is_named(seen: Callable[..., Seen]) -> None:
    report = (churn := seen("memory_churn")).report
    site = report.memory.sites[0]
    expected = sum(n * 256 * 64 * 4 for n in range(1, 100))  # all buffers but the last, which is the result
    assert site.where.op == "aten::cat"
    assert is_at(site.where, "memory_churn", "forward")
    assert expected <= site.churn_bytes_per_step <= 1.05 * expected
    assert site.turnover is not None
    assert site.turnover > 10
    code, finding = churn.first()
    assert (code, is_at(finding.where, "memory_churn", "forward")) == ("PYR215", True)


@pytest.mark.parametrize("name", NAMES)
def test_without_the_mistake_its_rule_is_silent(seen: Callable[..., Seen], name: str) -> None:
    first, fixed = seen(name).findings[0], seen(name, "fixed").findings
    assert (first.code, first.where.op) not in {(finding.code, finding.where.op) for finding in fixed}


@pytest.mark.parametrize("factory", ["workload", "fixed"])
@pytest.mark.parametrize("name", NAMES)
def test_what_starts_the_program_is_no_place_in_it(
    seen: Callable[..., Seen], name: str, factory: str
) -> None:
    lines = seen(name, factory).report.top_lines
    assert not [line for line in lines if line.file in {"pyrometer", "pytest", "execnet"}]
    assert {Path(line.file or "").name for line in lines if line.num_ops} <= {
        f"{name}.py",
        "test_bottlenecks.py",
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_not_below_the_one_before_it(seen: Callable[..., Seen], name: str) -> None:
    report = seen(name).report
    steps = [node for node in report.call_tree if node.name == "ProfilerStep"]
    assert [node.calls for node in steps] == [seen(name).steps()]
    phases = [node.name for node in report.call_tree if node.name.startswith("phase:")]
    assert len(phases) == len(set(phases)), "steps merge, phase by phase"


@pytest.mark.parametrize("name", NAMES)
def test_shares_are_shares(seen: Callable[..., Seen], name: str) -> None:
    report = seen(name).report
    assert report.breakdown_ns.total_ns == report.span_ns
    for phase in report.phases.phases:
        assert 0 <= phase.host_share <= 1
    # A call begins before the first event of the span and may be held up there, so that its share is no part of one.
    for line in report.top_lines:
        assert line.host_share == pytest.approx(line.self_ns / report.span_ns)
        assert 0 <= line.forward_ns <= (line.total_ns or line.forward_ns)


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_comes_first_in_words(seen: Callable[..., Seen], name: str) -> None:
    report, verdict = seen(name)
    document = document_of(TraceDocument, target=f"{name}.py:workload", trace_verdict=verdict, ranks=[report])
    assert trace_document.headline(document) == verdict.sentence
    listed = {section.slug for section in of_rank.sections(report)}
    assert {
        "breakdown",
        "health",
        "path",
        "phases",
        "lines",
        "operators",
        "launches",
        "allocations",
    } <= listed
