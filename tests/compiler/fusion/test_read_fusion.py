"""What deep probes tell of known programs, as records."""

from __future__ import annotations

import pytest
import torch

from pyrometer.compiler.compile_id import parse_compile_id
from pyrometer.compiler.fusion.read import read_fusion
from pyrometer.compiler.log import CompileLog, LogEntry

pytestmark = pytest.mark.slow  # Inductor compiles


def only(items):
    (item,) = items
    return item


def by_op(groups, op):
    return only(group for group in groups if op in group.ops)


def test_probed_programs_compute_what_they_compute_eagerly(compiled):
    assert compiled.log.unavailable == ()
    assert compiled.log.num_faults == 0
    for eager, result in compiled.results.values():
        torch.testing.assert_close(result, eager)


def test_a_chain_of_pointwise_operations_is_one_group_with_the_traffic_of_its_ends(compiled):
    group = only(compiled.groups("chain"))
    vector = 4096 * 4
    assert group.ops == ["aten.add.Tensor", "aten.relu.default", "aten.mul.Tensor"]
    assert (group.kind, group.is_reduction, group.vectorized) == ("fused", False, True)
    assert group.read_bytes == 3 * vector  # a, b and c
    assert group.written_bytes == vector
    alone = 3 * vector + 2 * vector + 3 * vector  # two in, one out; one in, one out; two in, one out
    assert group.saved_bytes == alone - 4 * vector


def test_groups_name_the_lines_they_come_from(compiled):
    assert only(compiled.groups("chain")).places == [compiled.place("chain", line) for line in (1, 2, 3)]
    block = compiled.groups("block")
    assert by_op(block, "aten.var_mean.correction").places == [compiled.place("block", 1)]
    assert by_op(block, "aten.erf.default").places == [compiled.place("block", 3)]
    backward = compiled.groups("block", is_backward=True)
    assert by_op(backward, "aten.erf.default").places == [compiled.place("block", 3)]


def test_what_a_pattern_put_in_place_bears_the_line_of_what_it_replaced(compiled):
    attention = by_op(
        [group for group in compiled.groups("attention") if group.kind == "extern"],
        "aten._scaled_dot_product_flash_attention_for_cpu.default",
    )
    assert attention.places == [compiled.place("attention", 1)]


def test_training_has_groups_of_forward_and_backward_with_the_operators_that_belong_together(compiled):
    forward = compiled.groups("block")
    norm = by_op(forward, "aten.var_mean.correction")
    assert {"aten.rsqrt.default", "aten.sub.Tensor", "aten.mul.Tensor"} <= set(norm.ops)
    assert norm.is_reduction
    softmax = by_op(forward, "aten.amax.default")
    assert {"aten.exp.default", "aten.sum.dim_IntList", "aten.div.Tensor"} <= set(softmax.ops)
    products = [group for group in forward if group.kind == "extern"]
    assert [group.ops for group in products] == [["aten.addmm.default"]] * 2
    assert {group.saved_bytes for group in products} == {0}
    backward = compiled.groups("block", is_backward=True)
    assert sum(group.ops == ["aten.mm.default"] for group in backward) == 4


def test_groups_bear_the_kernel_that_runs_them(compiled):
    assert {group.kernel for group in compiled.groups("block")} == {
        "cpp_fused_native_layer_norm_0",
        "cpp_fused_gelu_1",
        "cpp_fused__softmax_add_2",
        "extern_kernels.addmm",
    }


def test_groups_come_with_the_most_spared_first(compiled):
    saved = [group.saved_bytes for group in compiled.report.groups]
    assert saved == sorted(saved, reverse=True)
    assert saved[0] > 0


def test_two_reductions_of_one_input_stay_apart_because_they_walk_in_other_orders(compiled):
    pair = only(pair for pair in compiled.report.not_fused if pair.compile_id == compiled.ids["both_ways"])
    assert pair.reason == "no shared data"
    assert pair.shared_bytes == 512 * 512 * 4
    assert (pair.first_ops, pair.second_ops) == (["aten.sum.dim_IntList"],) * 2
    assert "different order" in pair.meaning


def test_an_activation_stays_apart_from_the_matrix_product_before_it(compiled):
    pair = only(
        pair
        for pair in compiled.report.not_fused
        if pair.first_ops == ["aten.addmm.default"] and "aten.erf.default" in pair.second_ops
    )
    assert pair.reason.startswith("node1 is extern")
    assert pair.shared_bytes == 32 * 128 * 4
    assert "max-autotune" in pair.advice


def test_reasons_are_counted_by_pairs_of_groups(compiled):
    reasons = compiled.report.reasons
    assert reasons["no shared data"] >= 1
    assert reasons["intermediate nodes between node1 & node2"] >= 1
    assert list(reasons.values()) == sorted(reasons.values(), reverse=True)
    assert compiled.report.only_counted == 0


def test_buffers_are_counted_taken_and_used_again(compiled):
    plans = {(plan.compile_id, plan.is_backward): plan for plan in compiled.report.memory}
    chain = plans[compiled.ids["chain"], False]
    assert (chain.num_buffers, chain.allocated, chain.reused) == (1, 1, 0)
    assert chain.peak_bytes == 4096 * 4  # inputs belong to the caller
    forward, backward = (plans[compiled.ids["block"], is_backward] for is_backward in (False, True))
    assert forward.reused >= 1
    assert forward.num_buffers >= forward.allocated
    assert forward.peak_bytes > 32 * 128 * 4 * 2  # both wide activations are kept for the backward
    assert backward.peak_bytes > 0


def test_layouts_are_counted_over_all_buffers(compiled):
    layouts = compiled.report.layouts
    assert sum(layouts.values()) == sum(plan.num_buffers for plan in compiled.report.memory)
    assert next(iter(layouts)) == "contiguous"


def test_constants_that_vanished_are_named(compiled):
    folding = only(fold for fold in compiled.report.folded if fold.kind == "constant")
    assert folding.compile_id == compiled.ids["foldable"]
    assert folding.name == "constant_fold_uniform_value"
    assert sorted(folding.nodes) == ["add", "full", "full_1", "mul"]
    assert folding.count == 4
    assert folding.seconds > 0


def test_operations_that_do_nothing_and_vanished_are_named(compiled):
    noop = only(
        fold
        for fold in compiled.report.folded
        if fold.kind == "noop" and fold.compile_id == compiled.ids["foldable"]
    )
    assert (noop.name, noop.nodes) == ("remove_noop_ops", ["clone"])  # dropout in evaluation
    views = only(
        fold
        for fold in compiled.report.folded
        if fold.compile_id == compiled.ids["foldable"] and fold.name == "pointless_view_pair"
    )
    assert (views.kind, views.nodes) == ("pattern", ["view", "view_1"])


def test_an_attention_pattern_is_found_once_and_nothing_of_torchs_own_start_up(compiled):
    folds = [
        fold
        for fold in compiled.report.folded
        if fold.compile_id == compiled.ids["attention"] and fold.name.startswith("_sfdp_pattern")
    ]
    assert only(folds).count == 1
    assert {"bmm", "bmm_1", "exp"} <= set(only(folds).nodes)
    chain = compiled.ids["chain"]  # compiled first, when Inductor traced its patterns
    assert [fold for fold in compiled.report.folded if fold.compile_id == chain] == []


def test_passes_tell_nodes_and_time_with_sums_that_hold(compiled):
    passes = list(compiled.log.of("pyrometer.pass"))
    assert len(passes) > 50
    for entry in passes:
        metadata = entry.metadata
        assert set(metadata) == {
            "subsystem",
            "name",
            "nodes_before",
            "nodes_after",
            "created",
            "erased",
            "seconds",
        }
        assert metadata["nodes_before"] + metadata["created"] - metadata["erased"] == metadata["nodes_after"]
        assert metadata["seconds"] > 0
        assert entry.compile_id is not None
    fold = only(
        entry.metadata
        for entry in passes
        if entry.metadata["name"] == "constant_fold_uniform_value" and entry.metadata["erased"]
    )
    assert fold["subsystem"] == "joint_graph_passes"
    assert (fold["created"], fold["erased"]) == (2, 4)


def test_provenance_is_logged_by_torch_itself(compiled):
    stacks = list(compiled.log.of("inductor_provenance_tracking_kernel_stack_traces"))
    assert any("cpp_fused_native_layer_norm" in entry.payload for entry in stacks)


def test_without_probes_the_code_alone_shows_kernels_and_buffers(compiled):
    report = compiled.without_probes()
    block = [group for group in report.groups if group.compile_id == compiled.ids["block"]]
    forward = [group.kernel for group in block if not group.is_backward]
    assert sorted(forward) == [*sorted({*forward}), "extern_kernels.addmm"]
    assert {group.kernel for group in block} == {
        group.kernel
        for is_backward in (False, True)
        for group in compiled.groups("block", is_backward=is_backward)
    }
    assert {group.vectorized for group in block if group.kind == "fused"} == {True}
    assert {group.read_bytes for group in report.groups} == {None}
    told = [(plan.allocated, plan.reused) for plan in compiled.report.memory]
    assert [(plan.allocated, plan.reused) for plan in report.memory] == told
    assert {(plan.num_buffers, plan.peak_bytes) for plan in report.memory} == {(None, None)}
    assert (report.not_fused, report.reasons, report.folded, report.layouts) == ([], {}, [], {})


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("pyrometer.fusion", "text"),
        ("pyrometer.fusion", {}),
        ("pyrometer.fusion", {"groups": [None, {}], "reasons": None, "buffers": [{"layout": 3}]}),
        ("pyrometer.pass_nodes", {"name": "remove_noop_ops"}),
        ("pyrometer.pattern", {}),
        ("pyrometer.pass_nodes", None),
        ("inductor_output_code", {}),
    ],
)
def test_odd_entries_are_no_error(kind, content):
    entry = LogEntry(kind=kind, metadata=content, payload="def call(:", compile_id=parse_compile_id("0/0"))
    report = read_fusion(CompileLog((entry,)))
    assert report.not_fused == []


def test_of_a_graph_with_parts_the_whole_tells_buffers():
    outer = {"graph": "", "num_buffers": 7, "groups": []}
    part = {"graph": "true_graph_0", "num_buffers": 2, "groups": []}
    entries = tuple(
        LogEntry(kind="pyrometer.fusion", metadata=one, compile_id=parse_compile_id("0/0"))
        for one in (part, outer)
    )
    assert only(read_fusion(CompileLog(entries)).memory).num_buffers == 7
