"""How far a verb is: always on the move, never done before it is, and out of the way of what is observed."""

from __future__ import annotations

import io
import subprocess
import sys
import threading

import pytest
import torch

import pyrometer as pm
from pyrometer.bench.stage import Stage, part_of
from pyrometer.cli import drawing
from pyrometer.cli.drawing import LINE_S, MOST, Course, Drawing
from pyrometer.cli.progress import progress_bar
from pyrometer.evidence.observe import EXPECTED, OBSERVERS, observe
from pyrometer.evidence.options import ObserveOptions


def drawn(course: Course, *, terminal: bool, until_s: float, every_s: float = 0.25) -> list[str]:
    """What is written while nothing more is told."""
    drawing = Drawing(course, terminal=terminal)
    ticks = (drawing.tick(number * every_s) for number in range(int(until_s / every_s)))
    return [text for text in ticks if text]


def test_it_moves_while_a_stage_says_nothing_and_is_never_done():
    course = Course(0.0)
    course.tell(1.0, 0.2, 0.5, 2.0, "tracing")
    shares = [course.share(1.0 + seconds) for seconds in range(20)]
    assert shares == sorted(set(shares))
    assert 0.2 <= shares[0] < shares[-1] < 0.5


def test_what_goes_on_is_not_shown_as_done():
    course = Course(0.0)
    course.tell(1.0, 1.0, 1.0, 0.5, "writing the report")
    assert course.share(1000.0) <= MOST < 1


def test_it_never_goes_back():
    course = Course(0.0)
    course.tell(0.0, 0.2, 0.6, 1.0, "tracing")
    before = course.share(9.0)
    course.tell(9.0, 0.3, 0.6, 1.0, "tracing")
    assert course.share(9.0) >= before > 0.3


def test_without_a_terminal_there_is_a_line_every_five_seconds():
    course = Course(0.0)
    course.tell(0.0, 0.5, 0.9, 20.0, "tracing")
    lines = drawn(course, terminal=False, until_s=16.1)
    assert len(lines) == 3
    assert [line.split(", ")[1] for line in lines] == ["5 s", "10 s", "15 s"]
    assert all(line.startswith("tracing: ") and line.endswith(" left\n") for line in lines)


def test_a_bar_appears_after_two_seconds_stays_on_its_line_and_is_cleared():
    course = Course(0.0)
    course.tell(0.0, 0.5, 0.9, 20.0, "x" * 200)
    bar = Drawing(course, terminal=True)
    assert bar.tick(1.9, 80) == bar.end() == ""
    for columns in (30, 80, 200):
        text = bar.tick(columns / 10, columns)
        assert text.startswith(drawing.CLEAR)
        assert len(text.removeprefix(drawing.CLEAR)) < columns
    assert bar.end() == drawing.CLEAR


def test_the_process_that_draws_tells_what_it_hears_and_ends_with_the_verb():
    ran = subprocess.run(
        [sys.executable, "-I", "-S", drawing.__file__, str(LINE_S + 1), "lines"],
        input=b"0.5\t0.9\t2.0\tfollowing values\n",
        capture_output=True,
        check=True,
    )
    assert ran.stderr.startswith(b"following values: 50%, 6 s, about ")


@pytest.mark.parametrize("switch", ["1", "0"])
def test_nothing_of_it_runs_in_the_process_of_the_verb(monkeypatch, tmp_path, switch):
    monkeypatch.setenv("PYROMETER_PROGRESS", switch)
    started = []
    real = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *args, **more: started.append(real(*args, **more)) or started[-1]
    )
    with (tmp_path / "stderr").open("w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        before = threading.enumerate()
        with progress_bar() as progress:
            progress(0.5, "tracing")
            assert threading.enumerate() == before
    assert [process.poll() for process in started] == [0] * int(switch)


def test_where_stderr_is_no_file_nothing_is_drawn(monkeypatch):
    monkeypatch.setenv("PYROMETER_PROGRESS", "1")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar() as progress:
        progress(0.5, "tracing")
    assert sys.stderr.getvalue() == ""


def test_each_observer_has_its_part_of_a_check():
    work = pm.Inference(torch.nn.Linear(8, 8), torch.randn(4, 8))
    told: list[tuple[float, str]] = []
    observe(
        work,
        "model.py:work",
        ObserveOptions(budget_s=0.2, progress=lambda share, what: told.append((share, what))),
    )
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert all(isinstance(what, Stage) and share <= what.until <= 1 for share, what in told)
    begins = {str(what): share for share, what in reversed(told)}
    assert (
        begins["tracing a few steps"]
        < begins["following values"]
        < begins["cutting out the most expensive places"]
        < 1
    )
    assert set(EXPECTED) <= set(OBSERVERS)


def test_a_part_hands_figures_on():
    told = []
    tell = part_of(lambda share, what: told.append((share, what)), 0.5, 0.7, 3.0)
    tell(2.0, Stage("measuring", num_samples=4, step_s=0.1))
    ((share, what),) = told
    assert (share, what, what.num_samples, what.step_s, what.expected_s) == (0.7, "measuring", 4, 0.1, 3.0)
