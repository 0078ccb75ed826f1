"""Time that is seen at a point belongs to what ran before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_programs import Program, samples

from pyrometer.host.build import build_profile

TEXT = """\
import torch

def weigh(x, w):
    y = x @ w
    return torch.relu(y)

def tail(x, w):
    return x @ w

def step(x, w):
    y = weigh(x, w)
    z = tail(x, w)
    return torch.sum(z) + y
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "program.py", TEXT)


def with_stretch(taken, point, spots):
    """The same samples, with what was seen before a point: instructions by their numbers in the samples, and ns."""
    import msgspec

    from pyrometer.host.samples import Stretch

    stretches = [Stretch(point, -1, spot, ns, 1) for spot, ns in spots]
    return msgspec.structs.replace(taken, stretches=stretches)


def own(profile):
    return {line.where.line: line.own_s for line in profile.lines if line.own_s}


def test_an_operator_without_a_call_gets_the_time_seen_at_the_next_call(program):
    relu, product = program.at("weigh", "relu"), program.at("weigh", "x @ w", "BINARY_OP")
    step = program.at("step", "y = weigh")
    plain = samples((10, [relu, step]), (1, [product, step]))
    taken = with_stretch(plain, 0, [(2, 9_000), (0, 1_000)])
    profile = build_profile(taken)
    assert own(profile) == pytest.approx({4: 10e-3, 5: 1e-3})
    assert [leaf.kind for leaf in profile.leaves] == ["operator", "operator"]
    assert profile.functions[0].where.function == "weigh"


def test_the_end_of_a_function_that_has_returned_gets_the_time_seen_in_its_caller(program):
    at_sum, product = program.at("step", "torch.sum"), program.at("tail", "return x @ w", "BINARY_OP")
    taken = with_stretch(samples((10, [at_sum]), (1, [product])), 0, [(1, 8_000), (0, 2_000)])
    assert own(build_profile(taken)) == pytest.approx({8: 9e-3, 13: 2e-3})


def test_loads_and_jumps_get_nothing_where_something_else_ran(program):
    relu, load = program.at("weigh", "relu"), program.at("weigh", "x @ w", "LOAD_FAST")
    taken = with_stretch(samples((10, [relu]), (0, [load])), 0, [(1, 500), (0, 500)])
    assert own(build_profile(taken)) == pytest.approx({5: 10e-3})


def test_a_point_of_which_nothing_is_known_keeps_its_samples(program):
    taken = samples((10, [program.at("weigh", "relu")]))
    assert own(build_profile(taken)) == pytest.approx({5: 10e-3})


def test_samples_within_a_library_stay_with_the_call(program):
    import json

    relu, product = program.at("weigh", "relu"), program.at("weigh", "x @ w", "BINARY_OP")
    library = (json.dumps.__code__, 10)
    taken = with_stretch(samples((10, [library, relu]), (0, [product])), 1, [(2, 9_000), (1, 1_000)])
    assert own(build_profile(taken)) == pytest.approx({5: 10e-3})
