"""A server in a rollout: batches are counted under the share that they were drawn by."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from rollouts import make_plan

from pyrometer.errors import InputError
from pyrometer.rollout.agent import Agent
from pyrometer.rollout.controller import start_rollout
from pyrometer.rollout.ledger import open_ledger
from pyrometer.rollout.observed import observed
from pyrometer.serving.running.batcher import Bucket, Served
from pyrometer.serving.running.canary import Canary


class Observer:
    def __init__(self):
        self.batches = 0

    def batch_ended(self, _ended, _num_waiting):
        self.batches += 1


@pytest.fixture
def ledger(tmp_path):
    found = open_ledger(tmp_path / "store")
    start_rollout(found, make_plan(old="1", new="2", stages=[0.5, 1.0]), "me")
    return found


def ended(*failures, version=None, nonfinite=()):
    answers = [Served([], failure, "1", list(nonfinite)) for failure in (failures or (None,))]
    return SimpleNamespace(batch=SimpleNamespace(bucket=Bucket((), version)), took_s=0.01, answers=answers)


def test_batches_are_drawn_and_counted_and_those_of_a_named_version_are_not(ledger):
    observer = Observer()
    agent = Agent(ledger, "perception", rng=random.Random(1))
    canary = Canary(agent, observer, ["1", "2"])
    chosen = set()
    for number in range(200):
        chosen.add(canary.choose())
        bad = (
            ended("CUDA out of memory")
            if number < 3
            else ended(None, None, nonfinite=["y"] if number < 5 else [])
        )
        canary.batch_ended(bad, 0)
        canary.batch_ended(ended(version="2"), 0)
    agent.tick()
    (epoch,) = observed([0.5], ledger.reports("perception", 1), keep_reports=False).epochs
    assert chosen == {"1", "2"}
    assert observer.batches == 400
    assert epoch.new.num + epoch.old.num == 200
    for event, count in (("errors", 3), ("out-of-memory", 3), ("not-finite", 2)):
        assert epoch.new.num_of(event) + epoch.old.num_of(event) == count


def test_a_rollout_of_other_versions_is_refused_with_what_to_do(ledger):
    with pytest.raises(InputError, match="start it with --old a --new b"):
        Canary(Agent(ledger, "perception"), Observer(), ["a", "b"])
