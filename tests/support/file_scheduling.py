"""Hand whole files of tests to workers, also after one of them has crashed.

pytest-xdist 3.8 queues everything again that a crashed worker ever ran, and workers that are given a finished file, or the last test of
the last one, wait for ever (its issues 1327 and 1378). Later versions end; what is done here does no harm there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class FileScheduling(LoadFileScheduling):
    """`--dist loadfile` that comes to an end."""

    def remove_node(self, node: WorkerController) -> str | None:
        """The test that crashed, if any; it counts as done, and files that are done are not queued again."""
        units = self.assigned_work[node]
        pending = ((tests, test) for tests in units.values() for test, done in tests.items() if not done)
        tests, crashed = next(pending, (None, None))
        if tests is not None:
            tests[crashed] = True
        self.assigned_work[node] = {file: tests for file, tests in units.items() if not all(tests.values())}
        super().remove_node(node)
        return crashed

    def schedule(self) -> None:
        """Twice, so that a new worker that is given a single test is also told what comes after it."""
        super().schedule()
        super().schedule()

    def _reschedule(self, node: WorkerController) -> None:
        """Only for workers that have collected: of two that replace others, one has not yet where the other has."""
        if node in self.registered_collections:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """One that has just crashed is told nothing; what it was given is queued again once that is seen."""
        with contextlib.suppress(OSError):
            super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Callable[..., None]) -> FileScheduling | None:
    """Ours for `--dist loadfile`, that of xdist for all else."""
    return FileScheduling(config, log) if config.getvalue("dist") == "loadfile" else None
