"""The Trainer of Hugging Face, observed through its callback."""

from __future__ import annotations

import importlib
import logging

import pytest
import torch
from torch_points import points

import pyrometer as pm

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def transformers():
    """Imported no sooner: every search for who holds a tensor in the same process walks its objects."""
    return importlib.import_module("transformers")


@pytest.fixture
def trainer_of(rows, tmp_path, transformers):
    def made(model, *callbacks):
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / "out"),
            per_device_train_batch_size=8,
            num_train_epochs=2,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        return transformers.Trainer(
            model=model, args=arguments, train_dataset=rows, callbacks=list(callbacks)
        )

    return made


def losses(trainer):
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.fixture
def callback_class():
    from pyrometer.integrations.transformers import PyrometerCallback

    return PyrometerCallback


def test_a_training_is_told_and_not_changed(classifier, trainer_of, callback_class, tmp_path):
    state = {name: value.clone() for name, value in classifier.state_dict().items()}
    plain = losses(trainer_of(classifier))
    trained = [parameter.detach().clone() for parameter in classifier.parameters()]
    classifier.load_state_dict(state)
    before, page = points(), tmp_path / "report.html"
    callback = callback_class(page=page, store=tmp_path / "runs")
    assert losses(trainer_of(classifier, callback)) == plain
    assert all(map(torch.equal, trained, classifier.parameters()))
    assert points() == before

    evidence = callback.document.evidence
    assert callback.diagnosis.target == "Classifier"
    assert (evidence.script.num_steps, evidence.script.steps_from) == (24, "optimizer steps")
    assert evidence.capture.num_steps == 3
    assert {"data", "forward", "backward", "optimizer"} <= {
        phase.name for phase in evidence.measurement.phases
    }
    assert callback.document.run_id is not None
    assert page.read_text().startswith("<!doctype html>")


def test_other_processes_of_a_job_are_left_alone(classifier, callback_class, transformers):
    before, callback = points(), callback_class(store=False)
    state = transformers.TrainerState(is_world_process_zero=False, max_steps=10)
    callback.on_train_begin(None, state, None, model=classifier)
    assert points() == before
    callback.on_train_end(None, state, None)
    assert callback.document is None


@pytest.mark.exhaustive
def test_a_training_goes_on_where_it_cannot_be_observed(classifier, trainer_of, callback_class, caplog):
    with pm.observe_steps(store=False, sources=[]), caplog.at_level(logging.WARNING, "pyrometer"):
        callback = callback_class(store=False)
        assert len(losses(trainer_of(classifier, callback))) == 24
    assert "observed already" in caplog.text
    assert callback.document is None


@pytest.mark.exhaustive
def test_after_an_exception_torch_can_be_left_as_it_was(classifier, trainer_of, callback_class, transformers):
    class Breaks(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            raise ZeroDivisionError

    before, callback = points(), callback_class(store=False)
    with pytest.raises(ZeroDivisionError):
        losses(trainer_of(classifier, callback, Breaks()))
    callback.stop()
    assert points() == before


@pytest.mark.exhaustive
def test_a_block_around_the_trainer_does_as_well(classifier, trainer_of):
    with pm.observe_steps("classifier", store=False, sources=[]) as seen:
        losses(trainer_of(classifier))
    assert seen.document.evidence.script.num_steps == 24


def test_accelerate_is_observed_by_a_block(classifier, rows):
    import accelerate

    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    optimizer = torch.optim.SGD(classifier.parameters(), lr=1e-2)
    loader = torch.utils.data.DataLoader(rows, batch_size=8)
    model, optimizer, loader = accelerator.prepare(classifier, optimizer, loader)
    with pm.observe_steps("accelerated", store=False, sources=[]) as seen:
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch)["loss"])
                optimizer.step()
                optimizer.zero_grad()
    script = seen.document.evidence.script
    assert (script.num_steps, script.steps_from) == (6, "optimizer steps"), "of two batches each"
    accelerator.end_training()


def test_a_training_is_monitored_and_not_changed(classifier, trainer_of):
    from pyrometer.integrations.transformers import MonitorCallback

    state = {name: value.clone() for name, value in classifier.state_dict().items()}
    plain = losses(trainer_of(classifier))
    classifier.load_state_dict(state)
    with pm.Monitor(folder="", tick_s=3600) as monitor:
        assert losses(trainer_of(classifier, MonitorCallback(monitor))) == plain
        monitor.flush()
        tick = monitor.last(60)
    assert tick.calls["step"].num_ended == 24
    assert tick.gauges["training_loss"] == pytest.approx(plain[-1])
    assert tick.gauges["training_gradient_norm"] > 0
    assert 0 < tick.gauges["training_data_share"] < 1
