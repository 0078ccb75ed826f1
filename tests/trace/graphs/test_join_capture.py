"""Kernels of a graph get the operators, shapes, lines and modules that were recorded when it was captured."""

from __future__ import annotations

import itertools
import json

import pytest

from pyrometer.trace.analysis.launches import launches
from pyrometer.trace.analysis.modules import modules
from pyrometer.trace.analysis.operators import operators
from pyrometer.trace.analysis.roofline import roofline
from pyrometer.trace.graphs.captures import Node, find_captures
from pyrometer.trace.graphs.join import join_capture
from pyrometer.trace.graphs.matching import match
from pyrometer.trace.graphs.opening import read_joined
from pyrometer.trace.reporting.job_report import report_files

LAYER = (("aten::mm", "gemm", [[4, 8], [8, 16]]), ("aten::add", "elementwise", [[4, 16], [4, 16]]))
FLOAT = json.dumps(["float", "float"])


def capture(builder, *, at=100.0, named=True, rows=4, layers=1, vendor="hip"):
    """One captured graph of `layers` modules, each of a product and an addition."""
    clock = itertools.count(at, 10.0)
    ids = itertools.count(5000 + int(at))
    first = next(clock)
    builder.annotate(f"capture_{rows}", first - 1, 40.0 * layers + 40)
    builder.add("cuda_runtime", f"{vendor}StreamBeginCapture", first, 1, correlation=next(ids))
    for layer in range(layers):
        begin = next(clock)
        builder.python(f"nn.Module: Block_{layer}", begin, 19)
        builder.python("/home/user/model.py(7): forward", begin + 0.5, 18)
        for i, (op, kernel, dims) in enumerate(LAYER):
            start = begin + 1 + 8 * i
            said = {"kernel": kernel, "grid": [rows, 1, 1], "block": [64, 1, 1]} if named else {}
            shapes = [[rows, *dims[0][1:]], [rows if op == "aten::add" else dims[1][0], dims[1][1]]]
            builder.op(op, start, 6, **{"Input Dims": shapes, "Input type": ["float", "float"]})
            builder.add("cuda_runtime", f"{vendor}LaunchKernel", start + 1, 2, correlation=next(ids), **said)
        next(clock)
    builder.add("cuda_runtime", f"{vendor}StreamEndCapture", next(clock), 1, correlation=next(ids))
    return builder


def replay(
    builder, *, launches=1, layers=1, at=1000.0, vendor="hip", names=("gemm", "elementwise"), **kernel
):
    """Launches of that graph: one call each, and below it the kernels."""
    for i in range(launches):
        start = at + 1000 * i
        builder.python("/home/user/serve.py(3): run", start - 5, 30)
        correlation = builder.call(f"{vendor}GraphLaunch", start, 20)
        for j in range(layers):
            for k, name in enumerate(names):
                builder.device(
                    "kernel", name, start + 30 + 100 * j + 40 * k, 30, correlation=correlation, **kernel
                )
    return builder


def ops_of_kernels(trace):
    work = trace.device_work
    return [None if op is None else trace.events["name"][op] for op in work["op"].to_list()]


@pytest.fixture
def make(tmp_path, new_builder):
    """An empty trace in a folder of its own."""
    numbers = itertools.count()

    def empty():
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return new_builder(folder)

    return empty


def test_kernels_get_operators_shapes_roofline_lines_and_modules(make):
    trace = replay(make(), launches=2).read()
    joined = join_capture(trace, capture(make()).read())
    assert ops_of_kernels(trace) == [None] * 4
    assert ops_of_kernels(joined) == ["aten::mm", "aten::add"] * 2
    table = roofline(joined)
    assert dict(table.select("op", "flop").iter_rows())["aten::mm"] == 2 * (2 * 4 * 8 * 16)
    assert dict(table.select("op", "calls").iter_rows()) == {"aten::mm": 2, "aten::add": 2}
    assert set(table["shapes"]) == {"[[4,8],[8,16]]", "[[4,16],[4,16]]"}
    assert set(table["file"]) == {"/home/user/model.py"}
    assert dict(modules(joined).select("module", "device_total_ns").iter_rows()) == {"Block_0": 120_000}
    graphs = launches(joined).device.graphs
    assert (graphs.num_launches, graphs.num_work, graphs.num_explained) == (2, 4, 4)


def test_what_the_host_did_stays_as_it_was(make):
    trace = replay(make(), launches=2).read()
    joined = join_capture(trace, capture(make()).read())
    assert joined.activity.span_ns == trace.activity.span_ns
    assert operators(joined)["host_self_ns"].sum() == operators(trace)["host_self_ns"].sum() == 0
    assert launches(joined).device.num_linked == launches(trace).device.num_linked == 4
    held = joined.events.filter(joined.events["kind"] != "captured")
    columns = ["kind", "name", "start_ns", "end_ns", "self_ns", "track", "step"]
    assert held.select(columns).equals(trace.events.select(columns))
    assert joined.detail("kernels")["name"].to_list() == trace.detail("kernels")["name"].to_list()


@pytest.mark.parametrize("named", [True, False])
def test_of_captures_of_several_sizes_names_grids_or_order_decide(make, named):
    """With grids the right size is found; where nothing tells them apart no operator is named, which is said."""
    both = capture(capture(make(), rows=4, named=named), rows=8, at=400.0, named=named).read()
    assert [len(one.sites) for one in find_captures(both)] == [2, 2]
    trace = replay(make(), grid=[8, 1, 1], block=[64, 1, 1]).read()
    joined = join_capture(trace, both)
    if named:
        assert set(roofline(joined)["shapes"]) == {"[[8,8],[8,16]]", "[[8,16],[8,16]]"}
    else:
        assert joined is not trace
        assert ops_of_kernels(joined) == [None, None]
        assert "0 of 2 kernels" in joined.info.notes[-1]
        assert "for 1 launch" in joined.info.notes[-1]


@pytest.mark.parametrize(("tokens", "size"), [(3, 4), (4, 4), (5, 8)])
def test_of_captures_of_several_sizes_the_engines_own_word_decides(make, tokens, size):
    """A graph runs the smallest size that holds the tokens of its step."""
    both = capture(capture(make(), rows=8, named=False), rows=4, at=400.0, named=False).read()
    trace = replay(make())
    trace.annotate(f"step[DECODE bs={tokens}]", 990, 100)
    joined = join_capture(trace.read(), both)
    assert set(roofline(joined)["shapes"]) == {f"[[{size},8],[8,16]]", f"[[{size},16],[{size},16]]"}


def test_equal_graphs_of_several_layers_are_taken_in_turns(make):
    pieces = make()
    for i in range(2):
        capture(pieces, at=100.0 + 400 * i)
        pieces.python(f"nn.Module: Layer_{i}", 95.0 + 400 * i, 90)
    joined = join_capture(replay(make(), launches=4).read(), pieces.read())
    assert ops_of_kernels(joined) == ["aten::mm", "aten::add"] * 4
    uneven = join_capture(replay(make(), launches=3).read(), pieces.read())
    assert ops_of_kernels(uneven) == ["aten::mm", "aten::add"] * 3
    assert modules(uneven).height == 0  # which layer each of three is cannot be known


def test_the_order_of_calls_joins_where_cuda_writes_no_names(make):
    captured = capture(make(), named=False, vendor="cuda").read()
    nodes = [{"graph id": 3, "graph node id": node} for node in (12, 11)]
    trace = make()
    correlation = trace.call("cudaGraphLaunch", 10, 5)
    trace.device("kernel", "add_kernel", 20, 5, correlation=correlation, stream=7, **nodes[0])
    trace.device(
        "kernel", "sgemm", 22, 5, correlation=correlation, stream=8, **nodes[1]
    )  # began later, was built first
    joined = join_capture(trace.read(), captured)
    assert dict(zip(joined.device_work["name"], ops_of_kernels(joined), strict=True)) == {
        "sgemm": "aten::mm",
        "add_kernel": "aten::add",
    }


def test_another_graph_is_not_joined(make):
    trace = replay(make(), names=("softmax", "conv")).read()
    assert join_capture(trace, capture(make()).read()) is trace
    (issue,) = [issue for issue in report_issues(trace) if issue.code == "graphs_unexplained"]
    assert "2 kernels" in issue.message
    assert "100 % of device time" in issue.message


def report_issues(trace):
    from pyrometer.trace.analysis.health import health

    return health(trace).issues


def test_what_a_capture_lacks_is_left_out_and_counted(make):
    trace = replay(make(), names=("gemm", "elementwise", "unheard_of")).read()
    joined = join_capture(trace, capture(make()).read())
    assert ops_of_kernels(joined) == ["aten::mm", "aten::add", None]
    (issue,) = [issue for issue in report_issues(joined) if issue.code == "graphs_joined"]
    assert issue.message.startswith("2 of 3 kernels")


def test_a_file_that_holds_the_capture_itself_needs_no_other(make):
    path = replay(capture(make())).write()
    assert ops_of_kernels(read_joined(path).rank())[-2:] == ["aten::mm", "aten::add"]
    (report,) = report_files([path]).ranks
    assert report.launches.device.graphs.num_explained == 2


def test_two_files_are_one_trace_where_one_only_captured(make):
    files = [replay(make()).write(), capture(make()).write()]
    for paths in (files, files[::-1]):
        told = report_files(paths)
        (report,) = told.ranks
        assert told.job is None
        assert report.path == str(files[0])
        assert {point.op for point in report.roofline} == {"aten::mm", "aten::add"}


def test_two_ranks_stay_two(make, tmp_path, new_builder):
    files = [
        replay(new_builder(tmp_path, distributedInfo={"rank": rank, "world_size": 2})).write(
            f"rank{rank}.json"
        )
        for rank in range(2)
    ]
    assert len(report_files(files).ranks) == 2
    assert len(read_joined(files).ranks) == 2


def test_branches_that_ran_at_once_are_matched_by_name():
    there = [Node("kernel", name) for name in "abcab"]
    assert match(there, [Node("kernel", name) for name in "bacba"]) == [1, 0, 2, 4, 3]


def test_a_name_that_occurs_more_often_is_matched_in_order():
    there = [Node("kernel", name) for name in "abc"]
    assert match(there, [Node("kernel", name) for name in "abbc"]) in ([0, 1, -1, 2], [0, -1, 1, 2])
