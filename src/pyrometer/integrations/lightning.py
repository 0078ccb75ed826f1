"""A callback for the Trainer of Lightning.

::

    from pyrometer.integrations.lightning import PyrometerCallback

    callback = PyrometerCallback(page="report.html")
    trainer = lightning.Trainer(callbacks=[callback])
    trainer.fit(module, loader)
    print(callback.document)
"""

from __future__ import annotations

from typing import Any

from pyrometer.integrations.training import ObservedTraining, missing

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

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """The last step has ended."""
        self.training_ends()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """The training breaks off: torch is left as it was."""
        self.stop()
