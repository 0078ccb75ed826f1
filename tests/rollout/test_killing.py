"""Controllers that are killed at any step, and several at once, in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from rollouts import counts, make_plan

from pyrometer.rollout.agent import Agent
from pyrometer.rollout.controller import start_rollout
from pyrometer.rollout.ledger import open_ledger
from pyrometer.rollout.observed import NEW, OLD, Reported

PATIENCE_S = 240
STAGES = [0.01, 0.05, 0.2, 0.5, 1.0]

# A controller whose process ends without a word before or after the nth call of one step.
CONTROLLER = """
import os, signal, sys
from pyrometer.rollout import controller
from pyrometer.rollout.ledger import open_ledger

location, step, number, when = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
ledger, clock, seen = open_ledger(location), iter(range(1100, 10**6, 50)), 0

def dying(call):
    def run(*given, **named):
        global seen
        seen += 1
        if seen == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = call(*given, **named)
        if seen == number and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    return run

if step == "judge":
    controller.judge = dying(controller.judge)
elif step == "within":  # between the rows of one transaction
    import pyrometer.rollout.ledger as kept
    kept.insert = dying(kept.insert)
elif step != "none":
    setattr(ledger, step, dying(getattr(ledger, step)))
while not controller.look(ledger, "perception", lambda: float(next(clock))).state.has_ended:
    pass
"""


def prepared(location):
    """A rollout whose counts are all there already, for every stage."""
    ledger = open_ledger(location)
    start_rollout(ledger, make_plan(min_s=0.0, min_samples=1), "me", lambda: 1000.0)
    for epoch, share in enumerate(STAGES[:-1]):
        new = round(200_000 * share)
        reports = [Reported(epoch=epoch, arm=NEW, reporter="a", counts=counts(new, new // 500)),
                   Reported(epoch=epoch, arm=OLD, reporter="a", counts=counts(200_000 - new, (200_000 - new) // 500))]  # fmt: skip
        ledger.report("perception", 1, reports)
    return ledger


def control(location, step="none", number=1, when="before"):
    return subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, location, step, str(number), when],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def ended(process):
    said, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said


STEPS = [
    (step, number, when)
    for step, numbers in (
        ("read", (1, 3)),
        ("reports", (2,)),
        ("judge", (2,)),
        ("replace", (1, 4)),
        ("within", (1, 3)),
    )
    for number in numbers
    for when in ("before", "after")
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "cases"),
    [
        pytest.param("sqlite", STEPS[7::7], id="sqlite"),
        pytest.param("sqlite", STEPS, id="sqlite at every step", marks=pytest.mark.exhaustive),
        pytest.param(
            "redis",
            [one for one in STEPS if one[:2] == ("replace", 4)],
            id="redis",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_a_controller_that_is_killed_at_any_step_loses_no_decision_and_serves_no_wrong_share(
    kind, cases, tmp_path, request
):
    if kind == "redis":
        import redis

        url = request.getfixturevalue("redis_url")
        redis.Redis.from_url(url).flushdb()
    for number, (step, at, when) in enumerate(cases):
        location = str(tmp_path / f"store{number}") if kind == "sqlite" else url
        if kind == "redis":
            redis.Redis.from_url(url).flushdb()
        ledger = prepared(location)
        process = control(location, step, at, when)
        code, said = ended(process)
        assert code == -signal.SIGKILL, (step, at, when, said)
        left, log = ledger.read("perception"), ledger.decisions("perception")
        # State and log agree at the moment of death, and processes serve what the log says.
        assert left.num_decisions == len(log) == len(left.shares)
        assert log[-1].share == left.share
        agent = Agent(ledger, "perception")
        assert agent.router.weights["v2"] == log[-1].share
        code, said = ended(control(location))
        assert code == 0, said
        after = ledger.read("perception")
        assert (after.status, after.shares) == ("promoted", STAGES)
        assert [one.number for one in ledger.decisions("perception")] == [1, 2, 3, 4, 5]
        assert ledger.decisions("perception")[: len(log)] == log


@pytest.mark.slow
def test_several_watches_of_the_command_line_decide_each_thing_once(tmp_path):
    location = str(tmp_path / "store")
    ledger = prepared(location)
    argv = [
        sys.executable,
        "-m",
        "pyrometer",
        "rollout",
        "watch",
        "perception",
        "--every",
        "10ms",
        "--store",
        location,
    ]
    watches = [
        subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        for _ in range(3)
    ]
    said = [ended(process) for process in watches]
    assert [code for code, _ in said] == [0, 0, 0], said
    lines = [line for _, text in said for line in text.splitlines() if line.startswith("perception: ")]
    assert sorted(line.split(",")[0].removeprefix("perception: ") for line in lines) == [
        "finish",
        "promote",
        "promote",
        "promote",
    ]
    assert ledger.read("perception").shares == STAGES
    assert [one.number for one in ledger.decisions("perception")] == [1, 2, 3, 4, 5]
