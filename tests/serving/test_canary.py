"""A server in a rollout: batches are counted under the share that they were drawn by, and what a shadow says is compared."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rollouts import make_plan

from pyrometer.errors import InputError
from pyrometer.rollout.agent import Agent
from pyrometer.rollout.controller import look, start_rollout
from pyrometer.rollout.ledger import open_ledger
from pyrometer.rollout.observed import observed
from pyrometer.rollout.plan import default_metrics
from pyrometer.serving.running.batcher import Bucket
from pyrometer.serving.running.canary import Canary, ShadowCanary, require_fitting
from pyrometer.serving.running.program import Rows, Served
from pyrometer.serving.running.shadow import Compared, compare
from pyrometer.serving.running.signature import TensorSpec


class Observer:
    def __init__(self):
        self.batches = 0

    def batch_ended(self, _ended, _num_waiting):
        self.batches += 1

    def shadowed(self, compared):
        self.compared = compared


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
    canary = Canary(agent, observer)
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


def test_a_rollout_of_other_versions_is_refused_with_what_to_do():
    for plan in (make_plan(old="1", new="2"), make_plan(old="b", new="a")):
        with pytest.raises(InputError, match="start it with --old a --new b"):
            require_fitting(plan, "a", "b", is_shadow=False)


def test_what_was_counted_last_is_sent_when_the_server_ends(ledger):
    canary = Canary(Agent(ledger, "perception", rng=random.Random(1)), Observer())
    with canary.following():
        for _ in range(100):
            canary.choose()
            canary.batch_ended(ended(), 0)
    (epoch,) = observed([0.5], ledger.reports("perception", 1), keep_reports=False).epochs
    assert epoch.new.num + epoch.old.num == 100


def shadowing(tmp_path, **fields):
    found = open_ledger(tmp_path / "shadows")
    fields = {"stages": [0.5, 1.0], "control": "1b", "metrics": default_metrics(agreement=0.01), **fields}
    start_rollout(found, make_plan(old="1", new="2", **fields), "me")
    agent = Agent(found, "perception", shadow=True, rng=random.Random(1))
    require_fitting(agent.state.plan, "1", "2", is_shadow=True)
    return found, agent, ShadowCanary(agent, Observer())


def test_what_a_shadow_says_is_counted_beside_what_a_control_says(tmp_path):
    ledger, agent, canary = shadowing(tmp_path)
    drawn = {"1b": 0, "2": 0}
    for _ in range(200):
        assert canary.choose() == "1"
        canary.batch_ended(ended(), 0)
        shadow = canary.choose_shadow()
        drawn[shadow] += 1
        differs = shadow == "2" and drawn["2"] % 2
        canary.shadowed(Compared(version=shadow, took_s=0.01, num=4, num_differ=int(differs)))
    agent.tick()
    (epoch,) = observed([0.5], ledger.reports("perception", 1), keep_reports=False).epochs
    assert (epoch.new.num, epoch.old.num) == (drawn["2"], drawn["1b"])
    assert epoch.new.num_of("compared") == drawn["2"]
    assert epoch.new.num_of("disagreed") == (drawn["2"] + 1) // 2
    assert epoch.old.num_of("disagreed") == 0
    assert sum(epoch.new.buckets("latency").values()) == drawn["2"]


def test_what_a_shadow_disagrees_in_takes_the_version_back(tmp_path):
    ledger, agent, canary = shadowing(tmp_path)
    for number in range(400):
        canary.batch_ended(ended(), 0)
        shadow = canary.choose_shadow()
        differs = shadow == "2" and number % 10 == 0
        canary.shadowed(Compared(version=shadow, took_s=0.01, num=1, num_differ=int(differs)))
    agent.tick()
    looked = look(ledger, "perception")
    assert looked.state.status == "rolled back"
    assert looked.decisions[0].reason.startswith("disagreed")


def test_a_batch_that_no_shadow_computed_counts_for_the_old_version_without_a_latency(tmp_path):
    metrics = [metric for metric in default_metrics(agreement=0.01) if metric.name != "latency"]
    ledger, agent, canary = shadowing(tmp_path, control="", metrics=metrics)
    for _ in range(50):
        canary.batch_ended(ended(), 0)
        if canary.choose_shadow() is not None:
            canary.shadowed(Compared(version="2", took_s=0.01, failure="ValueError: no", num=0))
    agent.tick()
    (epoch,) = observed([0.5], ledger.reports("perception", 1), keep_reports=False).epochs
    assert epoch.new.num + epoch.old.num == 50
    assert epoch.new.num_of("errors") == epoch.new.num > 10
    assert epoch.old.num_of("errors") == epoch.new.num_of("compared") == 0
    assert not epoch.new.values
    assert not epoch.old.values


def test_a_shadow_without_a_control_tests_no_latency(tmp_path):
    with pytest.raises(InputError, match=r"tests latency.*--control NAME"):
        shadowing(tmp_path, control="")


def says(*outputs):
    """A program that answers with these, one request each."""
    spec = TensorSpec("y", torch.float32, (-1, 2))
    return SimpleNamespace(
        version="2",
        signature=SimpleNamespace(outputs=(spec,)),
        call=lambda _requests, _sizes: [torch.tensor(outputs)],
        shared_out=lambda leaves, _requests: [[rows.numpy()] for rows in leaves[0].split(1)],
    )


def served(*values, failure=None):
    return Served([np.array([values], np.float32)] if values else [], failure, "1", [])


def test_answers_agree_within_the_gate_of_numerics_and_requests_that_failed_are_not_compared():
    requests = [Rows([], 1)] * 4
    shadow = says([1.0, 2.01], [1.0, 2.2], [math.nan, 1.0], [1.0, 1.0])
    theirs = [served(1.0, 2.0), served(1.0, 2.0), served(1.0, 1.0), served(failure="ValueError: a bad row")]
    found = compare(shadow, requests, (), theirs, 0.03)
    assert (found.num, found.num_differ, found.failure) == (3, 2, None)
    assert found.error == math.inf
    assert found.has_nonfinite


def test_a_shadow_that_fails_where_the_other_answers_is_told():
    def fails(_requests, _sizes):
        raise ValueError("no weights")

    shadow = says()
    shadow.call = fails
    found = compare(shadow, [Rows([], 1)], (), [served(1.0, 2.0)], 0.03)
    assert "no weights" in found.failure
    assert (found.num, found.error) == (0, None)
