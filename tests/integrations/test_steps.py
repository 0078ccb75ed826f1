"""A loop of one's own under observation: what is told of it, and that nothing of it changes."""

from __future__ import annotations

import json

import pytest
import torch
from torch_points import points

import pyrometer as pm
from pyrometer.errors import InputError, UsageError
from pyrometer.store.store import Store


def train(model, rows, num_epochs=2):
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)
    losses = []
    for _ in range(num_epochs):
        for batch in loader:
            loss = model(**batch)["loss"]
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


@pytest.mark.slow
def test_a_training_is_told_and_not_changed(classifier, rows, tmp_path):
    state = {name: value.clone() for name, value in classifier.state_dict().items()}
    plain = train(classifier, rows)
    trained = [parameter.detach().clone() for parameter in classifier.parameters()]
    classifier.load_state_dict(state)
    before, drawn = points(), torch.get_rng_state()
    with pm.observe_steps("rows", skip=6, sources=[], store=tmp_path / "runs") as seen:
        observed = train(classifier, rows)
    assert observed == plain
    assert all(map(torch.equal, trained, classifier.parameters()))
    assert points() == before
    torch.set_rng_state(drawn)

    evidence = seen.document.evidence
    assert (evidence.script.num_steps, evidence.script.steps_from) == (24, "optimizer steps")
    assert evidence.script.import_s is None
    assert evidence.measurement.first_call_s > 0
    # The first, the one that warms the profiler up, three traced, and the one in which their file is written.
    assert evidence.measurement.num_samples <= 24 - 6
    assert {"data", "forward", "backward", "optimizer"} <= {
        phase.name for phase in evidence.measurement.phases
    }
    assert evidence.measurement.memory.peak_bytes > 0
    assert (evidence.capture.num_steps, evidence.trace.rank) == (3, 0)
    assert seen.diagnosis.target == "rows"
    assert Store.open(tmp_path / "runs").load(seen.document.run_id).kind == "check"
    assert "rows" in str(seen.document)
    assert json.loads(seen.save(tmp_path / "x.json").read_text())["evidence"]["target"] == "rows"
    assert seen.save(tmp_path / "x.html").read_text().startswith("<!doctype html>")


def test_what_is_compiled_meanwhile_is_told(classifier, rows):
    compiled = torch.compile(classifier, backend="eager")
    with pm.observe_steps(store=False, sources=[]) as seen:
        train(compiled, rows)
    assert seen.document.evidence.compiled.graphs >= 1
    torch._dynamo.reset()


def test_what_was_compiled_before_is_not_compiled_again(classifier, rows):
    compiled = torch.compile(classifier, backend="eager")
    train(compiled, rows, num_epochs=1)
    with pm.observe_steps(store=False, sources=[]) as seen:
        train(compiled, rows)
    assert seen.document.evidence.compiled is None
    assert seen.document.evidence.script.num_steps == 24
    torch._dynamo.reset()


def test_a_block_that_raises_leaves_torch_as_it_was(classifier, rows):
    before, seen = points(), pm.observe_steps("broken", store=False, sources=[])
    rows.broken_at = 70
    with pytest.raises(ZeroDivisionError), seen:
        train(classifier, rows)
    assert points() == before
    with pytest.raises(UsageError, match="broken: nothing is known"):
        _ = seen.diagnosis


def test_one_that_is_forgotten_leaves_torch_as_it_was(classifier, rows):
    before, seen = points(), pm.observe_steps(store=False, sources=[])
    seen.begin()
    assert points() != before
    del seen
    assert points() == before


def test_two_at_once_are_refused(classifier, rows):
    with pm.observe_steps(store=False, sources=[]) as seen:
        with pytest.raises(InputError, match="observed already"), pm.observe_steps(store=False):
            pass
        train(classifier, rows, num_epochs=1)
    assert seen.document.evidence.script.num_steps == 12
    with pytest.raises(UsageError, match="call begin before end"):
        seen.end()


def test_a_block_without_steps_says_so(tmp_path):
    with pm.observe_steps("nothing", store=False, sources=[]) as seen:
        pass
    assert seen.document.evidence.measurement is None
    assert any("no steps" in note for note in seen.document.evidence.script.notes)
    assert len(str(seen.document).splitlines()) <= 25


def test_workers_of_a_loader_are_not_observed(classifier, rows):
    loader = torch.utils.data.DataLoader(rows, batch_size=16, num_workers=1)
    with pm.observe_steps(store=False, sources=[]) as seen:
        for batch in loader:
            classifier(**batch)
    assert seen.document.evidence.script.num_steps == 6
