"""The programs of the corpus: leaks are found with who holds them, and clean programs raise no alarm."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from representative import every

from pyrometer.memory.leaks.watch import watch_memory

pytestmark = pytest.mark.slow  # whole watches of programs

SCRIPT = Path(__file__).with_name("answering.py")
spec = importlib.util.spec_from_file_location("answering", SCRIPT)
answering = importlib.util.module_from_spec(spec)
spec.loader.exec_module(answering)

PROGRAMS = answering.PROGRAMS
FAST = ("leaking/robot_controller", "clean/shape_cache")
NUM_PROCESSES = 2


@pytest.mark.parametrize("name", FAST)
def test_the_answer_about_a_program_is_right(name):
    assert answering.answer(PROGRAMS[name]) == (True, True, True)


@pytest.mark.parametrize("name", every(3, ["cycles_without_gc", "second_order", "saved_tensor_hooks"]))
def test_a_cycle_is_told_as_one_whatever_it_goes_through(name):
    with PROGRAMS[f"leaking/{name}"].running() as step:
        report = watch_memory(step)
        del step
    assert "reference cycle" in {site.root for site in report.sites}


def answers_of_all():
    """The answer about each program, from processes that hold little else: every scan looks at the whole heap."""
    names = list(PROGRAMS)
    shares = [names[first::NUM_PROCESSES] for first in range(NUM_PROCESSES)]
    processes = [
        subprocess.Popen([sys.executable, str(SCRIPT), *share], stdout=subprocess.PIPE, text=True)
        for share in shares
    ]
    try:
        printed = [process.communicate()[0] for process in processes]
    finally:
        for process in processes:
            process.kill()  # where a test ends early; one that has ended is left alone
    assert [process.returncode for process in processes] == [0] * NUM_PROCESSES
    answers = {name: answer for name, *answer in map(json.loads, "".join(printed).splitlines())}
    assert set(answers) == set(names)
    return answers


@pytest.mark.exhaustive
def test_the_corpus_is_answered_as_promised():
    answers = answers_of_all()
    leaking = {name: answer for name, answer in answers.items() if PROGRAMS[name].leaks}
    clean = {name: answer for name, answer in answers.items() if not PROGRAMS[name].leaks}
    assert leaking
    assert clean
    false_alarms = [name for name, (right, _, _) in clean.items() if not right]
    missed = [name for name, (right, named, _) in leaking.items() if not (right and named)]
    wrong_rates = [name for name, (_, _, rate) in leaking.items() if not rate]
    assert len(false_alarms) <= 1, false_alarms
    assert len(missed) <= 0.05 * len(leaking), missed
    assert len(wrong_rates) <= 0.05 * len(leaking), wrong_rates
