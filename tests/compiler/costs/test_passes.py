"""Passes: what torch times and what the probe counts are told as one."""

from __future__ import annotations

import pytest

from pyrometer.compiler.costs.passes import read_passes

FRAME = "entire_frame_compile"


def probed(name, before, after, *, subsystem="post_grad_passes", seconds=0.5, **told):
    return {
        "subsystem": subsystem,
        "name": name,
        "nodes_before": before,
        "nodes_after": after,
        "seconds": seconds,
        **told,
    }


def test_a_pass_is_named_by_its_event(build):
    build.begin(FRAME, 0).span("pass.joint_graph_passes.remove_noop_ops", 1, 3)
    build.span("pass.anonymous", 4, 5).end(FRAME, 6)
    first, second = read_passes(build.log())
    assert (first.compile_id, first.subsystem, first.name) == ("0/0", "joint_graph_passes", "remove_noop_ops")
    assert first.seconds == pytest.approx(2, abs=1e-6)
    assert (first.nodes_before, first.created) == (None, None)
    assert (second.subsystem, second.name) == ("", "anonymous")


def test_counts_of_the_probe_join_the_pass_that_torch_timed(build):
    build.span("pass.post_grad_passes.stable_sort", 1, 3)
    build.add("pyrometer.pass", probed("stable_sort", 22, 20, created=1, erased=3), at_s=3)
    (effect,) = read_passes(build.log())
    assert (effect.nodes_before, effect.nodes_after, effect.created, effect.erased) == (22, 20, 1, 3)
    assert effect.seconds == pytest.approx(2, abs=1e-6)


def test_a_pass_that_runs_twice_keeps_its_order(build):
    for at, (before, after) in enumerate([(10, 9), (5, 5)]):
        build.span("pass.post_grad_passes.stable_sort", 2 * at, 2 * at + 1)
        build.add("pyrometer.pass", probed("stable_sort", before, after), at_s=2 * at + 1)
    assert [(effect.nodes_before, effect.nodes_after) for effect in read_passes(build.log())] == [
        (10, 9),
        (5, 5),
    ]


def test_what_only_the_probe_saw_has_its_time_from_there(build):
    build.add("pyrometer.pass", probed("mine", 3, 4, subsystem=None, seconds=0.25))
    (effect,) = read_passes(build.log())
    assert (effect.subsystem, effect.name, effect.seconds, effect.nodes_after) == ("", "mine", 0.25, 4)


def test_the_same_pass_of_another_compilation_is_another(build):
    build.span("pass.post_grad_passes.a", 0, 1, compile_id="0/0").span(
        "pass.post_grad_passes.a", 2, 3, compile_id="1/0"
    )
    build.add("pyrometer.pass", probed("a", 8, 7), compile_id="1/0")
    assert [(effect.compile_id, effect.nodes_before) for effect in read_passes(build.log())] == [
        ("0/0", None),
        ("1/0", 8),
    ]
