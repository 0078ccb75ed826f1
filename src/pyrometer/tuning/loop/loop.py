"""The training loop: steps until it is told to stop, and everything around them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pyrometer.bench.clock import clock_for
from pyrometer.errors import InputError
from pyrometer.loading.figures import require_count
from pyrometer.quantity import Seconds
from pyrometer.tuning.batching.trial import give_back, is_full
from pyrometer.tuning.loop.adjusting import MEMORY, Adjustable, Adjusting
from pyrometer.tuning.loop.batches import PositionedBatches
from pyrometer.tuning.loop.callbacks import StepEnd
from pyrometer.tuning.loop.checkpoints import CheckpointFolder
from pyrometer.tuning.loop.progress import Progress
from pyrometer.tuning.loop.random_state import random_state, set_random_state
from pyrometer.tuning.loop.ranks import gathered, world
from pyrometer.tuning.loop.record import LogPoint, TrainingRun
from pyrometer.tuning.loop.step import LoopStep
from pyrometer.tuning.loop.stopping import StopSignals
from pyrometer.tuning.loop.timing import StepTimes
from pyrometer.tuning.loop.training_state import load_training_state, training_state
from pyrometer.tuning.precision_audit import AmpAudit, audit_mixed_precision, in_mixed_precision
from pyrometer.workload.changes.micro_batches import in_parts
from pyrometer.workload.inference import home_of
from pyrometer.workload.parts import is_lazy
from pyrometer.workload.state import Stateful, preserved_rng
from pyrometer.workload.training import Training

FORMAT = 1


class TrainingLoop:
    """Trains the model of a `Training`, its very objects, and can be killed at any moment.

    With `checkpoints`, `run` goes on from the newest whole one in that folder, bit for bit as if it had never stopped, dropout and
    order of the samples included, where the program itself draws from the global random generators of Python, NumPy and torch
    only. On SIGTERM or Ctrl-C it ends its step, writes a checkpoint and returns; a second Ctrl-C interrupts.

    Args:
        work: what a step is: model, loss, optimizer, batches, accumulation, AMP, scheduler and clipping. With `amp="float16"` and no
            scaler it gets one. Where batches run out within an accumulation, the step takes those that there are.
        checkpoints: the folder for checkpoints; every rank has one of its own in it. `None` writes none.
        checkpoint_every: steps between two checkpoints; one more is written at the end.
        keep: how many checkpoints are left.
        state: what else belongs to the training, by name (a moving average, …): with `state_dict()` and `load_state_dict()`.
        callbacks: told what happens; see `TrainingCallback`.
        log_every: steps between two log points. Losses stay on the device until then.
        evaluate: called as `evaluate(model)` without gradients and in evaluation mode, for metrics by name; the random state is as before
            afterwards.
        evaluate_every: steps between two evaluations; `None` evaluates after each epoch.
        stop_when: called with every log point; true ends the run.
        adjust: what the loop may change: `"memory"` cuts batches into micro-batches when memory runs out, `"loader"` tries other numbers of
            workers and batches ahead where steps wait for data, which lets random augmentations draw other numbers. Every change is in
            the log, is measured, and is undone where it was no gain.

    Raises:
        InputError: an argument is of the wrong kind, or the work is one that cannot be trained in place.
    """

    def __init__(
        self,
        work: Training,
        *,
        checkpoints: str | Path | None = None,
        checkpoint_every: int = 1000,
        keep: int = 3,
        state: Mapping[str, Stateful] | None = None,
        callbacks: Sequence[Any] = (),
        log_every: int = 50,
        evaluate: Callable[[nn.Module], Mapping[str, float]] | None = None,
        evaluate_every: int | None = None,
        stop_when: Callable[[LogPoint], bool] | None = None,
        adjust: Collection[Adjustable] = MEMORY,
    ) -> None:
        _require_trainable(work)
        for name, value in (("checkpoint_every", checkpoint_every), ("log_every", log_every)):
            require_count(name, value)
        require_count("evaluate_every", 1 if evaluate_every is None else evaluate_every)
        device = home_of(work.parts.model)
        self.work = in_mixed_precision(work, work.config.autocast) if work.config.autocast else work
        self.parts = self.work.parts
        self.step = 0
        self._user_state = dict(state or {})
        self._callbacks = list(callbacks)
        self._log_every = log_every
        self._evaluate, self._evaluate_every = evaluate, evaluate_every
        self._stop_when = stop_when
        self._checkpoint_every = checkpoint_every
        self._folder = None if checkpoints is None else _folder(Path(checkpoints), keep)
        self._batches = PositionedBatches(work.batches, device)
        self._times = StepTimes(clock_for(device))
        self._steps = LoopStep(self.work, self.parts, self._batches, self._times, device)
        self._adjusting = Adjusting(adjust, self._steps, self._batches, self._times)
        self._device = device
        self._place: dict[str, Any] | None = None
        self._progress = Progress(self._steps, self._times, 0)
        self._saved_step: int | None = None

    def workload(self) -> Training:
        """The same step as a workload, to be measured, diagnosed or tuned; cut into micro-batches where the loop has done so."""
        number = self._steps.micro_batches
        return in_parts(self.work, number) if number > 1 else self.work

    def audit(self, *, steps: int = 8, budget_s: Seconds | None = 10.0) -> AmpAudit:
        """The training's mixed precision beside float32, from where it stands; nothing is changed.

        Raises:
            InputError: the training has none, or the audit cannot be run.
        """
        dtype = self.work.config.autocast
        if dtype is None:
            raise InputError(
                'audit: the training is in float32; give pm.Training(…, amp="bfloat16") or audit_mixed_precision(work)'
            )
        return audit_mixed_precision(self.workload(), dtype, steps=steps, budget_s=budget_s)

    def run(self, steps: int | None = None, *, epochs: int | None = None) -> TrainingRun:
        """Train until the whole training has so many steps or epochs, counted from its start and not from a checkpoint.

        Raises:
            InputError: neither steps nor epochs, or a checkpoint of another training.
            Exception: whatever the user's program raises, unchanged; from a callback with the state saved before.
        """
        if steps is None and epochs is None:
            raise InputError("run: got neither steps nor epochs; give run(steps=…), run(epochs=…) or both")
        self._progress = Progress(self._steps, self._times, self._resume())
        self.parts.optimizer.zero_grad(set_to_none=True)
        modes = [(part, part.training) for module in self.parts.modules for part in module.modules()]
        for module in self.parts.modules:
            module.train()
        with contextlib.ExitStack() as stack:
            stack.callback(_restore_modes, modes)
            stack.callback(self._leave_data)
            signals = stack.enter_context(StopSignals())
            stack.enter_context(torch.enable_grad())
            ended = self._train(steps, epochs, signals)
            self._log()
            self._save()
            run = self._record(ended)
            self._tell("on_end", run)
        return run

    def _train(self, steps: int | None, epochs: int | None, signals: StopSignals) -> str:
        """Step until there is a reason to end; the reason."""
        while True:
            if steps is not None and self.step >= steps:
                return f"reached step {self.step}"
            if epochs is not None and self._batches.epoch >= epochs:
                return f"reached the end of epoch {self._batches.epoch}"
            losses = self._step()
            if losses is None:
                reason = self._end_epoch()
            else:
                self.step += 1
                reason = self._after_step(losses)
            reason = reason or self._asked(signals)
            if reason is not None:
                return reason

    def _step(self) -> list[torch.Tensor] | None:
        again = False
        while True:
            try:
                return self._steps.run(again=again)
            except Exception as error:
                if not is_full(error):
                    raise
                forbidden = self._adjusting.out_of_memory(self.step)
                if forbidden is not None:
                    error.add_note(f"the loop did not cut batches into micro-batches: {forbidden}")
                    raise
            # Only here are the frames of the failed step, and the tensors in them, gone.
            give_back(self._device)
            again = True

    def _after_step(self, losses: list[torch.Tensor]) -> str | None:
        self._progress.unread.append(losses)
        self._adjusting.after_step(self.step)
        if self._callbacks:
            self._tell("on_step", StepEnd(self.step, self._batches.epoch, losses, *self._times.last))
            self._tell_adjustments()
        reason = self._log() if self.step % self._log_every == 0 else None
        if self._evaluate_every is not None and self.step % self._evaluate_every == 0:
            reason = self._evaluated() or reason
        if self.step % self._checkpoint_every == 0:
            self._save()
        return reason

    def _end_epoch(self) -> str | None:
        self._adjusting.after_epoch(self.step)
        self._tell_adjustments()
        return self._evaluated() if self._evaluate_every is None else None

    def _asked(self, signals: StopSignals) -> str | None:
        """Whether a signal asks for the end; several ranks agree on it when they log."""
        received = signals.received
        if world()[1] > 1:
            due = self.step % self._log_every == 0
            received = next(filter(None, gathered(received)), None) if due else None
        return None if received is None else f"received {received}"

    def _log(self, metrics: dict[str, float] | None = None) -> str | None:
        """Read the losses of the steps since the last time; why to stop, where `stop_when` says so."""
        if not self._progress.unread and metrics is None:
            return None
        self._times.read()
        point = self._progress.point(self.step, self._batches.epoch, metrics or {})
        self._tell("on_log", point)
        stop = self._stop_when is not None and bool(self._asked_of_user("stop_when", self._stop_when, point))
        return "stop_when said so" if any(gathered(stop)) else None

    def _evaluated(self) -> str | None:
        """Evaluate, where there is a function for it, and log the metrics; why to stop, where `stop_when` says so."""
        if self._evaluate is None:
            return None
        model = self.parts.model
        modes = [(part, part.training) for part in model.modules()]
        try:
            with preserved_rng(), torch.no_grad():
                model.eval()
                metrics = self._asked_of_user("evaluate", self._evaluate, model)
        finally:
            _restore_modes(modes)
        return self._log({name: float(value) for name, value in metrics.items()})

    def _save(self) -> None:
        if self._folder is None or self._saved_step == self.step:
            return
        state = {
            "format": FORMAT,
            "step": self.step,
            "training": training_state(self.parts),
            "batches": self._batches.state_dict(),
            "adjusted": self._adjusting.state_dict(),
            "user": {name: part.state_dict() for name, part in self._user_state.items()},
            "random": random_state(),
        }
        note = self._folder.save(self.step, state)
        self._saved_step = self.step
        self._progress.checkpoints.append(note)
        self._tell("on_checkpoint", note)

    def _resume(self) -> int:
        """Go to the newest whole checkpoint, or on from where this loop is; the step that is."""
        outside = random_state()
        newest = self._newest() if self.step == 0 else None
        if newest is None:
            if self._place is not None:
                self._batches.load_state_dict(self._place)
                set_random_state(outside)
            return self.step
        assert self._folder is not None
        state = self._folder.load(newest)
        _require_fitting(state, set(self._user_state))
        load_training_state(self.parts, state["training"])
        for name, part in self._user_state.items():
            part.load_state_dict(state["user"][name])
        self._adjusting.load_state_dict(state["adjusted"])
        self._batches.load_state_dict(state["batches"])
        set_random_state(state["random"])  # last: finding the place in the data draws numbers
        self.step = self._saved_step = newest
        return newest

    def _newest(self) -> int | None:
        """The newest step of which every rank has a whole checkpoint."""
        if self._folder is None:
            return None
        if world()[1] == 1:
            return next(self._folder.sound_steps(), None)
        common = set.intersection(*gathered(set(self._folder.sound_steps())))
        return max(common, default=None)

    def _leave_data(self) -> None:
        """End the workers; the place in the data is kept for the next run."""
        self._place = self._batches.state_dict()
        self._batches.close()

    def _tell(self, event: str, value: Any) -> None:
        for callback in self._callbacks:
            hook = getattr(callback, event, None)
            if hook is not None:
                self._asked_of_user(f"{type(callback).__name__}.{event}", hook, value)

    def _asked_of_user(self, what: str, function: Callable[[Any], Any], value: Any) -> Any:
        """Call what is the user's; what it raises is raised, once the state is saved."""
        try:
            return function(value)
        except Exception as error:
            callbacks, self._callbacks = self._callbacks, []  # saving tells nobody: one has just failed
            try:
                self._save()
            finally:
                self._callbacks = callbacks
            saved = f"; the state is saved at step {self.step}" if self._folder is not None else ""
            error.add_note(f"raised by {what}{saved}")
            raise

    def _tell_adjustments(self) -> None:
        untold = self._adjusting.untold
        while untold:
            self._tell("on_adjust", untold.pop(0))

    def _record(self, ended: str) -> TrainingRun:
        return self._progress.record(
            step=self.step,
            epoch=self._batches.epoch,
            ended=ended,
            unit=self.work.unit,
            adjustments=list(self._adjusting.made),
            rejected=[] if self._folder is None else list(self._folder.rejected),
        )


def _folder(path: Path, keep: int) -> CheckpointFolder:
    rank, num_ranks = world()
    return CheckpointFolder(path / f"rank{rank}" if num_ranks > 1 else path, keep)


def _restore_modes(modes: list[tuple[nn.Module, bool]]) -> None:
    for part, training in modes:
        part.training = training


def _require_trainable(work: Any) -> None:
    if not isinstance(work, Training):
        raise InputError(
            f"work: got {type(work).__name__}; a loop trains a pm.Training(model, loss, optimizer, batches)"
        )
    config = work.config
    if config.changes_parameters or config.threads is not None:
        raise InputError(
            f"work: is a variant with {config.label}, which only a copy of the model has; the loop trains the model itself: "
            "convert it, or call torch.set_num_threads, before the training is made"
        )
    if is_lazy(work.parts.model):
        raise InputError("work: the model has lazy parameters; call it once before the optimizer is made")


def _require_fitting(state: dict[str, Any], names: set[str]) -> None:
    if state.get("format") != FORMAT:
        raise InputError(
            f"checkpoint: is of format {state.get('format')}, this version reads {FORMAT}; resume with the version that wrote it"
        )
    if set(state["user"]) != names:
        raise InputError(
            f"state: got {sorted(names)}, the checkpoint holds {sorted(state['user'])}; give the same names as when it was written"
        )
