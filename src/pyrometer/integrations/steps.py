"""`pm.observe_steps`: what happens between two lines of a program, step by step, as `pyrometer check` tells it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from pyrometer.errors import UsageError
from pyrometer.evidence.options import ObserveOptions
from pyrometer.evidence.running import RunningSteps
from pyrometer.report.documents import CheckDocument
from pyrometer.rules.diagnose import calling_file
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.settings import RuleSettings
from pyrometer.store.place import local_folder
from pyrometer.verbs.documents import StoreChoice, location_of, stored, told

FEWEST_SKIPPED, MOST_SKIPPED = 3, 50
"""Steps before those that are traced: the first ones are dearer than the others."""


class ObservedSteps:
    """Steps under observation from `begin` to `end`, or in a `with` block; `observe_steps` makes one.

    Attributes:
        document: what `pyrometer check --json` prints of them; `None` before their end.
    """

    def __init__(
        self,
        name: str,
        *,
        skip: int | None = None,
        sources: Iterable[str | Path] | None = None,
        rules: RuleSettings | None = None,
        store: StoreChoice = True,
    ) -> None:
        self.document: CheckDocument | None = None
        self._name = name
        self._skip = skip
        self._sources = calling_file() if sources is None else tuple(map(Path, sources))
        self._rules = rules
        self._store = location_of(store)
        self._running: RunningSteps | None = None

    @property
    def diagnosis(self) -> Diagnosis:
        """What was seen of them means.

        Raises:
            UsageError: they have not ended, or ended in an exception.
        """
        return self._told().diagnosis

    def save(self, path: str | Path) -> Path:
        """Write the document: a page (`.html`), its data (`.json`) or Markdown (`.md`).

        Raises:
            UsageError: the steps have not ended, or ended in an exception.
            InputError: another suffix, or a place that cannot be written.
        """
        return self._told().save(path)

    def begin(self, num_steps: int | None = None) -> None:
        """Observe this thread from now on.

        Args:
            num_steps: how many there will be, where that is known: the trace is then taken in their middle.

        Raises:
            InputError: this process is observed already.
        """
        middle = MOST_SKIPPED if num_steps is None else num_steps // 2
        skip = max(FEWEST_SKIPPED, min(MOST_SKIPPED, middle)) if self._skip is None else self._skip
        peaks = None if self._store is None else local_folder(self._store) / "peaks"
        self.stop()
        self.document = None
        self._running = RunningSteps(self._name, skip=skip, options=ObserveOptions(peaks_folder=peaks))

    def end(self) -> CheckDocument:
        """Leave torch as it was, explain what was seen, and keep it.

        Raises:
            UsageError: they did not begin.
            StoreError: the store cannot be written; `document` is there all the same.
        """
        running, self._running = self._running, None
        if running is None:
            raise UsageError(f"{self._name}: nothing is observed; call begin before end")
        self.document = told(CheckDocument, running.end(), sources=self._sources, rules=self._rules)
        self.document = stored(self.document, self._store)
        return self.document

    def stop(self) -> None:
        """Leave torch as it was, and explain nothing; again is as good as once."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def __enter__(self) -> ObservedSteps:  # noqa: PYI034 - typing.Self needs Python 3.11
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.end()
        else:
            self.stop()

    def _told(self) -> CheckDocument:
        if self.document is None:
            raise UsageError(f"{self._name}: nothing is known before the steps have ended; ask afterwards")
        return self.document


def observe_steps(
    name: str = "steps",
    *,
    skip: int | None = None,
    sources: Iterable[str | Path] | None = None,
    rules: RuleSettings | None = None,
    store: StoreChoice = True,
) -> ObservedSteps:
    """Observe a block in which a model trains or answers, step by step: a loop of your own, or `trainer.train()`.

    A step is found as in a script under observation: an optimizer's step, else a batch of the loader, else a call of the
    outermost module. Three steps are traced, the others cost some microseconds more. After the block `document` is what
    `pyrometer check --json` prints, `diagnosis` what it means, and `save("report.html")` writes it. A block that
    raises is not explained.

    Args:
        name: under which it is listed.
        skip: steps before the trace; by default 50.
        sources: files of the program, whose text the rules read too; by default the file that calls this.
        rules: which rules to ask, with which limits; by default all stable ones.
        store: folder of the store; by default that of the settings, `.pyrometer`; `False` keeps the result nowhere.

    >>> import torch
    >>> layer, x = torch.nn.Linear(8, 2), torch.randn(4, 8)
    >>> with observe_steps("ten calls", store=False) as seen:
    ...     answers = [layer(x) for _ in range(10)]
    >>> seen.document.evidence.script.num_steps
    10
    """
    return ObservedSteps(name, skip=skip, sources=sources, rules=rules, store=store)
