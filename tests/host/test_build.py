"""From samples and the source to lines, loops, functions and leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_programs import Program, samples, watched

from pyrometer.host.build import build_profile
from pyrometer.host.profile import HostProfile

TEXT = """\
import json
import os
from os import fsync as settle

class Writer:
    def write(self, rows):
        for row in rows:
            self.put(row)
        return [
            json.dumps(row)
            for row in rows
        ]

    @staticmethod
    def put(row):
        with open(os.devnull, "wb") as file:
            file.write(
                b"x"
            )
            if row > 9:
                settle(row)

def tree(depth):
    return 1 if depth == 0 else tree(depth - 1) + tree(depth - 1)

def step(rows=(1, 2, 3, 4)):
    writer = Writer()
    while len(rows) > 3:
        rows = rows[1:]
    tree(3)
    return writer.write(rows)
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "program.py", TEXT)


def line_of(profile: HostProfile, number: int):
    return next(line for line in profile.lines if line.where.line == number)


def test_a_line_has_its_own_time_and_that_of_what_it_calls(program):
    put = program.at("Writer.put", "settle(row")
    write = program.at("Writer.write", "self.put(row)")
    step = program.at("step", "writer.write")
    profile = build_profile(samples((6, [put, write, step]), (2, [write, step]), (2, [step])))
    assert line_of(profile, program.line("settle(row")).own_s == pytest.approx(6e-3)
    calling = line_of(profile, program.line("self.put(row)"))
    assert (calling.own_s, calling.total_s) == pytest.approx((2e-3, 8e-3))
    assert profile.outside_s == 0
    assert sum(line.own_s for line in profile.lines) == pytest.approx(profile.step_s)


@pytest.mark.parametrize(("most", "told"), [(None, 0.4), (0.9, 0.4), (0.1, 0.1), (0.0, 0.0)])
def test_no_more_garbage_is_told_than_steps_without_an_observer_had(program, most: float | None, told: float):
    put = program.at("Writer.put", "settle(row")
    profile = build_profile(samples((400, [put]), (600, [put]), garbage=1), most)
    spent = {leaf.kind: profile.share(leaf.seconds_per_step) for leaf in profile.leaves}
    assert spent.get("garbage", 0.0) == pytest.approx(told, abs=0.01)
    assert sum(spent.values()) == pytest.approx(1.0)


def test_a_leaf_is_named_through_imports(program):
    profile = build_profile(samples((5, [program.at("Writer.put", "settle(row")])))
    assert [(leaf.kind, leaf.name) for leaf in profile.lines[0].leaves] == [("fsync", "os.fsync")]
    assert [leaf.kind for leaf in profile.leaves] == ["fsync"]


def test_the_time_of_a_loop_holds_all_that_runs_in_it(program):
    stack = [
        program.at("Writer.put", "settle(row"),
        program.at("Writer.write", "self.put(row)"),
        program.at("step", "writer.write"),
    ]
    profile = build_profile(samples((4, stack), (1, stack[2:])))
    loop = profile.loops[0]
    assert (loop.where.line, loop.over, loop.total_s) == (
        program.line("for row in rows:"),
        "rows",
        pytest.approx(4e-3),
    )
    assert loop.where.function == "Writer.write"
    assert loop.leaves[0].kind == "fsync"
    assert loop.rounds_per_step is None
    assert line_of(profile, program.line("self.put(row)")).loop.line == loop.where.line


def test_a_comprehension_belongs_to_the_function_around_it(program):
    inside = program.at("Writer.write.<locals>.<listcomp>", "json.dumps")
    profile = build_profile(samples((3, [inside, program.at("Writer.write", "return [")])))
    assert [function.where.function for function in profile.functions] == ["Writer.write"]
    assert profile.loops[0].over == "rows"
    assert profile.loops[0].where.line == program.line("return [")


def test_statements_of_several_lines_are_told_by_their_first(program):
    profile = build_profile(samples((3, [program.at("Writer.put", 'b"x"', "LOAD_CONST")])))
    assert profile.lines[0].where.line == program.line("file.write(")
    assert profile.lines[0].where.source == "file.write("


def test_no_line_is_that_of_a_definition(program):
    entered = program.at("Writer.put", "@staticmethod", "RESUME")
    profile = build_profile(samples((3, [entered])))
    assert profile.lines[0].where.line == program.line("with open")


def test_recursion_counts_once(program):
    deep = program.at("tree", "return 1 if")
    profile = build_profile(samples((5, [deep, deep, deep, program.at("step", "tree(3)")])))
    function = profile.functions[0]
    assert (function.where.function, function.own_s, function.total_s) == (
        "tree",
        pytest.approx(5e-3),
        pytest.approx(5e-3),
    )


def test_rounds_entries_and_calls_are_those_of_the_watched_step(program):
    seen = watched(program.module.step)
    stack = [program.at("Writer.write", "self.put(row)"), program.at("step", "writer.write")]
    parts = program.at("Writer.write.<locals>.<listcomp>", "json.dumps")
    turning = program.at("step", "rows = rows[1:]", "BINARY_SUBSCR")
    profile = build_profile(samples((5, stack), (5, [parts, *stack[1:]]), (5, [turning]), watch=seen))
    rounds = {loop.over: (loop.rounds_per_step, loop.entered_per_step) for loop in profile.loops}
    assert rounds["len(rows) > 3"] == (1, 1)
    by_line = {loop.where.line: (loop.rounds_per_step, loop.entered_per_step) for loop in profile.loops}
    assert by_line[program.line("for row in rows:")] == (3, 1)
    assert by_line[program.line("return [")][0] == pytest.approx(3, abs=1)
    assert profile.functions[0].calls_per_step == 1


def test_samples_without_the_users_lines_are_told_apart(program):
    import json

    library = (json.dumps.__code__, 0)
    profile = build_profile(samples((3, [library]), (1, [program.at("step", "tree(3)")])))
    assert profile.outside_s == pytest.approx(3e-3)
    assert profile.leaves[0].kind == "json"


def test_nothing_sampled_is_an_empty_profile():
    profile = build_profile(samples(steps=1))
    assert (profile.lines, profile.loops, profile.functions, profile.share(1.0)) == ([], [], [], 0.0)


def test_sampled_and_bare_steps_tell_the_overhead(program):
    profile = build_profile(
        samples((3, [program.at("step", "tree(3)")]), bare_ns=[2_900_000, 3_000_000, 9_000_000])
    )
    assert profile.overhead_share == pytest.approx(0.0)
