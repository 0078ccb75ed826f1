"""A profile read in the order in which an expert does: on a trace with a device, on none, and on real programs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyrometer.advice import Advice, Cost
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding
from pyrometer.rules.reading.steps import QUESTIONS, read_profile
from pyrometer.trace.reporting.rank_report import report_rank
from recorded import evidence_of

KEYS = [key for key, _ in QUESTIONS]


def answers(case: Case, findings: list[Finding] | None = None) -> dict[str, ReadingStep]:
    return dict(zip(KEYS, read_profile(case, findings or []), strict=True))


def found(code: str, line: int | None = None, **more: Any) -> Finding:
    fields: dict[str, Any] = {"severity": "warning", "confidence": "high", **more}
    return Finding(
        code=code,
        name="n",
        message="m",
        where=Place(file="a.py", line=line),
        advice=Advice(slug="a", title="a", fix_class="exact"),
        **fields,
    )


def measured(**more: Any) -> Any:
    fields = {
        "steady": True,
        "complete": True,
        "warnings": [],
        "warmup_steps": 3,
        "median_s": 0.01,
        "ci_low_s": 0.0099,
        "ci_high_s": 0.0101,
    }
    return SimpleNamespace(**{"num_samples": 50, **fields, **more})


def test_without_evidence_every_answer_is_unknown_and_says_why() -> None:
    for step in read_profile(Case(target="t"), []):
        assert step.verdict == "unknown"
        assert step.answer


def test_the_questions_stand_in_the_order_of_asking() -> None:
    assert KEYS == ["sound", "host", "size", "calls", "shapes", "line"]


@pytest.mark.parametrize(
    ("how", "verdict"),
    [
        ({}, "fine"),
        ({"warnings": ["two CPUs were busy"]}, "look"),
        ({"steady": False}, "bad"),
        ({"complete": False}, "bad"),
    ],
)
def test_what_was_measured_decides_whether_the_rest_can_be_believed(
    how: dict[str, Any], verdict: str
) -> None:
    assert answers(Case(target="t", measurement=measured(**how)))["sound"].verdict == verdict


def test_one_sample_does_not_make_the_median_known() -> None:
    step = answers(Case(target="t", measurement=measured(num_samples=1)))["sound"]
    assert "a single sample has no spread" in step.answer
    assert "±" not in step.answer


def test_a_heavy_profiler_is_told() -> None:
    capture: Any = SimpleNamespace(overhead_ratio=3.0)
    step = answers(Case(target="t", measurement=measured(), capture=capture))["sound"]
    assert step.verdict == "look"
    assert "3.00×" in step.answer
    assert "small operators look larger" in step.answer


def busy_device(builder: Any) -> Case:
    """Three steps of 1 ms in which one long kernel runs for 0.9 ms."""
    for i in range(3):
        start = i * 1000
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.python("train.py(4): step", start + 1, 990)
        builder.op("aten::mm", start + 5, 20)
        builder.launch("gemm", start + 8, start + 15, 900)
    return Case(target="t", trace=report_rank(builder.read()))


def test_a_busy_device_is_where_to_look_first(builder: Any) -> None:
    read = answers(busy_device(builder))
    assert read["host"].answer.startswith("the device 9")
    assert read["host"].verdict == "fine"
    assert read["size"].evidence["op"] == "aten::mm"
    assert read["size"].verdict == "look"  # one operator with 90 % of the time
    assert read["calls"].answer.startswith("aten::mm 1.00 × 900 µs")
    assert read["line"].answer.startswith("step (train.py:4)")
    assert read["line"].evidence["line"] == 4


def test_a_device_that_waits_for_many_small_launches_is_seen(builder: Any) -> None:
    for i in range(2):
        start = i * 4000
        builder.annotate(f"ProfilerStep#{i}", start, 4000)
        builder.python("train.py(4): step", start, 3990)
        for k in range(150):
            at = start + 5 + 25 * k
            builder.op("aten::sub", at, 20)
            builder.launch("sub_kernel", at + 8, at + 15, 3)
    read = answers(Case(target="t", trace=report_rank(builder.read())))
    assert read["host"].verdict == "look"
    assert read["host"].answer.startswith("the host, the device idle")
    assert read["size"].evidence["per_step"] == 150
    assert read["size"].evidence["short_share"] == 1.0
    assert read["size"].verdict == "look"


def test_without_a_roof_the_shapes_of_the_largest_operator_are_named(builder: Any) -> None:
    builder.annotate("ProfilerStep#0", 0, 1000)
    seen = {"Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"]}
    builder.op("aten::mm", 5, 900, **seen)
    step = answers(Case(target="t", trace=report_rank(builder.read())))["shapes"]
    assert step.verdict == "unknown"
    assert "aten::mm on 8×4, 4×2" in step.answer


def test_findings_are_put_to_the_questions_that_they_answer() -> None:
    some = [
        found("PYR010"),
        found("PYR301", 3, cost=Cost(share=0.5, method="m")),
        found("PYR109", 7),
        found("PYR501"),
    ]
    read = answers(Case(target="t"), some)
    assert read["sound"].codes == ["PYR010"]
    assert read["host"].codes == ["PYR301", "PYR109"]
    assert read["size"].codes == ["PYR109"]
    assert read["shapes"].codes == ["PYR501"]
    assert read["line"].codes == ["PYR301"]  # a place and a cost


def of_program(name: str) -> dict[str, ReadingStep]:
    """The reading of the trace of one of the five classic bottlenecks."""
    return answers(Case(target="t", trace=evidence_of(name).trace))


@pytest.mark.parametrize(
    ("name", "key", "part"),
    [
        ("slow_loader", "host", "waiting for data"),
        ("item_each_step", "line", "logged_loss (item_each_step.py:16)"),
        ("tiny_ops", "line", "forward (tiny_ops.py:16)"),
        ("inefficient_op", "calls", "aten::sort 2.00 ×"),
        ("memory_churn", "calls", "aten::cat 100 ×"),
        ("memory_churn", "line", "forward (memory_churn.py:21)"),
    ],
)
def test_the_reading_of_a_real_program_leads_to_its_fault(name: str, key: str, part: str) -> None:
    assert part in of_program(name)[key].answer


def test_thousands_of_operators_are_told_apart_from_one() -> None:
    assert of_program("tiny_ops")["size"].evidence["per_step"] > 5000
    assert of_program("inefficient_op")["size"].evidence["per_step"] < 100


def test_a_file_without_steps_or_operators_is_read_as_what_it_is(builder: Any) -> None:
    for k in range(4):
        builder.launch("kernel", 100 * k, 100 * k + 10, 20)
    read = answers(Case(target="t", trace=report_rank(builder.read())))
    assert read["sound"].answer.startswith("confidence in the trace is ")
    assert read["size"].answer == "the trace holds no operators"
    builder.op("aten::add", 0, 400)
    read = answers(Case(target="t", trace=report_rank(builder.read())))
    assert "; 4 kernel launches, " in read["size"].answer


def test_time_in_which_nothing_was_recorded_is_told(builder: Any) -> None:
    builder.op("aten::add", 0, 100)
    builder.op("aten::add", 900, 100)
    read = answers(Case(target="t", trace=report_rank(builder.read())))
    assert read["host"].answer.startswith("nothing that was recorded 80.0 % of the traced time")
    assert read["host"].verdict == "look"
