"""The merged call tree, and the timeline: exact sums, nothing lost."""

from __future__ import annotations

import polars as pl
import pytest

from pyrometer.errors import InputError
from pyrometer.trace.analysis.call_tree import call_tree
from pyrometer.trace.analysis.timeline import timeline

US = 1000


def paths(tree: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Each node by its path from below the thread."""
    names: dict[int, str] = {}
    found = {}
    for row in tree.iter_rows(named=True):
        above = names.get(row["parent"], "")
        names[row["node"]] = "" if row["depth"] < 2 else f"{above}/{row['name']}".lstrip("/")
        found[names[row["node"]] or row["name"]] = row
    return found


def two_steps(builder) -> None:
    for number, ts in enumerate((0, 1000)):
        builder.annotate(f"ProfilerStep#{number}", ts, 500)
        builder.python("train.py(3): step", ts + 10, 400)
        builder.op("aten::mm", ts + 20, 100)
        builder.launch("gemm", at=ts + 30, start=ts + 600, dur=200)
        builder.op("aten::mm", ts + 150, 50)


def test_steps_and_calls_merge_by_path(builder):
    two_steps(builder)
    found = paths(call_tree(builder.read()))
    mm = found["ProfilerStep/train.py(3): step/aten::mm"]
    assert (mm["calls"], mm["total_ns"], mm["self_ns"]) == (4, 300 * US, 290 * US)
    assert (mm["device_ns"], mm["device_self_ns"]) == (400 * US, 0)
    kernel = found["ProfilerStep/train.py(3): step/aten::mm/cudaLaunchKernel/gemm"]
    assert (kernel["kind"], kernel["calls"], kernel["device_self_ns"]) == ("kernel", 2, 400 * US)
    assert found["ProfilerStep/train.py(3): step"]["self_ns"] == 500 * US


def test_kinds_of_the_same_name_are_apart(builder):
    builder.annotate("forward", 0, 10)
    builder.op("forward", 20, 10)
    assert call_tree(builder.read()).filter(pl.col("name") == "forward").height == 2


def test_threads_are_apart(builder):
    builder.op("aten::mm", 0, 10)
    builder.op("aten::mm", 5, 10, tid=200)
    tree = call_tree(builder.read())
    assert tree.filter(pl.col("kind") == "thread").height == 2
    assert tree["total_ns"][0] == 20 * US


def test_device_work_without_a_launch_has_its_own_node(builder):
    builder.op("aten::mm", 0, 10)
    builder.device("kernel", "gemm", 20, 30)
    tree = call_tree(builder.read())
    orphan = tree.filter(pl.col("name") == "(device work without a launch)").row(0, named=True)
    assert (orphan["depth"], orphan["device_ns"], orphan["total_ns"]) == (1, 30 * US, 0)


def test_what_a_function_opens_hangs_beside_it(builder):
    builder.python("train.py(1): main", 0, 1000)
    builder.python("torch/profiler/profiler.py(3): step", 10, 20)
    builder.annotate("ProfilerStep#1", 20, 500)
    builder.op("aten::mm", 100, 50)
    found = paths(call_tree(builder.read()))
    assert found["train.py(1): main/ProfilerStep/aten::mm"]["total_ns"] == 50 * US
    assert found["train.py(1): main/torch/profiler/profiler.py(3): step"]["total_ns"] == 20 * US


def test_steps_in_a_row_merge(builder):
    builder.python("train.py(1): main", 0, 10_000)
    for step in range(4):
        at = 1000 * step
        builder.python("torch/profiler/profiler.py(3): step", at + 10, 40)
        builder.annotate(f"ProfilerStep#{step}", at + 40, 990)  # until the next call of step is half done
        builder.op("aten::mm", at + 100, 50)
    found = paths(call_tree(builder.read()))
    assert found["train.py(1): main/ProfilerStep/aten::mm"]["calls"] == 4
    assert found["train.py(1): main/ProfilerStep"]["calls"] == 4


def test_pruning_keeps_all_sums(builder):
    two_steps(builder)
    builder.op("aten::tiny", 1900, 1)
    builder.op("aten::tinier", 1902, 2)
    tree = call_tree(builder.read(), min_share=0.01)
    other = tree.filter(pl.col("name") == "(other)").row(0, named=True)
    assert (other["kind"], other["calls"], other["total_ns"], other["self_ns"]) == (
        "other",
        2,
        3 * US,
        3 * US,
    )
    assert tree["self_ns"].sum() == 1003 * US


def test_a_node_with_much_device_work_is_kept_however_short(builder):
    builder.op("aten::long", 0, 10_000)
    builder.op("aten::short", 20_000, 6)
    builder.launch("gemm", at=20_000, start=20_100, dur=5000)
    assert "gemm" in call_tree(builder.read(), min_share=0.1)["name"].to_list()


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_something_else_than_a_share_is_refused(builder, share):
    with pytest.raises(InputError, match="between 0 and 1"):
        call_tree(builder.read(), min_share=share)


def lanes(frame: pl.DataFrame) -> dict[str, int]:
    return dict(frame.select("name", "lane").iter_rows())


def test_nesting_is_lanes_on_a_thread(builder):
    builder.op("a", 0, 100)
    builder.op("b", 10, 50)
    builder.op("c", 70, 10)
    builder.op("d", 20, 10)
    assert lanes(timeline(builder.read())) == {"a": 0, "b": 1, "c": 1, "d": 2}


def test_overlapping_kernels_move_to_another_lane(builder):
    for name, start in (("first", 0), ("second", 50), ("third", 100)):
        builder.device("kernel", name, start, 100)
    assert lanes(timeline(builder.read())) == {"first": 0, "second": 1, "third": 0}


def test_labels_lie_above_the_work_of_a_stream(builder):
    builder.device("gpu_user_annotation", "forward", 0, 100)
    builder.device("kernel", "in", 10, 20)
    builder.device("kernel", "after", 200, 20)
    assert lanes(timeline(builder.read())) == {"forward": 0, "in": 1, "after": 1}


def test_events_that_overlap_without_nesting_keep_apart_with_all_below(builder):
    builder.op("a", 0, 100)
    builder.op("b", 50, 100)  # ends after the event in which it begins
    builder.op("c", 150, 100)
    builder.op("d", 160, 20)
    builder.op("e", 90, 5)
    found = lanes(timeline(builder.read()))
    assert found == {"a": 0, "b": 1, "e": 2, "c": 0, "d": 1}


def test_few_rows_stand_for_all(builder):
    builder.op("long", 0, 5000)
    for i in range(100):
        builder.op("short", 10 + 2 * i, 1)
    builder.op("far", 4000, 1)
    rows = timeline(builder.read(), limit=10)
    assert rows.select("name", "num_events", "start_ns", "dur_ns").rows() == [
        ("long", 1, rows["start_ns"][0], 5000 * US),
        ("(small)", 100, rows["start_ns"][0] + 10 * US, 199 * US),
        ("far", 1, rows["start_ns"][0] + 4000 * US, 1 * US),
    ]


def test_a_limit_below_one_is_refused(builder):
    with pytest.raises(InputError, match="at least one row"):
        timeline(builder.read(), limit=0)
