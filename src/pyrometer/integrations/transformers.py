"""A callback for the Trainer of Hugging Face.

::

    from pyrometer.integrations.transformers import PyrometerCallback

    callback = PyrometerCallback(page="report.html")
    trainer = Trainer(model=model, args=args, train_dataset=data, callbacks=[callback])
    trainer.train()
    print(callback.document)

The Trainer tells nobody of an exception: after one, `callback.stop()` leaves torch as it was, as do the next training and
the end of the callback's life. `with pm.observe_steps(): trainer.train()` does so at once.

In production `MonitorCallback(monitor)` watches every step of every training instead, and judges it.
"""

from __future__ import annotations

from typing import Any

from pyrometer.integrations.training import MonitoredTraining, ObservedTraining, missing

try:
    from transformers import TrainerCallback
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise
    raise missing("transformers", error) from error


class PyrometerCallback(ObservedTraining, TrainerCallback):  # type: ignore[misc]  # a base that is not looked into
    """Observes `trainer.train()` step by step; afterwards `document`, `diagnosis` and `save` tell what was seen.

    Only the first process of a job is observed. The arguments are those of `ObservedTraining`.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The first step is about to begin."""
        if state.is_world_process_zero:
            self.training_begins(kwargs.get("model"), state.max_steps - state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The last step has ended."""
        self.training_ends()


class MonitorCallback(MonitoredTraining, TrainerCallback):  # type: ignore[misc]  # likewise
    """Watches `trainer.train()` by a `pm.Monitor`; loss and gradient norm are told as often as the Trainer logs them."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The first batch is about to be asked for."""
        self.begin()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The batches of a step are there."""
        self.watch.got()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The optimizer has stepped."""
        self.watch.step()
        self.watch.ask()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """The Trainer tells its figures."""
        for name, figure in (("loss", "loss"), ("grad_norm", "gradient_norm")):
            if logs is not None and name in logs:
                self.watch.tell(figure, float(logs[name]))

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The training goes on after an evaluation, which was no step."""
        self.watch.pause()
        self.watch.ask()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The last step has ended."""
        self.end()
