"""A callback for the Trainer of Lightning.

::

    from pyrometer.integrations.lightning import PyrometerCallback

    callback = PyrometerCallback(page="report.html")
    trainer = lightning.Trainer(callbacks=[callback])
    trainer.fit(module, loader)
    print(callback.document)

In production `MonitorCallback(monitor)` watches every step of every training instead, and judges it.
"""

from __future__ import annotations

from typing import Any

from pyrometer.integrations.training import MonitoredTraining, ObservedTraining, missing

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "lightning":
        raise
    try:
        from pytorch_lightning import Callback  # the same under its older name
    except ModuleNotFoundError:
        raise missing("lightning", error) from error


class PyrometerCallback(ObservedTraining, Callback):  # type: ignore[misc]  # a base that is not looked into
    """Observes `trainer.fit()` step by step; afterwards `document`, `diagnosis` and `save` tell what was seen.

    Only the first process of a job is observed. The arguments are those of `ObservedTraining`.
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The first step is about to begin."""
        if trainer.is_global_zero:
            self.training_begins(pl_module, trainer.estimated_stepping_batches - trainer.global_step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """The last step has ended."""
        self.training_ends()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """The training breaks off: torch is left as it was."""
        self.stop()


class MonitorCallback(MonitoredTraining, Callback):  # type: ignore[misc]  # likewise
    """Watches `trainer.fit()` by a `pm.Monitor`: steps, data share, loss, gradient norm, loss scale."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The first batch is about to be asked for."""
        self.begin(trainer.optimizers[0], getattr(trainer.precision_plugin, "scaler", None))
        self._num_steps = trainer.global_step

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """A batch is there."""
        self.watch.got()

    def on_train_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """A micro-batch has ended, and a step where the optimizer has stepped."""
        if trainer.global_step != self._num_steps:
            self._num_steps = trainer.global_step
            self.watch.step(outputs["loss"] if isinstance(outputs, dict) else outputs)
        self.watch.ask()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """What follows is no step."""
        self.watch.pause()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """The training goes on."""
        self.watch.ask()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """The last step has ended."""
        self.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """The training breaks off."""
        self.end()
