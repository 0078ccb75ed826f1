"""A training loop under watch: how long steps take and wait for data, loss, gradient norm and loss scale, and what goes wrong with them.

::

    with monitor.training(optimizer) as training:
        for images, labels in training.batches(loader):
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            training.step(loss)

A step is a watched call. Figures that lie on a device are copied behind its work and read later: nothing waits for it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter_ns
from types import TracebackType
from typing import Any, TypeVar

from pyrometer.monitor.detecting.alarm import Alarm
from pyrometer.monitor.detecting.cusum import Cusum
from pyrometer.monitor.detecting.listener import Detection
from pyrometer.monitor.detecting.numerics import NonFinite, NormJump
from pyrometer.monitor.detecting.watch import Guard
from pyrometer.monitor.instruments import series_name
from pyrometer.monitor.signals.signal import Reading
from pyrometer.monitor.tick import Event, Tick
from pyrometer.monitor.watching.arriving import Arriving, is_capturing
from pyrometer.monitor.watching.nesting import INSIDE
from pyrometer.monitor.watching.probe import Callbacks, Probe
from pyrometer.quantity import Seconds

B = TypeVar("B")
MOST_PENDING = 1024
_END: Any = object()


class TrainingWatch:
    """Watches one loop, from `with` to its end; `monitor.training()` makes one.

    As a callback it serves `pm.TrainingLoop(work, callbacks=[training])`. No method raises, but for what the loader raises.
    """

    every_ticks = 1
    from_zero = True

    def __init__(
        self,
        probe: Probe | None,
        callbacks: Callbacks,
        detection: Detection,
        *,
        optimizer: Any = None,
        scaler: Any = None,
        every: int = 10,
        leave: Callable[[TrainingWatch], None] = lambda _training: None,
    ) -> None:
        self._probe, self._callbacks, self._detection, self._leave = probe, callbacks, detection, leave
        self._scaler, self._every = scaler, every
        self._arriving: Arriving[str] = Arriving(MOST_PENDING)
        self._figures: dict[str, list[float]] = {}
        self._bad: dict[str, int] = {}
        self._num_steps = 0
        self._was_inside = False
        self._norm: Any = None
        self._began_ns: int | None = None
        self._asked_ns = self._waited_ns = 0
        self._last_ns = perf_counter_ns()
        self._totals_ns = self._told_ns = (0, 0)
        self._is_closed = probe is None
        self._hook: Any = None
        if probe is not None:
            self._call = probe.intake.name
            for signal, guards in _guards().items():
                detection.watch(f"{self._call}.{signal}", guards)
            if optimizer is not None:
                self._hook = optimizer.register_step_pre_hook(lambda called, *_: self.look_at(called))

    def batches(self, loader: Iterable[B]) -> Iterator[B]:
        """The batches of a loader; how long each is waited for counts as data."""
        batches = iter(loader)
        while True:
            self.ask()
            batch = next(batches, _END)
            if batch is _END:
                self.pause()
                return
            self.got()
            yield batch

    def ask(self) -> None:
        """The loop asks for a batch: a step begins, unless it has."""
        self._asked_ns = perf_counter_ns()
        if self._began_ns is None:
            self._began_ns, self._waited_ns = self._asked_ns, 0

    def got(self) -> None:
        """The batch is there."""
        self._waited_ns += perf_counter_ns() - self._asked_ns

    def pause(self) -> None:
        """What follows is no step, such as an evaluation; the next step begins when its batch is asked for."""
        self._began_ns = None

    def look_at(self, optimizer: Any) -> None:
        """Take the norm of an optimizer's gradients, in one step of `every`; the optimizer that was given calls this before it steps."""
        if self._is_closed or self._num_steps % self._every:
            return
        try:
            self._norm = _norm_of(optimizer)
        except Exception as error:  # noqa: BLE001 - the training goes on whatever we cannot do
            self._callbacks.fault(error)

    def step(self, loss: Any = None, *, grad_norm: Any = None) -> None:
        """A step has ended.

        Args:
            loss: of the step: the tensor as it is, or a number.
            grad_norm: where gradients are clipped, what `clip_grad_norm_` returned: the norm from before.
        """
        if self._is_closed:
            return
        try:
            self._end(perf_counter_ns(), loss, self._norm if grad_norm is None else grad_norm)
        except Exception as error:  # noqa: BLE001 - likewise
            self._callbacks.fault(error)

    def on_step(self, end: Any) -> None:
        """A step of `pm.TrainingLoop` has ended."""
        if not self._is_closed:
            losses = end.batch_losses
            self._last_ns = perf_counter_ns() - round(end.step_s * 1e9)
            self._waited_ns = round(end.data_s * 1e9)
            self.step(losses[0] if len(losses) == 1 else sum(losses) / len(losses))

    def tell(self, figure: str, value: Any) -> None:
        """Tell a figure of the present step: `loss`, `gradient_norm` or `loss_scale`; a tensor or a number."""
        torch = sys.modules["torch"]
        if isinstance(value, (int, float)):
            self._arriving.put_there([float(value)], figure)
            return
        value = value.detach()
        if type(value) is torch.Tensor and not is_capturing(torch):  # sharded ones would communicate
            self._arriving.put((value if value.numel() == 1 else value.mean()).reshape(1), figure, torch)

    def close(self) -> None:
        """Watch no longer; what was told of the last steps still comes with the next tick."""
        self._is_closed = True
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def read(self) -> Reading:
        """Figures that have arrived, as gauges and counts."""
        for (value,), figure in self._arriving.take():
            self._figures.setdefault(figure, []).append(value)
        gauges = {}
        for figure, values in self._figures.items():
            finite = [value for value in values if math.isfinite(value)]
            if finite:
                gauges[f"training_{figure}"] = finite[-1]
            self._bad[figure] = self._bad.get(figure, 0) + len(values) - len(finite)
        (steps_ns, data_ns), (before_ns, waited_ns) = self._totals_ns, self._told_ns
        if steps_ns > before_ns:
            gauges["training_data_share"] = (data_ns - waited_ns) / (steps_ns - before_ns)
            self._told_ns = steps_ns, data_ns
        return Reading(
            gauges,
            {series_name("training_non_finite", ["of"], [of]): float(n) for of, n in self._bad.items()},
        )

    def samples(self, _call: str, _at_s: Seconds, _latencies_s: Any, /) -> None:
        """Take what devices have finished."""
        self._arriving.settle()

    def tick(self, tick: Tick, /) -> Sequence[Event]:
        """Judge the figures of this second."""
        figures, self._figures = self._figures, {}
        for figure, values in figures.items():
            self._detection.look(f"{self._call}.{figure}", tick.at_s, values)
        if self._is_closed:
            self._leave(self)
        return ()

    def alarms(self) -> Sequence[str]:
        """None of its own: they are those of the detection."""
        return ()

    def __enter__(self) -> TrainingWatch:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._was_inside = INSIDE.get()
        INSIDE.set(self._probe is not None)  # watched calls in it are parts of steps
        self._last_ns = perf_counter_ns()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        INSIDE.set(self._was_inside)
        if error is not None and self._probe is not None:
            self._probe.intake.started.up()
            self._probe.fail(error, perf_counter_ns() - (self._began_ns or self._last_ns), ())
        self.close()

    def _end(self, now_ns: int, loss: Any, norm: Any) -> None:
        assert self._probe is not None
        intake = self._probe.intake
        self._callbacks.ensure_running()
        intake.started.up()
        took_ns = now_ns - (self._last_ns if self._began_ns is None else self._began_ns)
        intake.end(took_ns)
        steps_ns, data_ns = self._totals_ns
        self._totals_ns = steps_ns + took_ns, data_ns + self._waited_ns
        self._began_ns, self._waited_ns, self._last_ns, self._norm = None, 0, now_ns, None
        if took_ns > intake.limit_ns:
            self._probe.slow(took_ns, ())
        if loss is not None:
            self.tell("loss", loss)
        if norm is not None:
            self.tell("gradient_norm", norm)
        device = getattr(norm if getattr(loss, "device", None) is None else loss, "device", None)
        scaled = self._scaler is not None and self._scaler.is_enabled() and self._num_steps % self._every == 0
        if scaled and device is not None:  # of the host, a scale of the device would not have arrived yet
            # `get_scale` would wait for the device.
            self.tell("loss_scale", self._scaler.scale(sys.modules["torch"].ones((), device=device)))
        self._num_steps += 1


def _norm_of(optimizer: Any) -> Any:
    """The norm of all gradients, on their device; None where there are none."""
    torch = sys.modules["torch"]
    held = [one.grad for group in optimizer.param_groups for one in group["params"]]
    grads = [grad for grad in held if grad is not None and grad.layout is torch.strided]
    if not grads or is_capturing(torch):
        return None
    with torch.no_grad():
        norm = torch.nn.utils.get_total_norm(grads)
        scale = getattr(optimizer, "grad_scale", None)  # a fused optimizer takes scaled gradients
        return norm if scale is None else norm / scale


def _guards() -> dict[str, Callable[[], list[Guard]]]:
    """Of each signal of a training; steps are fewer than requests, and evaluation is no silence."""
    return {
        "latency": lambda: [Guard("cusum", Cusum(block=5, warm_up=40, memory=200), Alarm())],
        "requests": list,
        "loss": lambda: [
            Guard("non-finite", NonFinite(), Alarm()),
            Guard("cusum", Cusum(block=10, warm_up=20, memory=40, logarithmic=False), Alarm()),
        ],
        "gradient_norm": lambda: [
            Guard("non-finite", NonFinite(), Alarm()),
            Guard("norm-jump", NormJump(), Alarm(persistence=2)),
        ],
        "loss_scale": lambda: [Guard("norm-jump", NormJump(times=1e9, share=2**-12), Alarm())],
    }
