"""Children of two nodes are matched by name and order; what cannot be matched was added or removed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.difference.alignment import align, align_trees
from pyrometer.trace.difference.call_tree import build_call_tree

NAMES = st.lists(st.sampled_from([f"call:op{i}" for i in range(12)]), max_size=10, unique=True)


@given(NAMES)
def test_equal_sequences_match_place_by_place(names):
    assert align(names, list(names)) == [(i, i) for i in range(len(names))]


@given(NAMES, NAMES)
def test_every_common_name_is_matched_and_no_place_twice(left, right):
    found = align(left, right)
    assert {left[i] for i, j in found if left[i] == right[j]} == set(left) & set(right)
    assert all(left[i] == right[j] for i, j in found)
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)


def test_kernels_may_be_replaced_and_operators_not():
    assert align(["device:volta_sgemm"], ["device:Cijk_Alik"]) == [(0, 0)]
    assert align(["call:aten::relu"], ["call:aten::gelu"]) == []


def test_a_kernel_that_is_elsewhere_on_the_other_side_is_not_used_up():
    assert align(["device:x", "device:a"], ["device:a", "device:y"]) == [(1, 0)]


def test_modules_that_are_numbered_differently_match():
    left = ["call:nn.Module: Linear_0", "call:nn.Module: Linear_1"]
    right = ["call:nn.Module: Linear_7", "call:nn.Module: Linear_8"]
    assert align(left, right) == [(0, 0), (1, 1)]


def test_long_lists_are_matched_by_name():
    left, right = [f"call:{i}" for i in range(800)], [f"call:{i}" for i in range(400, 1200)]
    assert len(align(left, right)) == 400


def test_calls_of_one_name_under_one_parent_are_one_node(builder):
    for i in range(3):
        builder.annotate(f"ProfilerStep#{i}", i * 100, 100)
        for k in range(2):
            builder.op("aten::linear", i * 100 + k * 40, 30)
            builder.launch("gemm", i * 100 + k * 40 + 5, i * 100 + k * 40 + 20, 10 + i)
    tree = build_call_tree(builder.read())
    assert tree.names == ["aten::linear", "gemm"]
    assert tree.calls.tolist() == [[2, 2, 2], [2, 2, 2]]
    assert tree.host[0].tolist() == [60_000] * 3
    assert tree.device.tolist() == [[20_000, 22_000, 24_000]] * 2
    assert tree.path(1) == ["aten::linear", "gemm"]
    assert len(align_trees(tree, tree)) == 3


def test_an_empty_trace_has_an_empty_tree(builder):
    tree = build_call_tree(builder.read())
    assert tree.names == []
    assert len(align_trees(tree, tree)) == 1
