"""What the callbacks of all frameworks share: they observe from the first step to the last, and never break a training."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyrometer.errors import InputError
from pyrometer.integrations.steps import ObservedSteps
from pyrometer.monitor.monitor import Monitor
from pyrometer.monitor.training import TrainingWatch
from pyrometer.rules.settings import RuleSettings
from pyrometer.verbs.documents import StoreChoice

_LOGGER = logging.getLogger("pyrometer")


class ObservedTraining(ObservedSteps):
    """A training under observation, from its begin to its end; another one begins anew.

    Args:
        name: under which it is listed; by default the class of the model.
        skip: steps before the trace; by default half of all steps, at least 3 and at most 50.
        page: where to write the page at the end, such as `report.html`.
        sources: files of the program, whose text the rules read too; by default the file that makes the callback.
        rules: which rules to ask, with which limits; by default all stable ones.
        store: folder of the store; by default that of the settings, `.pyrometer`; `False` keeps the result nowhere.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        skip: int | None = None,
        page: str | Path | None = None,
        sources: Iterable[str | Path] | None = None,
        rules: RuleSettings | None = None,
        store: StoreChoice = True,
    ) -> None:
        super().__init__(name or "", skip=skip, sources=sources, rules=rules, store=store)
        self._page = page

    def training_begins(self, model: Any, num_steps: float) -> None:
        """Observe from now on, unless something prevents it.

        Args:
            model: what is trained.
            num_steps: how many steps there will be; infinite or not positive where that is not known.
        """
        self._name = self._name or type(model).__name__
        known = math.isfinite(num_steps) and num_steps > 0
        with _told_only():
            self.begin(int(num_steps) if known else None)

    def training_ends(self) -> None:
        """Explain what was seen, keep it and write the page."""
        if self._running is None:
            return
        with _told_only():
            try:
                self.end()
            finally:
                if self._page is not None and self.document is not None:
                    self.save(self._page)


class MonitoredTraining:
    """Watches a training by a monitor, from its begin to its end; another one begins anew.

    Args:
        monitor: a `pm.Monitor`, whose exports, detectors and alerts are those of the training.
        settings: as `Monitor.training` takes them, such as `every` and `detection`.

    Attributes:
        watch: of the training that runs or ran last.
    """

    watch: TrainingWatch

    def __init__(self, monitor: Monitor, **settings: Any) -> None:
        self._monitor, self._settings = monitor, settings

    def begin(self, optimizer: Any = None, scaler: Any = None) -> None:
        """Watch from now on; the first batch is asked for."""
        self.watch = self._monitor.training(optimizer, scaler=scaler, **self._settings)
        self.watch.ask()

    def end(self) -> None:
        """Watch no longer."""
        self.watch.close()


def missing(package: str, error: ModuleNotFoundError) -> InputError:
    """What to say where the framework of a callback is not there."""
    return InputError(
        f"this callback needs {package}, which is not installed; install it by pip install {package} ({error})"
    )


@contextlib.contextmanager
def _told_only() -> Iterator[None]:
    """A training must not end for what its observation cannot do: that is told in the log."""
    try:
        yield
    except Exception as error:
        _LOGGER.warning("pyrometer: %s", error, exc_info=_LOGGER.isEnabledFor(logging.DEBUG))
