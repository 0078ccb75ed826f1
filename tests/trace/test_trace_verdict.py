"""The sentence about a trace: what bounds it, what takes most of that, and who makes others wait."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pyrometer.trace.jobs.job import Job, Straggler
from pyrometer.trace.records.rank import RankReport, TraceVerdict
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.verdict import judge, judge_all


def judged(builder: Any) -> TraceVerdict:
    return judge(report_rank(builder.read()))


def test_kernels_that_fill_the_time_are_compute_bound(builder: Any) -> None:
    builder.op("aten::mm", 0, 20)
    builder.launch("gemm", 5, 20, 980)
    verdict = judged(builder)
    assert (verdict.bound, verdict.share) == ("compute", 0.98)
    assert verdict.sentence.startswith("compute-bound: kernels run 98.0 % of the time")
    assert "aten::mm takes 98.0 %" in verdict.sentence


def test_copies_that_nothing_hides_bound(builder: Any) -> None:
    builder.op("aten::to", 0, 20)
    builder.launch("Memcpy HtoD (Pageable -> Device)", 5, 20, 900, cat="gpu_memcpy")
    builder.launch("gemm", 10, 920, 80)
    assert judged(builder).bound == "copies"


def test_communication_that_nothing_hides_bounds(builder: Any) -> None:
    builder.op("aten::mm", 0, 20)
    builder.launch("gemm", 5, 20, 100)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 10, 120, 880, stream=20)
    verdict = judged(builder)
    assert verdict.bound == "communication"
    assert "88.0 % of the time goes to communication that nothing hides" in verdict.sentence
    assert "; 880 µs of communication in 1 collective, all of it in the open" in verdict.sentence


def test_communication_in_the_open_is_told_whatever_bounds(builder: Any) -> None:
    for step in range(2):
        at = 1000 * step
        builder.annotate(f"ProfilerStep#{step}", at, 1000)
        builder.launch("gemm", at, at + 10, 500)
        for start in (410, 610, 810):  # half of the first is hidden
            builder.launch(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + start - 10, at + start, 200, stream=20
            )
    verdict = judged(builder)
    assert "; 600 µs of communication per step in 3 collectives, 83.3 % in the open" in verdict.sentence


def test_communication_that_is_hidden_is_not_told(builder: Any) -> None:
    builder.launch("gemm", 0, 10, 990)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 5, 100, 500, stream=20)
    assert "in the open" not in judged(builder).sentence


def test_turns_of_host_and_device_are_synchronisation_bound(builder: Any) -> None:
    for at in range(0, 2000, 200):
        builder.op("aten::mm", at, 100)
        builder.launch("gemm", at + 90, at + 100, 100)
        builder.call("cudaDeviceSynchronize", at + 101, 99)
    verdict = judged(builder)
    assert verdict.bound == "synchronisation"
    assert verdict.share == pytest.approx(0.45, abs=0.03)
    assert "; mostly in cudaDeviceSynchronize" in verdict.sentence


def reading_after_each(builder: Any) -> TraceVerdict:
    """Host and device take turns: a long launch, its kernel, and a copy to the host that returns when it has arrived."""
    for at in range(0, 2400, 200):
        builder.op("aten::mm", at, 96)
        builder.launch("gemm", at + 76, at + 95, 100, call_us=17)
        builder.op("aten::item", at + 96, 104)
        builder.launch(
            "Memcpy DtoH (Device -> Pageable)", at + 97, at + 196, 1, cat="gpu_memcpy", call_us=102
        )
        builder.call("cudaStreamSynchronize", at + 199, 0.5)
    return judged(builder)


def test_the_gain_in_the_sentence_is_of_what_bounds(builder: Any) -> None:
    verdict = reading_after_each(builder)
    assert verdict.bound == "synchronisation"
    told = next(gain for gain in verdict.recoverable if gain.kind == "sync")
    assert told.ratio == pytest.approx(verdict.ratio)
    assert verdict.sentence.endswith(f"; without {told.name}, {1 / told.ratio:.2f}× faster")


def test_a_wait_for_what_was_not_recorded_is_not_explained(builder: Any) -> None:
    builder.op("aten::mm", 0, 20)
    builder.launch("gemm", 5, 20, 30)
    builder.call("cudaDeviceSynchronize", 40, 900)
    builder.op("aten::mm", 950, 20)
    builder.launch("gemm", 960, 970, 30)
    verdict = judged(builder)
    assert verdict.bound == "unrecorded"
    assert verdict.sentence.startswith("nothing recorded explains 8")
    assert verdict.sentence.endswith("; the host waits in cudaDeviceSynchronize")


def test_a_step_without_data_is_data_bound(builder: Any) -> None:
    builder.op("aten::zeros", -20, 20)
    builder.annotate("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 900)
    builder.python("dataset.py(7): decode", 10, 880)
    builder.op("aten::mm", 910, 20)
    builder.launch("gemm", 915, 930, 70)
    verdict = judged(builder)
    assert verdict.bound == "data"
    assert verdict.sentence.startswith("data-bound: 88.2 % of the time the step waits for its data")
    assert "loading is mostly in decode (dataset.py:7)" in verdict.sentence


def test_a_data_bound_sentence_says_once_what_data_takes(builder: Any) -> None:
    builder.annotate("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 900)
    builder.op("aten::mm", 910, 20)
    builder.launch("gemm", 915, 930, 70)
    assert judged(builder).sentence == "data-bound: 90.0 % of the time the step waits for its data"


def waiting_for_a_loader(builder: Any, *, decode_us: float) -> Any:
    """A training loop whose loader collates samples for longer than it decodes them: a pause fell into that."""
    torch = "/lib/python3.11/site-packages/torch/utils/data"
    builder.python("/home/me/train.py(5): main", 0, 1000)
    builder.op("aten::zeros", 1, 5)
    builder.python(f"{torch}/dataloader.py(720): __next__", 10, 590)
    builder.python(f"{torch}/_utils/collate.py(118): collate", 20, 400)
    if decode_us:
        builder.python("/home/me/pictures.py(7): decode", 430, decode_us)
    builder.op("aten::mm", 600, 100)
    return builder


def test_loading_is_mostly_in_a_function_within_it_and_not_in_the_one_that_waits(builder: Any) -> None:
    sentence = judged(waiting_for_a_loader(builder, decode_us=150)).sentence
    assert "loading is mostly in decode (pictures.py:7)" in sentence


def test_where_the_time_in_a_loader_is_torchs_own_no_function_is_named(builder: Any) -> None:
    verdict = judged(waiting_for_a_loader(builder, decode_us=0))
    assert verdict.bound == "data"
    assert "loading is mostly" not in verdict.sentence


def test_a_device_that_waits_for_operators_is_host_bound(builder: Any) -> None:
    for at in range(0, 1000, 100):
        builder.op("aten::add", at, 95)
        builder.launch("add", at + 5, at + 15, 5)
    verdict = judged(builder)
    assert verdict.bound == "host"
    assert verdict.sentence == (
        "host-bound: 93.6 % of the traced span the device waits for the host; most of its work is operators, the longest "
        "aten::add; without launch overhead, 1.05× faster"
    )


@pytest.mark.parametrize(
    ("python", "cause"),
    [
        (True, "Python, the longest in main (train.py:3)"),
        (False, "what was not recorded: with_stack=True records Python"),
    ],
)
def test_host_time_between_operators_is_a_cause_and_no_gain(builder: Any, python: bool, cause: str) -> None:
    if python:
        builder.python("train.py(3): main", 0, 1000)
    for at in range(0, 1000, 100):
        builder.op("aten::add", at, 20)
        builder.launch("add", at + 5, at + 15, 60)
    verdict = judged(builder)
    assert f"most of its work is {cause}" in verdict.sentence
    assert not [gain for gain in verdict.recoverable if gain.kind == "gap"]


def test_few_launches_that_hold_the_device_up_are_told(builder: Any) -> None:
    for step in range(3):
        builder.annotate(f"ProfilerStep#{step}", 1000 * step, 1000)
        for at in range(1000 * step, 1000 * step + 1000, 100):
            builder.op("aten::add", at, 95)
            builder.launch("add", at + 1, at + 95, 3, call_us=93)
    assert "; most of its work is launches, 10 launches per step" in judged(builder).sentence


def test_without_a_device_operators_or_python_bound(builder: Any) -> None:
    builder.python("train.py(3): main", 0, 1000)
    builder.op("aten::sort", 0, 700)
    builder.op("aten::add", 990, 10)
    verdict = judged(builder)
    assert (verdict.bound, verdict.share) == ("operators", 0.71)
    assert (
        verdict.sentence == "operators take 71.0 % of the time; aten::sort takes 70.0 % in main (train.py:3)"
    )


def test_python_between_operators_bounds(builder: Any) -> None:
    builder.python("train.py(3): main", 0, 1000)
    builder.op("aten::add", 0, 10)
    builder.op("aten::add", 990, 10)
    verdict = judged(builder)
    assert verdict.bound == "python"
    assert verdict.sentence.startswith(
        "Python-bound: 98.0 % of the time runs Python outside of operators; 100 % in main"
    )


def test_an_empty_trace_has_a_verdict(builder: Any) -> None:
    verdict = judged(builder)
    assert (verdict.share, verdict.recoverable) == (0.0, [])
    assert verdict.sentence


@pytest.fixture
def reports(builder: Any) -> list[RankReport]:
    builder.op("aten::mm", 0, 20)
    builder.launch("gemm", 5, 20, 980)
    report = report_rank(builder.read())
    return [msgspec.structs.replace(report, rank=rank) for rank in range(3)]


def job(*late: int) -> Job:
    stragglers = [
        Straggler(
            rank=rank, caused_wait_ns=2_500_000, delay_ns=900_000, gain_ns=800_000, num_last=9, share=0.9, num_steps=5,
            persistence=1.0,
        )
        for rank in late
    ]  # fmt: skip
    return Job(ranks=[], stragglers=stragglers)


def test_of_data_no_more_is_promised_than_was_measured_without_the_profiler(builder: Any) -> None:
    builder.annotate("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 500)
    builder.python("dataset.py(7): decode", 10, 480)
    builder.op("aten::zeros", -20, 20)
    builder.op("aten::mm", 500, 1100)
    report = report_rank(builder.read())
    assert "without data loading, 1.45× faster" in judge(report).sentence
    assert "without data loading, 1.25× faster" in judge(report, data_share=0.2).sentence
    assert "without data loading" not in judge(report, data_share=0.01).sentence


def test_the_measured_share_of_data_stands_for_the_one_that_the_profiler_distorts(builder: Any) -> None:
    builder.annotate("ProfilerStep#0", 0, 1000)
    builder.annotate("phase:data", 0, 800)
    builder.op("aten::mm", 800, 200)
    report = report_rank(builder.read())
    assert judge(report).sentence.startswith("data-bound: 80.0 % of the time")
    verdict = judge(report, data_share=0.3)
    assert verdict.sentence.startswith("operators take 70.0 % of the time")
    assert (verdict.bound, verdict.share) == ("operators", pytest.approx(0.7))


def test_of_a_job_the_rank_that_others_wait_for_is_judged(reports: list[RankReport]) -> None:
    verdict = judge_all(reports, job(2, 1))
    assert verdict is not None
    assert verdict.rank == 2
    assert verdict.sentence.startswith("rank 2 makes the others wait 2.50 ms; on it, compute-bound: ")


def test_of_a_job_in_step_the_first_rank_is_judged(reports: list[RankReport]) -> None:
    assert judge_all(reports, job()) == judge(reports[0])
    assert judge_all(reports, None) == judge(reports[0])
    assert judge_all([], None) is None


def test_sentences_about_real_traces_are_whole_and_short(real_trace: Any) -> None:
    from pyrometer.trace.reading.read import read_trace

    sentence = judge(report_rank(read_trace(real_trace).ranks[0])).sentence
    assert "None" not in sentence
    assert "  " not in sentence
    assert sentence == sentence.strip(" ;")
    assert len(sentence) < 400
