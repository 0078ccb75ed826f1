"""The programs of the corpus: leaks are found with who holds them, and clean programs raise no alarm."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from pyrometer.memory.leaks.watch import watch_memory

PATH = Path(__file__).parent.parent / "programs" / "corpus.py"
spec = importlib.util.spec_from_file_location("corpus", PATH)
corpus = importlib.util.module_from_spec(spec)
spec.loader.exec_module(corpus)

PROGRAMS = corpus.load_all()
FAST = ("leaking/robot_controller", "leaking/total_loss_training", "clean/shape_cache")


def answer(program):
    """Whether the verdict is right, the holder is named, and the rate is met."""
    with program.running() as step:
        report = watch_memory(step)
        del step
    if not program.leaks:
        return program.accepts(report.verdict), True, True
    said = program.expected["bytes_per_step"]
    return (
        program.accepts(report.verdict),
        any(program.names_holder(f"{site.holder} {' '.join(site.chain)}") for site in report.sites),
        said is None or report.bytes_per_step == pytest.approx(said, rel=0.2),
    )


@pytest.mark.parametrize("program", [one for one in PROGRAMS if one.name in FAST], ids=repr)
def test_the_answer_about_a_program_is_right(program):
    assert answer(program) == (True, True, True)


@pytest.mark.parametrize("name", ["cycles_without_gc", "second_order", "saved_tensor_hooks"])
def test_a_cycle_is_told_as_one_whatever_it_goes_through(name):
    program = next(one for one in PROGRAMS if one.name == f"leaking/{name}")
    with program.running() as step:
        report = watch_memory(step)
        del step
    assert "reference cycle" in {site.root for site in report.sites}


@pytest.mark.slow
def test_the_corpus_is_answered_as_promised():
    leaking = {one.name: answer(one) for one in PROGRAMS if one.leaks}
    clean = {one.name: answer(one) for one in PROGRAMS if not one.leaks}
    false_alarms = [name for name, (right, _, _) in clean.items() if not right]
    missed = [name for name, (right, named, _) in leaking.items() if not (right and named)]
    wrong_rates = [name for name, (_, _, rate) in leaking.items() if not rate]
    assert len(false_alarms) <= 1, false_alarms
    assert len(missed) <= 0.05 * len(leaking), missed
    assert len(wrong_rates) <= 0.05 * len(leaking), wrong_rates
