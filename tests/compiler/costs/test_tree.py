"""Compile time nested: every own time is in one row, and rows add up to what the program waited for."""

from __future__ import annotations

import pytest

from pyrometer.compiler.costs.cost import read_cost
from pyrometer.compiler.costs.record import PhaseTree

FRAME, BACKWARD = "entire_frame_compile", "entire_backward_compile"


def approx(expected):
    return pytest.approx(expected, abs=2e-6)


def paths(tree: PhaseTree) -> dict[str, float]:
    """Own seconds by path."""
    names = list[str]()
    for parent, name in zip(tree.parent, tree.name, strict=True):
        names.append(f"{names[parent]} > {tree.names[name]}" if parent >= 0 else tree.names[name])
    return dict(zip(names, tree.own_s, strict=True))


def test_steps_stand_inside_the_steps_around_them(build):
    build.begin(FRAME, 0).begin("backend_compile", 1).begin("GraphLowering.run", 2)
    build.end("GraphLowering.run", 5).end("backend_compile", 9).end(FRAME, 10)
    tree = read_cost(build.log()).tree
    frame = f"0/0 > {FRAME}"
    backend = f"{frame} > backend_compile"
    assert paths(tree) == approx({"0/0": 0, frame: 2, backend: 5, f"{backend} > GraphLowering.run": 3})
    assert [tree.phases[phase] if phase >= 0 else "" for phase in tree.phase] == [
        "", "Dynamo tracing", "backend", "Inductor lowering",
    ]  # fmt: skip


def test_steps_of_one_name_inside_the_same_are_one_row(build):
    build.begin(FRAME, 0).span("build_guards", 1, 2).span("build_guards", 3, 5).end(FRAME, 6)
    tree = read_cost(build.in_time()).tree
    assert paths(tree)[f"0/0 > {FRAME} > build_guards"] == approx(3)
    assert tree.calls[-1] == 2


def test_a_compilation_inside_another_is_a_row_of_its_own(build):
    build.begin(FRAME, 0).begin(FRAME, 2, compile_id="1/0").end(FRAME, 5, compile_id="1/0").end(FRAME, 6)
    found = paths(read_cost(build.log()).tree)
    assert found[f"0/0 > {FRAME}"] == approx(3)
    assert found[f"0/0 > {FRAME} > 1/0 > {FRAME}"] == approx(3)


def test_the_backward_of_a_compilation_stands_beside_its_forward(build):
    build.span(FRAME, 0, 2).span(BACKWARD, 5, 9)
    assert paths(read_cost(build.in_time()).tree) == approx(
        {"0/0": 0, f"0/0 > {FRAME}": 2, f"0/0 > {BACKWARD}": 4}
    )


def test_short_steps_count_for_the_step_around_them(build):
    build.begin(FRAME, 0).span("build_guards", 1, 1.001).end(FRAME, 100)
    tree = read_cost(build.in_time()).tree
    assert paths(tree) == approx({"0/0": 0, f"0/0 > {FRAME}": 100})
    assert tree.left_out == 1


def test_nothing_timed_is_no_tree(build):
    assert read_cost(build.log()).tree is None


@pytest.mark.parametrize("name", ["cold", "warm"])
def test_own_times_add_up_to_compile_time_phase_by_phase(recorded, name):
    cost = read_cost(recorded(name)[0])
    sums: dict[str, float] = {}
    for phase, own_s in zip(cost.tree.phase, cost.tree.own_s, strict=True):
        name = cost.tree.phases[phase] if phase >= 0 else ""
        sums[name] = sums.get(name, 0.0) + own_s
    assert sum(sums.values()) == approx(cost.compile_s)
    for name, seconds in cost.phases_s.items():
        assert sums.get(name, 0.0) == pytest.approx(seconds, abs=0.02 * cost.compile_s)
    assert all(parent < row for row, parent in enumerate(cost.tree.parent))
