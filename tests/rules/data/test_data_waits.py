"""PYR301: steps that wait for their data."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pyrometer.rules.case import Case
from pyrometer.rules.explain import findings_of
from pyrometer.rules.finding import Finding
from pyrometer.rules.ranking import ranked
from pyrometer.rules.registry import select
from pyrometer.source.module import Module
from recorded import FILES, case_of_program

KINDS = ("loading", "trace")


def slow() -> Case:
    """A loader that decodes slowly."""
    return case_of_program("slow_loader", "workload", *KINDS)


def mended() -> Case:
    return case_of_program("slow_loader", "fixed", *KINDS)


def test_a_slow_loader_is_the_top_finding_with_its_slow_function_and_a_lever() -> None:
    file = FILES["slow_loader"]
    top = ranked(findings_of(slow(), select(["PYR3"])))[0]
    line = next(i for i, text in enumerate(file.read_text().splitlines(), 1) if "def decode(" in text)
    assert (top.code, top.severity) == ("PYR301", "warning")
    assert (
        top.confidence != "low"
    )  # medium where a busy machine made the watched steps others than the measured ones
    assert (top.where.file, top.where.line, top.where.function) == (str(file), line, "decode")
    assert top.advice.lever == "num_workers"
    assert top.cost is not None
    assert top.cost.share is not None
    assert top.cost.share > 0.5
    assert top.advice.gain is not None
    assert top.advice.gain.ratio_low == pytest.approx(1 - top.cost.share)
    assert "mostly in decode" in top.message


def test_all_findings_about_the_same_wait_overlap() -> None:
    _, *others = ranked(findings_of(slow(), select(["PYR3"])))
    assert others
    assert all("PYR301" in finding.overlaps for finding in others if finding.resource == "data")


def test_where_the_loader_knows_nothing_better_only_a_step_that_is_mostly_loading_is_told(
    loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    assert findings("PYR301", Case(target="a", loading=loading(data_share=0.5, advice=[]))) == []
    (finding,) = findings("PYR301", Case(target="a", loading=loading(data_share=0.9, advice=[])))
    assert finding.advice.lever == "num_workers"
    assert finding.advice.text == "Make batches while the step runs."


def test_faster_decoding_leaves_no_word_of_the_slow_function() -> None:
    before, after = slow().loading, mended().loading
    assert before is not None
    assert after is not None
    assert after.wait_s < before.wait_s / 2
    findings = findings_of(mended(), select(["PYR3"]))
    assert not [finding for finding in findings if finding.where.function == "decode"]


def test_a_healthy_loader_is_left_alone(
    loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    report = loading(verdict="healthy", data_share=0.04)
    assert findings("PYR301", Case(target="a", loading=report)) == []


def test_the_limit_is_the_users(
    loading: Callable[..., Any], advice: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    report = loading(data_share=0.3, advice=[advice("more-workers", 0.01)])
    assert len(findings("PYR301", Case(target="a", loading=report))) == 1
    assert findings("PYR301", Case(target="a", loading=report, limits={"PYR301.min_share": 0.4})) == []


@pytest.mark.parametrize(("step_s", "confidence"), [(0.1, "high"), (0.07, "medium"), (0.14, "medium")])
def test_the_measured_share_is_told_and_trusted_less_where_the_watched_steps_were_others(
    step_s: float, confidence: str, loading: Callable[..., Any], advice: Callable[..., Any]
) -> None:
    measured: Any = SimpleNamespace(
        complete=True,
        median_s=step_s,
        ci_low_s=0.95 * step_s,
        ci_high_s=1.05 * step_s,
        phases=[SimpleNamespace(name="data", share=0.133, mean_s=0.133 * step_s)],
    )
    report = loading(data_share=0.3, advice=[advice("more-workers", 0.01)], num_steps=12)
    evidence = Case(target="a", loading=report, measurement=measured)
    (finding,) = findings_of(evidence, select(["PYR301"]))
    assert finding.confidence == confidence
    assert finding.message.startswith("13.3 % of a step, ")
    assert finding.evidence["data_share"] == 0.133
    assert finding.cost is not None
    assert finding.cost.share == 0.133
    assert "of the steps whose phases were timed" in finding.cost.method


def test_without_measured_phases_the_share_is_that_of_the_watched_steps(
    loading: Callable[..., Any], advice: Callable[..., Any]
) -> None:
    report = loading(data_share=0.3, advice=[advice("more-workers", 0.01)], num_steps=12)
    (finding,) = findings_of(Case(target="a", loading=report), select(["PYR301"]))
    assert finding.message.startswith("30.0 % of a step, 30.0 ms of 100 ms")
    assert finding.cost is not None
    assert "of the 12 steps that watched the loader" in finding.cost.method


LEVERS = [
    ("starved-steady", "more-workers", "num_workers"),
    ("bursty", "deeper-queue", "prefetch_factor"),
    ("handover-bound", "no-workers", "num_workers"),
    ("starved-steady", "cheaper-samples", None),
]


@pytest.mark.parametrize("case", LEVERS)
def test_the_lever_is_that_of_the_advice(
    case: tuple[str, str, str | None],
    loading: Callable[..., Any],
    advice: Callable[..., Any],
    findings: Callable[..., list[Finding]],
) -> None:
    verdict, slug, lever = case
    report = loading(verdict=verdict, advice=[advice(slug, 0.02, lever)])
    (finding,) = findings("PYR301", Case(target="a", loading=report))
    assert finding.advice.lever == lever
    assert finding.advice.text.startswith(f"Do {slug}, which should save 20.0 ms per step")


def test_batches_from_no_loader_are_told_what_one_would_bring(
    loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    (finding,) = findings("PYR301", Case(target="a", loading=loading(verdict="no-loader")))
    assert "DataLoader with workers" in finding.advice.text
    assert finding.advice.gain is not None
    assert finding.advice.gain.ratio_high == 1.0


def test_a_trace_alone_tells_it_as_a_bound(findings: Callable[..., list[Finding]]) -> None:
    (finding,) = findings("PYR301", Case(target="a", trace=slow().trace))
    assert finding.confidence == "medium"
    assert finding.where.function == "decode"
    assert finding.advice.gain is not None
    assert finding.advice.gain.ratio_low is not None
    assert finding.advice.gain.ratio_low < 0.6
    assert finding.advice.gain.ratio_high == 1.0


def test_a_script_is_told_the_share_of_its_measured_steps_and_what_that_may_bring(
    findings: Callable[..., list[Finding]],
) -> None:
    trace = slow().trace
    assert trace is not None
    phases = [SimpleNamespace(name="data", share=0.4, mean_s=0.004)]
    measured: Any = SimpleNamespace(complete=True, median_s=0.01, ci_low_s=0.01, phases=phases)
    case = Case(
        target="a", trace=msgspec.structs.replace(trace, recoverable=[], steps=[]), measurement=measured
    )
    (finding,) = findings("PYR301", case)
    assert finding.message.startswith("the step waits for its data for 40.0 % of a step, 4.00 ms")
    assert finding.advice.gain is not None
    assert (finding.advice.gain.ratio_low, finding.advice.gain.ratio_high) == (pytest.approx(0.6), 1.0)


@pytest.mark.parametrize(
    ("iterator", "says"), [("_SingleProcess", "num_workers"), ("_MultiProcessing", "try more workers")]
)
def test_a_trace_of_a_loader_with_workers_asks_for_more_of_them(
    findings: Callable[..., list[Finding]], iterator: str, says: str
) -> None:
    trace = slow().trace
    assert trace is not None
    mark = msgspec.structs.replace(
        trace.critical_path.by_op[0], name=f"enumerate(DataLoader)#{iterator}DataLoaderIter.__next__"
    )
    path = msgspec.structs.replace(trace.critical_path, by_op=[mark])
    (finding,) = findings(
        "PYR301", Case(target="a", trace=msgspec.structs.replace(trace, critical_path=path))
    )
    assert says in finding.advice.text


EPOCHS = """
from torch.utils.data import DataLoader

def train(data, model, workers):
    loader = DataLoader(data, batch_size=8, num_workers={number}{kept})
    for epoch in range(9):
        for x in loader:
            model(x).sum().backward()
"""


@pytest.mark.parametrize(
    ("number", "kept", "says"),
    [
        ("2", "", "persistent_workers=True"),
        ("2", ", persistent_workers=True", "try more workers"),
        ("0", "", "(num_workers of the DataLoader)"),
    ],
)
def test_workers_that_start_anew_in_each_epoch_are_to_be_kept(
    findings: Callable[..., list[Finding]], number: str, kept: str, says: str
) -> None:
    module = Module.parse("train.py", EPOCHS.format(number=number, kept=kept))
    (finding,) = findings("PYR301", Case(target="a", trace=slow().trace, modules=[module]))
    assert says in finding.advice.text


@pytest.mark.parametrize("name", ["item_each_step", "inefficient_op"])
def test_programs_with_other_faults_are_left_alone(name: str) -> None:
    kinds = KINDS if name == "item_each_step" else ("trace",)
    assert findings_of(case_of_program(name, "workload", *kinds), select(["PYR3"])) == []
