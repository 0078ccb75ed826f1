"""A training that stops and goes on is the training that never stopped, to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import training_program
from torch import nn
from training_program import STEPS, digest, loop_of

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.tuning.loop.training_state import load_training_state, training_state

KINDS = ["dropout", "generator", "stream", "stateful", "list", "bfloat16", "float16"]
WORKERS = pytest.param("workers", marks=pytest.mark.slow)  # starts processes


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("kind", [*KINDS, WORKERS])
def test_a_new_loop_goes_on_where_an_earlier_one_ended(kind, tmp_path):
    whole = loop_of(kind, None)
    reference = whole.run(STEPS)
    losses, first = [], 0
    for steps in (1, 4, 9, STEPS):  # within an epoch, at its end, and across
        part = loop_of(kind, tmp_path)
        torch.rand(first)  # what was drawn before resuming does not matter
        run = part.run(steps)
        assert run.first_step == first
        losses += run.losses
        first = steps
    assert losses == reference.losses
    assert digest(part) == digest(whole)


@pytest.mark.parametrize("kind", ["dropout", "stateful"])
def test_the_same_loop_goes_on_as_well(kind):
    reference = loop_of(kind, None).run(STEPS).losses
    parts = loop_of(kind, None)
    assert parts.run(5).losses + parts.run(epochs=3).losses + parts.run(STEPS).losses == reference


def test_float16_overflows_and_says_so(tmp_path):
    run = loop_of("float16", None).run(STEPS)
    assert 0 < run.num_overflows < STEPS
    assert run.scale < 2.0**30
    assert "overflows in" in str(run)


def lines_of(kind, folder, num_kills, seed):
    program = Path(training_program.__file__)
    done = subprocess.run(
        [sys.executable, str(program), kind, str(folder), str(num_kills), str(seed)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def require_equal(lines):
    reference = dict(map(tuple, lines[0]["reference"]))
    assert set(reference) == {*range(1, STEPS + 1), "end"}
    told = [tuple(report) for line in lines[1:] for report in next(iter(line.values()))]
    assert told
    assert [report for report in told if reference[report[0]] != report[1]] == []
    assert told[-1][0] == "end"


@pytest.mark.slow
def test_a_training_that_is_killed_again_and_again_ends_as_if_it_never_was(tmp_path):
    require_equal(lines_of("dropout", tmp_path, 3, seed=0))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [*KINDS, "workers"])
def test_many_kills_of_every_kind(kind, seed, tmp_path):
    require_equal(lines_of(kind, tmp_path, 12, seed))


def test_state_of_a_finer_dtype_than_its_parameter_is_not_rounded():
    def parts():
        model = nn.Linear(3, 2).to(torch.bfloat16)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        for parameter in model.parameters():
            optimizer.state[parameter] = {
                "momentum_buffer": torch.full_like(parameter, 1 / 3, dtype=torch.float32)
            }
        return pm.Training(model, nn.MSELoss(), optimizer, [0]).parts

    given, taking = parts(), parts()
    for state in taking.optimizer.state.values():
        state["momentum_buffer"].zero_()
    load_training_state(taking, training_state(given))
    for state in taking.optimizer.state.values():
        assert state["momentum_buffer"].dtype == torch.float32
        assert (state["momentum_buffer"] == torch.tensor(1 / 3)).all()


def test_a_checkpoint_of_another_training_is_refused_in_one_line(tmp_path):
    def loop(width, **options):
        model = nn.Linear(4, width)
        batches = [(torch.randn(2, 4), torch.randn(2, width))]
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        return pm.TrainingLoop(
            pm.Training(model, nn.MSELoss(), optimizer, batches), checkpoints=tmp_path, **options
        )

    loop(2).run(1)
    with pytest.raises(InputError, match=r"does not fit this training .*; resume with the model"):
        loop(3).run(2)
    with pytest.raises(InputError, match=r"state: got \['average'\], the checkpoint holds \[\]"):
        loop(2, state={"average": training_program.Average(nn.Linear(1, 1))}).run(2)


def test_a_shorter_loader_is_refused(tmp_path):
    def loop(length):
        model = nn.Linear(4, 2)
        batches = [(torch.randn(2, 4), torch.randn(2, 2))] * length
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        return pm.TrainingLoop(pm.Training(model, nn.MSELoss(), optimizer, batches), checkpoints=tmp_path)

    loop(5).run(4)
    with pytest.raises(InputError, match="the loader has 2 in this epoch, and 4 were taken"):
        loop(2).run(6)
