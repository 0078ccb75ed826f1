"""PYR103: tensors that are turned into text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.finding import Finding

CODE = "PYR103"


@pytest.mark.parametrize(
    "body",
    [
        "print(loss)  # <-",
        'print("loss", loss)  # <-',
        'print(f"step {step}: loss {loss}")  # <-',
        'logger.info("loss %s", loss)  # <-',
        'logging.warning("loss %s", loss)  # <-',
        'text = f"{loss:.3f}"  # <-',
        "name = str(loss)  # <-",
        'text = "loss {}".format(loss)  # <-',
        'print("loss %f" % loss)  # <-',
        'self_writer.add_scalar("loss", loss, step)  # <-',
        'bar.set_postfix({"loss": loss})  # <-',
    ],
)
def test_finds_tensors_that_become_text_in_every_step(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        'print("step", step)',
        'print(f"shape {inputs.shape}, {loss.dtype}")',
        'if step % 100 == 0:\n    print(f"loss {loss}")',
        'print(f"loss {loss.item():.3f}")',  # the read is what waits, and has a rule of its own
        'raise ValueError(f"bad loss {loss}")',
        'history.append({"loss": loss.detach()})',
        "inputs.log()",
        'print("label: " + model(inputs))',  # a text, or it fails
    ],
)
def test_is_silent_about_other_text(silent: Any, body: str) -> None:
    silent(CODE, body)


def test_logging_through_lightning_keeps_the_tensor(lines: Any) -> None:
    text = """\
    import lightning
    import torch

    class Net(lightning.LightningModule):
        def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
            loss = self.loss(batch)
            self.log("loss", loss)
            return loss
    """
    assert lines(CODE, text) == []


SOURCE = """\
def step(model, batch):
    loss = model(batch)
    print(f"loss {loss}")
    return loss
"""


def test_a_device_trace_tells_a_print_from_a_read(
    builder: Any, stalling: Any, evidence_of: Any, only: Any, findings: Callable[..., list[Finding]]
) -> None:
    evidence = evidence_of(stalling(builder, "aten::item", frame="train.py(1): step"), "train.py", SOURCE)
    finding = only(CODE, evidence)
    assert finding.where.line == 3
    assert finding.cost.share > 0.4
    assert findings("PYR101", evidence) == []


def test_showing_every_hundredth_step_reads_a_hundredth(ops_of: Any) -> None:
    losses = list(torch.rand(200))

    def always() -> list[str]:
        return [f"{loss}" for loss in losses]

    def seldom() -> list[str]:
        return [f"{loss}" for step, loss in enumerate(losses) if step % 100 == 0]

    all_text, before = ops_of(always)
    some_text, after = ops_of(seldom)
    assert all_text[::100] == some_text
    assert after["_local_scalar_dense"] * 100 == before["_local_scalar_dense"] > 0
