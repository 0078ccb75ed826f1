"""One rank in one record: small, complete, exact, and the same wherever it is made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import msgspec
import pytest

from pyrometer.errors import InputError
from pyrometer.record import from_dict, to_dict
from pyrometer.trace.jobs.executor import SerialExecutor
from pyrometer.trace.linking.tree import nest
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.reporting import rank_report
from pyrometer.trace.reporting.job_report import digest, report_files, report_trace
from pyrometer.trace.reporting.rank_report import (
    MOST_MODULES,
    MOST_NODES,
    MOST_ROWS,
    MOST_SEQUENCES,
    report_rank,
    rows,
)
from pyrometer.trace.reporting.totals import OpTotal
from pyrometer.trace.trace import RankTrace, Results

MOST_BYTES = 600_000
"""Of a report as JSON, whatever the size of its trace."""


def some_steps(builder: Any, *, num_ops: int = 3) -> None:
    for step in range(3):
        at = 1000 * step
        builder.annotate(f"ProfilerStep#{step}", at, 990)
        builder.python("net.py(9): forward", at + 5, 900)
        for i in range(num_ops):
            begins = at + 10 + 800 * i / num_ops
            builder.op(f"aten::op{i}", begins, 500 / num_ops)
            builder.launch(f"kernel{i}", begins + 0.1, begins + 1, 600 / num_ops, call_us=0.2)


def test_a_report_says_who_where_and_how_much(builder: Any) -> None:
    some_steps(builder)
    report = report_rank(builder.read())
    assert (report.rank, Path(report.path).name) == (0, "trace.json")
    assert report.breakdown_ns.total_ns == report.span_ns
    assert report.num_kernels == 9
    assert report.kernel_sum_ns == report.kernel_busy_ns == 9 * 200_000
    assert (report.num_orphans, report.num_lost_events, report.repaired) == (0, 0, [])
    assert [step.name for step in report.steps] == [f"ProfilerStep#{i}" for i in range(3)]
    assert {(line.file, line.line, line.function) for line in report.top_lines} == {("net.py", 9, "forward")}
    assert report.device_busy_ns <= report.span_ns
    assert report.origin_ns <= min(gap.start_ns for gap in report.idle_gaps)


def test_long_tables_are_cut(builder: Any) -> None:
    some_steps(builder, num_ops=MOST_ROWS + 40)
    report = report_rank(builder.read())
    tables = (report.top_ops, report.top_lines, report.top_kernels, report.sync_points, report.roofline)
    assert max(map(len, tables)) == MOST_ROWS
    assert sum(op.device_self_ns for op in report.top_ops) < report.kernel_sum_ns


def test_sequences_products_and_places_are_in_it(builder: Any) -> None:
    halves = {"Input Dims": [[64, 64], [64, 50]], "Input type": ["c10::Half", "c10::Half"]}
    builder.head["deviceProperties"] = [
        {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}
    ]
    for step in range(4):
        builder.python("net.py(9): forward", 1000 * step, 900)
        builder.op("aten::mm", 1000 * step + 1, 50, **halves)
        builder.launch("ampere_fp16_s16816gemm", 1000 * step + 3, 1000 * step + 20, 40)
        for i, name in enumerate(("add", "mul", "tanh")):
            begins = 1000 * step + 100 + 30 * i
            builder.op(f"aten::{name}", begins, 20)
            builder.launch(f"elementwise_kernel<{name}>", begins + 2, begins + 10, 15)
    report = report_rank(builder.read())
    (sequence,) = report.sequences
    assert (sequence.count, sequence.where.function) == (4, "forward")
    assert sequence.ops == ["aten::mm", "aten::add", "aten::mul", "aten::tanh"]
    (product,) = report.tensor_cores
    assert (product.odd_size, product.multiple, product.tensor_core_ns) == (50, 8, 160_000)
    assert {(point.file, point.line, point.function) for point in report.roofline} == {
        ("net.py", 9, "forward")
    }
    assert report.idle.after_short_ns == 0


def test_no_more_sequences_are_kept_than_are_read(builder: Any) -> None:
    for i in range(60):
        for part in range(2):
            begins = 100 * i + 20 * part
            builder.op("aten::op", begins, 10)
            builder.launch(f"elementwise_kernel<f{i // 4}_{part}>", begins + 1, begins + 5, 12, call_us=1)
    assert len(report_rank(builder.read()).sequences) == MOST_SEQUENCES


def test_documents_that_were_stored_before_a_field_was_added_still_read(builder: Any) -> None:
    some_steps(builder)
    stored = to_dict(report_rank(builder.read()))
    del stored["sequences"], stored["tensor_cores"], stored["idle"]["after_short_ns"]
    assert from_dict(RankReport, stored).sequences == []


def test_the_report_of_an_empty_trace_is_empty(builder: Any) -> None:
    report = report_rank(builder.read())
    assert (report.span_ns, report.num_kernels, report.steps, report.top_ops, report.call_tree[1:]) == (
        0,
        0,
        [],
        [],
        [],
    )
    assert report.breakdown_ns.total_ns == 0
    assert from_dict(RankReport, to_dict(report)) == report


def test_a_real_trace_gives_a_small_report_that_can_be_stored(real_trace: Path) -> None:
    report = report_rank(read_trace(real_trace).ranks[0])
    text = msgspec.json.encode(report)
    assert len(text) < MOST_BYTES
    assert from_dict(RankReport, to_dict(report)) == report
    assert report.breakdown_ns.total_ns == report.span_ns
    assert len(report.call_tree) <= MOST_NODES
    assert len(report.top_modules) <= MOST_MODULES
    for step in report.steps:
        assert step.parts.total_ns <= step.end_ns - step.start_ns
    for share in (op.device_share for op in report.top_ops):
        assert share >= 0
    for phase in report.phases.phases:
        assert 0 <= phase.host_share <= 1


def test_nodes_of_the_call_tree_name_their_parents(real_trace: Path) -> None:
    tree = report_rank(read_trace(real_trace).ranks[0]).call_tree
    seen: dict[int, int] = {}
    for node in tree:
        assert (node.parent is None) == (not seen)
        if node.parent is not None:
            assert node.depth == seen[node.parent] + 1
        seen[node.node] = node.depth


@pytest.fixture
def files(new_builder: Any, tmp_path: Path) -> list[Path]:
    """Ranks 1 and 0, in this order."""
    made = []
    for rank in (1, 0):
        builder = new_builder(tmp_path, distributedInfo={"rank": rank, "world_size": 2})
        some_steps(builder)
        made.append(builder.write(f"rank{rank}.json"))
    return made


def test_files_are_reported_in_order_of_rank(files: list[Path]) -> None:
    job_report = report_files(files, executor=SerialExecutor())
    assert [report.rank for report in job_report.ranks] == [0, 1]
    assert job_report.job is not None
    assert job_report.job.world_size == 2


def test_an_open_trace_and_its_files_are_reported_alike(files: list[Path]) -> None:
    apart = report_files(files, executor=SerialExecutor())
    whole = report_trace(read_trace(files))
    assert to_dict(whole.ranks[0]) == to_dict(apart.ranks[0])
    assert whole.job == apart.job


def test_one_file_is_no_job(files: list[Path]) -> None:
    report = report_files(files[:1])
    assert (len(report.ranks), report.job) == (1, None)


def test_what_cannot_be_read_is_a_failure_of_the_job(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("[1, 2")
    report = report_files([*files, tmp_path / "bad.json"], executor=SerialExecutor())
    assert len(report.ranks) == 2
    assert report.job is not None
    (failure,) = report.job.failures
    assert "bad.json" in failure.message
    with pytest.raises(InputError, match=r"bad\.json"):
        report_files([*files, tmp_path / "bad.json"], executor=SerialExecutor(), strict=True)
    with pytest.raises(InputError, match=r"bad\.json"):
        report_files([tmp_path / "bad.json"])


def test_a_damaged_file_is_reported_on_unless_strict(files: list[Path]) -> None:
    files[0].write_text(files[0].read_text()[:-900])
    (report,) = report_files(files[:1]).ranks
    assert report.repaired
    assert report.num_lost_events or report.num_events
    with pytest.raises(InputError, match=r"rank1\.json"):
        report_files(files[:1], strict=True)


def test_a_digest_needs_nothing_but_its_trace(files: list[Path]) -> None:
    trace = read_trace(files[0]).ranks[0]
    assert digest(trace) == digest(read_trace(files[0]).ranks[0])


def test_rows_leave_out_columns_that_are_not_named(builder: Any) -> None:
    from pyrometer.trace.analysis.operators import operators

    some_steps(builder)
    frame = operators(builder.read())
    assert "min_ns" in frame.columns
    totals = rows(frame, OpTotal, most=2)
    assert [total.name for total in totals] == frame["name"].head(2).to_list()


def test_what_closes_a_span_is_not_above_what_it_opens_next() -> None:
    """A function ends one span and begins another: the second is beside the first, and above neither the function."""
    import numpy as np

    start = np.array([0, 10_000, 90_000, 96_000, 120_000])
    end = np.array(
        [200_000, 95_000, 100_000, 190_000, 130_000]
    )  # loop, first span, function, second span, operator
    tree = nest(np.zeros(5, np.int64), start, end)
    assert tree.parent.tolist() == [-1, 0, 0, 0, 3]
    assert int(tree.self_ns.sum()) == 200_000


def test_what_two_threads_ask_for_is_calculated_once() -> None:
    results, asking, numbers = Results(), Barrier(2), count(1)

    def ask() -> int:
        asking.wait(60)
        return results.once("answer", lambda: next(numbers))

    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(ask) for _ in range(2)]
        assert [answer.result(60) for answer in answers] == [1, 1]
    assert next(numbers) == 2


def test_an_analysis_that_fails_beside_the_others_is_told(builder: Any, monkeypatch: Any) -> None:
    def fail(trace: RankTrace) -> None:
        raise ZeroDivisionError(f"rank {trace.rank}")

    some_steps(builder)
    monkeypatch.setattr(rank_report, "bounds", fail)
    with pytest.raises(ZeroDivisionError, match="rank 0"):
        report_rank(builder.read())
