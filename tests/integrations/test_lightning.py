"""The Trainer of Lightning, observed through its callback."""

from __future__ import annotations

import importlib
import logging

import pytest
import torch
from torch_points import points

import pyrometer as pm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning:lightning.*", "ignore::FutureWarning:lightning.*"),
]


@pytest.fixture(scope="module")
def lightning():
    """Imported no sooner: every search for who holds a tensor in the same process walks its objects."""
    return importlib.import_module("lightning")


@pytest.fixture
def module_of(classifier, lightning):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model, self.losses, self.breaks_at = classifier, [], None

        def training_step(self, batch, index):
            if index == self.breaks_at:
                raise ZeroDivisionError
            loss = self.model(**batch)["loss"]
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    return Module


@pytest.fixture
def fit(rows, tmp_path, lightning):
    def trained(module, *callbacks):
        trainer = lightning.Trainer(
            max_epochs=2,
            callbacks=list(callbacks),
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )
        torch.manual_seed(1)
        trainer.fit(module, torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True))
        return module.losses

    return trained


@pytest.fixture
def callback_class():
    from pyrometer.integrations.lightning import PyrometerCallback

    return PyrometerCallback


def test_a_training_is_told_and_not_changed(module_of, fit, callback_class, tmp_path):
    module = module_of()
    state = {name: value.clone() for name, value in module.state_dict().items()}
    plain = list(fit(module))
    trained = [parameter.detach().clone() for parameter in module.parameters()]
    module.load_state_dict(state)
    module.losses.clear()
    before, page = points(), tmp_path / "report.html"
    callback = callback_class("rows", page=page, store=tmp_path / "runs")
    assert fit(module, callback) == plain
    assert all(map(torch.equal, trained, module.parameters()))
    assert points() == before

    evidence = callback.document.evidence
    assert callback.diagnosis.target == "rows"
    assert (evidence.script.num_steps, evidence.script.steps_from) == (24, "optimizer steps")
    assert evidence.capture.num_steps == 3
    assert {"data", "forward", "backward", "optimizer"} <= {
        phase.name for phase in evidence.measurement.phases
    }
    assert callback.document.run_id is not None
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.exhaustive
def test_a_training_that_raises_leaves_torch_as_it_was(module_of, fit, callback_class):
    module, before, callback = module_of(), points(), callback_class(store=False)
    module.breaks_at = 3
    with pytest.raises(ZeroDivisionError):
        fit(module, callback)
    assert points() == before
    assert callback.document is None


@pytest.mark.exhaustive
def test_a_place_that_cannot_be_written_does_not_end_the_training(
    module_of, fit, callback_class, tmp_path, caplog
):
    (tmp_path / "file").write_text("")
    callback = callback_class(store=tmp_path / "file" / "runs", page=tmp_path / "report.html")
    with caplog.at_level(logging.WARNING, "pyrometer"):
        assert len(fit(module_of(), callback)) == 24
    assert str(tmp_path / "file") in caplog.text
    assert callback.document.run_id is None
    assert (tmp_path / "report.html").exists(), "what was seen is not lost"


def test_a_training_is_monitored_and_not_changed(module_of, fit):
    from pyrometer.integrations.lightning import MonitorCallback

    module = module_of()
    state = {name: value.clone() for name, value in module.state_dict().items()}
    plain = list(fit(module))
    module.load_state_dict(state)
    module.losses.clear()
    with pm.Monitor(folder="", tick_s=3600) as monitor:
        assert fit(module, MonitorCallback(monitor, every=1)) == plain
        monitor.flush()
        tick = monitor.last(60)
    assert tick.calls["step"].num_ended == 24
    assert tick.gauges["training_loss"] == pytest.approx(plain[-1])
    assert tick.gauges["training_gradient_norm"] > 0
    assert 0 < tick.gauges["training_data_share"] < 1
