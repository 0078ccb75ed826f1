"""Trials on a cluster of Ray: a bench on each machine of this one's kind, and the search asks all of them at once.

A search goes on one lever at a time. While it waits for the next one, those after it are tried on other machines against the
same configuration, and wait in the journal. Where the next one is kept, they are tried anew, against it. A trial is on
one machine with the whole of a comparison, and a machine has one trial at a time.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from pyrometer.cluster import LOCAL, connected
from pyrometer.errors import InputError
from pyrometer.hardware.environment import read_environment
from pyrometer.hardware.fingerprint import require_comparable
from pyrometer.hardware.record import Environment
from pyrometer.quantity import Seconds, counted
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.outcome import LeverOutcome
from pyrometer.tuning.search.budget import Budget
from pyrometer.tuning.search.search import Search
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.search.weighing import Weighing
from pyrometer.tuning.trials.gate import Limits
from pyrometer.tuning.trials.laboratory import Laboratory
from pyrometer.tuning.trials.protocol import Source

MOST_LOSSES = 3
"""Workers of one machine that may be lost; Ray starts another one each time, which measures the same trial again."""


class Order(NamedTuple):
    """What benches are to hold, as it travels to them.

    Attributes:
        pickled: a workload from memory; None where the source names a target.
        copied: whether the working directory is a copy that Ray has laid there.
    """

    source: Source
    pickled: bytes | None
    copied: bool
    cwd: str
    limits: Limits
    settings: TuneSettings
    step_s: Seconds
    environment: Environment


class Bench:
    """A machine's laboratory, with the baseline as its reference; lives in a process of Ray.

    Raises:
        PyrometerError: the machine is of another kind, or the workload does not run on it.
    """

    def __init__(self, order: Order) -> None:
        if "OMP_NUM_THREADS" not in order.environment.settings:
            os.environ.pop("OMP_NUM_THREADS", None)  # which Ray sets for its workers, and ours inherit
        require_comparable(order.environment, read_environment())
        self._folder = tempfile.TemporaryDirectory(prefix="pyrometer-tune-", ignore_cleanup_errors=True)
        folder, settings = Path(self._folder.name), order.settings
        source, cwd = order.source, str(Path.cwd()) if order.copied else order.cwd
        if source.spec is not None:
            source = Source(spec=replace(source.spec, cwd=cwd))
        if order.pickled is not None:
            source = Source(pickled=str(folder / "workload.pickle"))
            (folder / "workload.pickle").write_bytes(order.pickled)
        laboratory = Laboratory(
            source, folder, order.limits, metric=settings.metric, cwd=cwd, step_s=order.step_s
        )
        baseline = laboratory.open(())
        laboratory.keep_reference(baseline)
        self._weighing = Weighing(laboratory, settings, Budget(settings.budget_s), order.step_s)
        self._weighing.begin_with(baseline)

    def attempt(self, blank: LeverOutcome, left_s: Seconds) -> LeverOutcome:
        """Try a lever, as the search does; it ends within the time that is left."""
        self._weighing.budget = Budget(left_s)
        self._weighing.reserve(tuple(blank.against))
        return self._weighing.weigh(blank)


class Crew:
    """The benches of a cluster."""

    def __init__(self, ray: Any, benches: Sequence[Any]) -> None:
        self._ray = ray
        self._benches = list(benches)
        self._told: list[str] = []
        self.num_tried = 0

    @property
    def note(self) -> str:
        """What was done where, for the report."""
        trials, machines = counted(self.num_tried, "trial"), counted(len(self._benches), "machine")
        tried = f"{trials} ran on {machines} of the cluster"
        return "; ".join([tried, *dict.fromkeys(self._told)])

    def ahead(self, search: Search, waiting: Sequence[LeverChoice]) -> None:
        """Try the next levers at once, one on each machine, and write down what comes of it.

        Raises:
            InputError: no machine of the cluster can be used.
        """
        running: dict[Any, Any] = {}
        for bench, blank in zip(self._benches, untried(search, waiting), strict=False):
            running[bench.attempt.remote(blank, search.budget.left_s)] = bench
        while running:
            done, _ = self._ray.wait(list(running), timeout=max(search.budget.left_s, 0.0))
            if not done:
                return  # what is left is told as untried
            bench = running.pop(done[0])
            try:
                outcome: LeverOutcome = self._ray.get(done[0])
            except self._ray.exceptions.RayError as error:
                self._let_go(bench, error)
                continue
            if outcome.outcome != "untried":
                search.journal.add(outcome)
                self.num_tried += 1

    def _let_go(self, bench: Any, error: Exception) -> None:
        """Go on without a machine; what was tried on it is tried on another one, or here."""
        said = [line for line in str(error).splitlines() if "pyrometer.errors." in line]
        why = said[-1].split(": ", 1)[-1] if said else " ".join(str(error).split())[:200]
        self._benches.remove(bench)
        self._told.append(f"a machine was left out: {why}")
        if not self._benches:
            raise InputError(f"--cluster: no machine can be used: {why}") from error


def untried(search: Search, waiting: Sequence[LeverChoice]) -> Iterator[LeverOutcome]:
    """What the search would try next against its best configuration, and did not yet."""
    for choice in waiting:
        configuration = search.configuration_of(choice)
        if configuration == search.best or search.settled(choice, configuration) is not None:
            continue
        if search.journal.recall(search.best, configuration) is None:
            yield search.blank(choice, configuration)


@contextlib.contextmanager
def crew(address: str, order: Order) -> Iterator[Crew]:
    """The machines of a cluster, for as long as a search takes.

    Raises:
        InputError: the cluster cannot be reached.
    """
    # Ray would say it itself, by the cores that it gave a process: a comparison needs threads as in the baseline.
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(order.environment.threads))}
    folder = None if order.pickled is not None else Path(order.cwd)
    with connected(address, folder=folder, environment=threads) as ray:
        order = order._replace(copied=folder is not None and address != LOCAL)
        yield Crew(ray, [_placed(ray, node, order) for node in ray.nodes() if node["Alive"]])


def _placed(ray: Any, node: dict[str, Any], order: Order) -> Any:
    """A bench that has all cores and GPUs of a machine."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    actor = ray.remote(
        num_cpus=node["Resources"].get("CPU", 1),
        num_gpus=node["Resources"].get("GPU", 0),
        max_restarts=MOST_LOSSES,
        max_task_retries=MOST_LOSSES,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
    )(Bench)
    return actor.remote(order)
