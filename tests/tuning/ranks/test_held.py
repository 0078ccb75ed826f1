"""Launches of a script are held, asked and compared in turns; what dies, hangs or is too short is told, and ends nothing else."""

from __future__ import annotations

import textwrap
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing

import pytest

from pyrometer.errors import InputError, UserProgramError
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.ranks.forks import Forks
from pyrometer.tuning.ranks.held import FEWEST_STEPS
from pyrometer.tuning.ranks.laboratory import laboratory_for
from pyrometer.tuning.trials.gate import Limits
from pyrometer.workload.target import parse_target

pytestmark = pytest.mark.slow  # starts processes

SCRIPT = """
import os, signal, sys, time
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

steps, trouble = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
model = model if trouble == "plain" else DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), 0.05)
draw = torch.Generator().manual_seed(rank)
for step in range(steps):
    if step == 5 and rank == 1 and trouble != "none":
        if trouble == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == "raises":
            raise ValueError("a bad sample")
        while trouble == "hangs":
            time.sleep(0.05)  # HERE
    x = torch.randn(8, 16, generator=draw)
    (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("scripts") / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


@pytest.fixture(scope="module")
def forks():
    with closing(Forks(2)) as held:
        held.start(time.monotonic() + 120)
        yield held


@pytest.fixture
def laboratory(forks, script, tmp_path):
    def made(steps, trouble="none"):
        return laboratory_for(parse_target(str(script), [str(steps), trouble]), forks, tmp_path, Limits())

    return made


def test_launches_are_compared_in_turns_and_begin_anew_where_the_script_ends(laboratory):
    lab = laboratory(FEWEST_STEPS + 4)
    with lab.open(()) as baseline:
        lab.keep_reference(baseline)
        surveyed = lab.survey(baseline, ["ddp_bucket_views", "ddp_no_sync", "fsdp_bf16"])
        assert surveyed.choices == {"ddp_bucket_views": [{}]}
        assert surveyed.notes == ["global batch 16 = 2 ranks × 8 samples"]
        with lab.open((LeverChoice(lever="ddp_bucket_views"),)) as candidate:
            assert candidate.opened.not_applied is None
            numerics = lab.check(candidate)
            assert numerics.passes
            assert [case.label for case in numerics.counted] == [
                "losses of 12 steps",
                "gradients of the first step",
            ]
            verdict = lab.compare(baseline, candidate, 1.0)
    # Each side took more steps than one launch has.
    assert verdict.num_blocks * 2 > 0
    assert verdict.candidate == "ddp_bucket_views"


@pytest.mark.parametrize(
    ("steps", "trouble", "kind", "said"),
    [
        (100, "dies", UserProgramError, "rank 1 was ended by SIGKILL"),
        pytest.param(
            100,
            "raises",
            UserProgramError,
            "rank 1: ValueError: a bad sample \\(.*train.py:20\\)",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            100,
            "plain",
            InputError,
            "no model is in DistributedDataParallel or was given to fully_shard",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            7,
            "none",
            InputError,
            f"it ended after 7 updates of an optimizer; tune needs {FEWEST_STEPS} at least",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_what_is_wrong_with_a_script_is_told_in_a_line(steps, trouble, kind, said, laboratory):
    with pytest.raises(kind, match=said) as raised:
        laboratory(steps, trouble).open(())
    assert "\n" not in str(raised.value)


def test_a_launch_that_is_abandoned_while_it_is_opened_ends(laboratory):
    lab = laboratory(100, "hangs")
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(lab.open, ())
        while wait([opening], timeout=0.5).not_done:
            lab.abandon()
    with pytest.raises(UserProgramError, match="SIGKILL"):
        opening.result()


@pytest.mark.exhaustive
def test_a_rank_that_hangs_is_told_with_its_line(laboratory, script, monkeypatch):
    line = next(n for n, text in enumerate(script.read_text().splitlines(), 1) if "# HERE" in text)
    lab = laboratory(100, "hangs")
    with pytest.raises(
        UserProgramError, match=rf"rank 1 \(train.py:({line - 1}|{line})\) did not go on within"
    ) as raised:
        lab.open((), timeout_s=15)
    assert "rank 0 (train.py:" in str(raised.value)  # it waits for the other
