"""`pyrometer guard check`: head against base, and base against itself, in one job."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from pyrometer.bench.stage import Progress, part_of
from pyrometer.bench.worker import Worker
from pyrometer.errors import PyrometerError
from pyrometer.guard import protocol
from pyrometer.guard.deciding import LOOKS
from pyrometer.guard.discovery import benchmark_files
from pyrometer.guard.environments import (
    Checkout,
    EnvironmentMode,
    build_environment,
    choose_mode,
    import_paths,
    link_pyrometer,
    probe_compiler,
)
from pyrometer.guard.gate import Gate, GuardReport, Missed
from pyrometer.guard.gates import alarmed, counted_gates, self_verdict, timed_gates
from pyrometer.guard.journal import Journal
from pyrometer.guard.observed import Counted
from pyrometer.guard.pairing import pair_up
from pyrometer.guard.pairs import ASK_S, Method, Pair, PairRun, Sample
from pyrometer.guard.revisions import (
    base_revision,
    files_of,
    head_revision,
    repository,
    worktrees,
)
from pyrometer.guard.selecting import selector
from pyrometer.guard.settings import GuardSettings, load_guard_settings
from pyrometer.hardware.environment import read_environment
from pyrometer.quantity import Seconds, counted

SIDES = ("base", "head")
COUNTING_SHARE = 0.15
COUNT_S = 3.0
PAIR_S = 10.0
"""How long a part usually lasts, for progress."""


@dataclass(frozen=True, kw_only=True)
class GuardOptions:
    """What a job is asked for.

    Attributes:
        base: branch, tag or commit that the head is compared with, at the commit where the head left it.
        head: the commit to judge; by default what is checked out, with changes that are not committed.
        select: which benchmarks, as `-k` of pytest.
        environment: own, shared, or auto: shared while nothing that is installed differs.
        budget_s: no further pair is begun after so long.
        explain: observe both sides of what regressed.
        fail_fast: run no pair where something regressed that is the same in every run.
        journal: folder for the pairs of a job that is killed.
        seed: of all orders.
        progress: told the share done.
    """

    base: str
    head: str | None = None
    select: str | None = None
    environment: EnvironmentMode = "auto"
    budget_s: Seconds | None = None
    explain: bool = True
    fail_fast: bool = False
    journal: Path | None = None
    seed: int = 0
    progress: Progress = lambda _share, _what: None


def guard_check(folder: Path, options: GuardOptions) -> GuardReport:
    """Compare what is checked out with a base: every benchmark that both have.

    Both run from worktrees in processes of their own, in turns, from 5 pairs on until everything is decided, at most 12.
    Counters that are the same in every run come first. Ctrl-C keeps what was measured.

    Args:
        folder: in a git repository.
        options: what to compare.

    Raises:
        InputError: no repository, no such commit, or an environment that does not build.
    """
    begin = time.monotonic()
    with opened_job(folder, options) as job:
        if options.fail_fast:
            job.focus = Focus(times=lambda counted: all(gate.outcome != "regressed" for gate in counted))
        report = job.run()
    return msgspec.structs.replace(report, elapsed_s=time.monotonic() - begin, environment=read_environment())


def guard_list(folder: Path, options: GuardOptions) -> tuple[list[str], list[Missed]]:
    """The benchmarks of the head, as far as `select` chooses them, and files that could not be read."""
    with opened_job(folder, options, only_head=True) as job:
        return job.names["head"], job.missed


@contextlib.contextmanager
def opened_job(folder: Path, options: GuardOptions, *, only_head: bool = False) -> Iterator[GuardJob]:
    """A job whose sides are checked out and have told what they hold; everything is gone at the end."""
    root = repository(folder)
    head, notes = head_revision(root, options.head)
    revisions = {"head": head}
    if not only_head:
        base, told = base_revision(root, options.base, head.sha)
        revisions = {"base": base, "head": head}
        notes = [*told, *notes]
    with contextlib.ExitStack() as stack:
        trees = stack.enter_context(worktrees(root, revisions))
        scratch = trees["head"].parent / "scratch"  # goes with the trees, also where this job is killed
        scratch.mkdir()
        settings = load_guard_settings(trees["head"])
        shared = True
        if not only_head:
            shared, told = choose_mode(options.environment, root, revisions["base"], head)
            notes += told
        shim = link_pyrometer(scratch)
        checkouts = {}
        for side, tree in trees.items():
            options.progress(0.0, f"preparing {side}")
            python = build_environment(tree, scratch / f"env-{side}", settings, side, shared=shared)
            paths = import_paths(tree, settings)
            checkouts[side] = Checkout(side, revisions[side], tree, root, python, paths, shim)
        job = stack.enter_context(
            contextlib.closing(GuardJob(root, options, settings, checkouts, scratch, notes))
        )
        job.collect()
        yield job


@dataclass(frozen=True, kw_only=True)
class Focus:
    """What a job looks at, where that is not everything.

    Attributes:
        names: of one benchmark, as either side may call it; empty for all.
        counts: whether what is the same in every run is counted, and the base run against itself.
        times: whether pairs are run, in view of the gates of what was counted.
        is_open: whether a gate asks for more of them.
    """

    names: frozenset[str] = frozenset()
    counts: bool = True
    times: Callable[[Sequence[Gate]], bool] = lambda _counted: True
    is_open: Callable[[Gate], bool] = lambda gate: gate.decisive and gate.outcome == "undecided"


@dataclass
class GuardJob:
    """One job under way.

    Attributes:
        names: the benchmarks of each side.
        shared: those that both have.
        renamed: what the base calls those that it knows by another name.
    """

    root: Path
    options: GuardOptions
    settings: GuardSettings
    checkouts: dict[str, Checkout]
    scratch: Path
    notes: list[str]
    focus: Focus = Focus()
    missed: list[Missed] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    requests: dict[str, protocol.Collect] = field(default_factory=dict)
    shared: list[str] = field(default_factory=list)
    counted: dict[str, dict[str, Counted]] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    interrupted: bool = False
    num_pairs: int = 0
    _workers: dict[str, Worker] = field(default_factory=dict)
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def collect(self) -> None:
        """Ask each side what it has; the processes stay, to count it.

        Raises:
            InputError: a side imports the user's own tree, so that both would run the same code.
        """
        for side, checkout in self.checkouts.items():
            self.requests[side] = protocol.Collect(
                tree=str(checkout.tree),
                files=benchmark_files(files_of(checkout.tree, checkout.revision)),
                targets=self.settings.targets,
                matrix=self.settings.matrix,
                paths=list(checkout.paths),
                foreign=str(self.root),
            )
            self._start(side)
        self._selected = selector(self.options.select)
        bodies = {}
        for side in self._workers:
            found = self._ask_first(side)
            bodies[side] = found.bodies
            self.missed += [
                Missed(benchmark=name, side=side, reason=reason, failed=True)  # type: ignore[arg-type]
                for name, reason in found.failures
            ]
        if "base" in bodies:
            self._pair_up(bodies["base"], bodies["head"])
        self.names = {side: [name for name in own if self._is_wanted(name)] for side, own in bodies.items()}

    def _pair_up(self, base: Mapping[str, str | None], head: Mapping[str, str | None]) -> None:
        paired = pair_up(base, head, self.missed)
        self.shared = [name for name in paired.shared if self._is_wanted(name, paired.renamed.get(name))]
        self.missed += [miss for miss in paired.missed if self._is_wanted(miss.benchmark)]
        self.renamed = {name: own for name, own in paired.renamed.items() if name in self.shared}
        if self.renamed:
            self.notes += [f"{name}: renamed from {own}" for name, own in self.renamed.items()]
            self.requests["base"] = msgspec.structs.replace(self.requests["base"], renamed=self.renamed)
            self._ask_first("base")

    def _is_wanted(self, *names: str | None) -> bool:
        """Whether a benchmark of these names, which are of the head and of the base, is looked at."""
        if self.focus.names:
            return not self.focus.names.isdisjoint(names)
        return any(name is not None and self._selected(name) for name in names)

    def _ask_first(self, side: str) -> protocol.Collected:
        return self._workers[side].ask(self.requests[side], protocol.Collected, timeout_s=ASK_S)

    def close(self) -> None:
        """End the processes that collected and counted."""
        self._stack.close()

    def _start(self, side: str) -> None:
        self._workers[side] = self._stack.enter_context(self.process(side, f"count-{len(self.missed)}"))

    @contextlib.contextmanager
    def process(self, side: str, what: str) -> Iterator[Worker]:
        """A process of a side, ended at the end."""
        worker = self.checkouts[side].start(
            self.scratch / f"{what}-{side}.log", self.scratch / f"{what}-{side}"
        )
        try:
            yield worker
        finally:
            worker.close()

    def run(self) -> GuardReport:
        """Count, then time in pairs, then say why."""
        begin = time.monotonic()
        try:
            if self.shared:
                if self.focus.counts:
                    self._count(
                        part_of(self.options.progress, 0.0, COUNTING_SHARE, COUNT_S * len(self.shared))
                    )
                self.close()  # nothing else runs beside a pair
                if any(side.inductor for own in self.counted.values() for side in own.values()):
                    probes = probe_compiler(self.scratch / "probes")
                    self.checkouts = {
                        side: replace(each, probes=probes) for side, each in self.checkouts.items()
                    }
                if self.focus.times([gate for name in self.shared for gate in self._counted_gates(name)]):
                    self._time(part_of(self.options.progress, COUNTING_SHARE, 0.9, PAIR_S * LOOKS[0]))
        except KeyboardInterrupt:
            self.interrupted = True
        timed = timed_gates(self.samples, self.settings)
        gates = [
            gate
            for name in self.shared
            for gate in (*self._counted_gates(name), *(one for one in timed if one.benchmark == name))
        ]
        verdict = self_verdict(self.samples, self.settings, time.monotonic() - begin)
        report = GuardReport(
            target=self.checkouts["head"].revision.ref,
            trusted=not alarmed(verdict),
            self_check=verdict,
            gates=gates,
            base=self.checkouts["base"].revision,
            head=self.checkouts["head"].revision,
            missed=self.missed,
            renamed=self.renamed,
            num_pairs=self.num_pairs,
            interrupted=self.interrupted,
            notes=list(dict.fromkeys(self.notes)),
        )
        return self._explained(report)

    def _counted_gates(self, name: str) -> list[Gate]:
        own = self.counted.get(name, {})
        whole = len(own) == len(SIDES)
        return counted_gates(name, own["base"], own["head"], self.settings) if whole else []

    def _explained(self, report: GuardReport) -> GuardReport:
        is_worse = any(gate.outcome == "regressed" for gate in report.gates)
        if not is_worse or not self.options.explain or self.interrupted:
            return report
        from pyrometer.guard.explaining import explain_regressions  # a job that finds nothing starts without

        try:
            return explain_regressions(self, report, part_of(self.options.progress, 0.9, 1.0, PAIR_S))
        except KeyboardInterrupt:
            return msgspec.structs.replace(report, interrupted=True)

    def _count(self, tell: Progress) -> None:
        """Each side once, whatever its benchmarks have that is the same in every run."""
        folder = self.scratch / "outputs"
        folder.mkdir()
        for number, name in enumerate(list(self.shared)):
            tell(number / len(self.shared), f"counting {name}")
            for side in SIDES:
                outputs = folder / f"{number}.pt"
                request = protocol.Count(name=name, outputs=str(outputs), reference=side == "base")
                try:
                    counted = self._workers[side].ask(request, Counted, timeout_s=ASK_S)
                except PyrometerError as error:
                    self._drop(Missed(benchmark=name, side=side, reason=str(error), failed=True))  # type: ignore[arg-type]
                    if not self._workers[side].alive:
                        self._start(side)
                        self._ask_first(side)
                    break
                self.counted.setdefault(name, {})[side] = counted
                self.notes += [f"{name}: {note}" for note in counted.notes]

    def _drop(self, missed: Missed) -> None:
        self.missed.append(missed)
        if missed.benchmark in self.shared:
            self.shared.remove(missed.benchmark)
        self.samples.pop(missed.benchmark, None)

    def _time(self, tell: Progress) -> None:
        """Pairs of processes, until every decisive metric is decided."""
        journal = Journal(self.options.journal, self._identity())
        kept = journal.read()
        coin = random.Random(self.options.seed)  # noqa: S311 - orders, not secrets
        begin, methods = time.monotonic(), dict[str, Method]()
        active, twice = list(self.shared), self._twice()
        while active and self.num_pairs < LOOKS[-1]:
            spent = time.monotonic() - begin
            budget_s = self.options.budget_s
            if budget_s is not None and self.num_pairs and spent * (1 + 1 / self.num_pairs) > budget_s:
                self.notes.append(f"the budget was enough for {counted(self.num_pairs, 'pair')}")
                break
            seed = coin.getrandbits(31)
            is_kept = bool(kept)
            pair = kept.pop(0) if is_kept else self._pair(active, twice, methods, seed, tell)
            self._take(pair, methods)
            self.num_pairs += 1
            if not is_kept:
                journal.add(pair)  # what it holds is in the report, also of a job that is ended right now
            if self.num_pairs in LOOKS:
                active = self._open_names()
                verdict = self_verdict(self.samples, self.settings, 0.0)
                if verdict is not None and verdict.outcome != "undecided":
                    twice = frozenset()
            active = [name for name in active if name in self.shared]
        journal.remove()

    def _pair(
        self,
        active: Sequence[str],
        twice: frozenset[str],
        methods: dict[str, Method],
        seed: int,
        tell: Progress,
    ) -> Pair:
        folder = self.scratch / f"pair-{self.num_pairs}"
        folder.mkdir()
        done, whole = self.num_pairs, LOOKS[-1]

        def told(share: float, name: str) -> None:
            tell((done + share) / whole, f"pair {done + 1}: {name}")

        collect = {side: self.narrowed(side, active) for side in SIDES}
        return PairRun(
            self.checkouts, collect, active, twice & set(active), methods, folder, seed, told
        ).run()

    def narrowed(self, side: str, names: Collection[str]) -> protocol.Collect:
        """What a process of a side is asked for that is to run these benchmarks alone: no other file is imported."""
        request = self.requests[side]
        own = {request.renamed.get(name, name) for name in names}
        return msgspec.structs.replace(
            request,
            files=[file for file in request.files if any(name.startswith(f"{file}::") for name in own)],
            targets=[target for target in request.targets if any(name.startswith(target) for name in own)],
            renamed={name: base for name, base in request.renamed.items() if name in names},
        )

    def _take(self, pair: Pair, methods: dict[str, Method]) -> None:
        for missed in pair.missed:
            if missed.benchmark in self.shared:
                self._drop(missed)
        for name, sample in pair.samples.items():
            if name in self.shared:
                self.samples.setdefault(name, []).append(sample)
                methods.setdefault(name, (sample.metric, sample.calls))

    def _open_names(self) -> list[str]:
        """Benchmarks of which a gate is open."""
        gates = timed_gates(self.samples, self.settings)
        return list(dict.fromkeys(gate.benchmark for gate in gates if self.focus.is_open(gate)))

    def _twice(self) -> frozenset[str]:
        """One benchmark of each kind of workload: those in which the base also runs against itself."""
        by_kind: dict[str, str] = {}
        for name in self.shared if self.focus.counts else ():
            by_kind.setdefault(self.counted[name]["base"].kind, name)
        return frozenset(by_kind.values())

    def _identity(self) -> list[str]:
        from pyrometer.hardware.fingerprint import fingerprint

        trees = [checkout.revision.sha for checkout in self.checkouts.values()]
        return [str(self.root), *trees, *self.shared, str(self.options.seed), fingerprint(read_environment())]
