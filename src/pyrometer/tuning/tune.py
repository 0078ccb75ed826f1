"""`tune`: measure, try every lever that could help, keep what is proved, and hand over the recipe."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.stage import Progress
from pyrometer.cluster import require_cluster
from pyrometer.errors import InputError, PyrometerError
from pyrometer.evidence.options import silent
from pyrometer.hardware.environment import Environment, read_environment
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import to_json
from pyrometer.rules.finding import Finding
from pyrometer.settings import parse_bytes, parse_duration
from pyrometer.store.commit import read_commit
from pyrometer.tuning.levers.choice import Configuration, LeverChoice
from pyrometer.tuning.levers.lever import LeverOf
from pyrometer.tuning.levers.registry import find_lever, select
from pyrometer.tuning.outcome import Goal, LeverOutcome, RecipeSummary, Tuning
from pyrometer.tuning.ranks.laboratory import RankLaboratory, laboratory_for
from pyrometer.tuning.recipe.making import kept_files, make_recipe, proof_of
from pyrometer.tuning.recipe.recipe import Artefact, Recipe, artefact_of
from pyrometer.tuning.search.advised import findings_of
from pyrometer.tuning.search.budget import PAIR_S, Budget
from pyrometer.tuning.search.confirming import Pairs, confirm
from pyrometer.tuning.search.journal import Journal, identity_of
from pyrometer.tuning.search.ordering import Prediction, predictions_of
from pyrometer.tuning.search.priors import priors_of, with_priors
from pyrometer.tuning.search.remaining import remaining
from pyrometer.tuning.search.search import LEAST_SAVING, THEN_S, Search
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Limits, Numerics
from pyrometer.tuning.trials.laboratory import Laboratory, OpenConfiguration, opened
from pyrometer.tuning.trials.sending import send
from pyrometer.workload.target import Target, parse_target
from pyrometer.workload.workload import Workload

JOURNAL = "journal.jsonl"
_WITHOUT_GOAL = "it trades time for memory: give a goal, such as --memory 2GiB"


def tune(
    work: Workload | str | Target,
    *,
    latency: Seconds | str | None = None,
    memory: Bytes | str | None = None,
    budget_s: Seconds | None = None,
    path: str | Path | None = None,
    progress: Progress | None = None,
    nproc: int | None = None,
    **settings: Any,
) -> Recipe:
    """Try what could make a workload faster, keep what is proved, and return the recipe.

    Each configuration runs in a process of its own; nothing of the user's objects is changed.

    Args:
        work: a workload, or a target such as `model.py:workload`.
        latency: goal for the median step, in seconds or as `"10ms"`.
        memory: limit for the peak of memory, in bytes or as `"2GiB"`.
        budget_s: for all of it, from the diagnosis to the confirmation; 600 s by default.
        path: where to write the recipe; by default nowhere.
        progress: told of the share of the budget that is spent.
        nproc: run a script on so many ranks by torchrun, and try how it spreads its model over them.
        settings: further fields of `TuneSettings`: `tolerance`, `allow_semantic`, `metric`, `only`, `without`, `stages`, `seed`.

    Raises:
        InputError: the workload cannot be sent to another process, or a setting is illegal.
        UserProgramError: the user's program fails as it is.
    """
    chosen: dict[str, Any] = dict(settings)
    if latency is not None:
        chosen["latency_s"] = parse_duration(latency) if isinstance(latency, str) else latency
    if memory is not None:
        chosen["memory_bytes"] = parse_bytes(memory) if isinstance(memory, str) else memory
    if budget_s is not None:
        chosen["budget_s"] = budget_s
    try:
        asked = TuneSettings(**chosen)
    except TypeError as error:
        raise InputError(f"tune: {error}; legal are {', '.join(TuneSettings.__struct_fields__)}") from error
    _, recipe = search_recipe(
        work, asked, path=None if path is None else Path(path), progress=progress, num_ranks=nproc
    )
    return recipe


def search_recipe(
    work: Workload | str | Target,
    settings: TuneSettings,
    *,
    path: Path | None = None,
    resume: bool = False,
    budget: Budget | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
    num_ranks: int | None = None,
) -> tuple[Tuning, Recipe]:
    """Search, confirm, and make the recipe; what `tune` and the verb stand on.

    Args:
        work: what to tune.
        settings: goals, limits and levers.
        path: of the recipe; beside it, in a folder of the same name, lies what the search decided and what levers wrote.
        resume: go on with a search that ended early.
        budget: the time of the settings, where some of it is spent already.
        cluster: of Ray, on whose machines of this one's kind levers are tried.
        progress: told how far it is.
        num_ranks: of a script that is to be run by torchrun.

    Raises:
        PyrometerError: see `tune`.
    """
    if cluster is not None:
        require_cluster(cluster)
    budget, tell = budget or Budget(settings.budget_s), progress or silent
    selected = _fitting(settings, num_ranks)
    wanted = [lever for lever in selected if settings.memory_bytes is not None or not lever.for_memory]
    with _bench(work, settings, path, num_ranks) as bench:
        findings, without = _advised(bench.laboratory.source, budget, tell)
        tell(budget.share, "the baseline")
        baseline = bench.laboratory.open(())
        try:
            base = _Baseline.of(bench, baseline, [lever.name for lever in wanted], budget)
        except BaseException:
            baseline.close()
            raise
        journal = Journal(bench.folder / JOURNAL, _identity(bench, base, settings), resume=resume)
        surveyed, step_s = base.surveyed, base.measurement.median_s
        priors = priors_of(surveyed.device, surveyed.family, step_s)
        search = Search(
            bench.laboratory,
            settings,
            journal,
            with_priors(predictions_of(findings), priors),
            step_s,
            tell,
            budget,
        )
        search.begin_with(baseline)
        try:
            reasons = {lever.name: _WITHOUT_GOAL for lever in selected if lever not in wanted}
            search.outcomes += _refused(base.surveyed, search.predicted, settings, reasons)
            where = _run(search, _choices(base.surveyed, settings), cluster, bench, base)
        finally:
            search.close()
        confirmation = _confirmed(bench, search, base.peak_bytes, tell)
        noted = (*base.surveyed.notes, confirmation.note, without, where)
        notes = [note for note in noted if note is not None]
        return _handed_over(bench, base, search, confirmation, notes)


def _fitting(settings: TuneSettings, num_ranks: int | None) -> list[LeverOf[Any]]:
    """The levers that are wanted, of those for many ranks or of those for one process.

    Raises:
        InputError: one that is named is for the other.
    """
    on_ranks = num_ranks is not None
    for name in settings.only:
        if ("ranks" in find_lever(name).kinds) != on_ranks:
            how = "leave out --nproc" if on_ranks else "pass --nproc with a script that torchrun would start"
            raise InputError(f"lever {name}: it is for {'one process' if on_ranks else 'many ranks'}; {how}")
    return [each for each in select(settings.only, settings.without) if ("ranks" in each.kinds) == on_ranks]


def _run(
    search: Search, choices: dict[str, list[LeverChoice]], cluster: str | None, bench: _Bench, base: _Baseline
) -> str | None:
    """Try everything, here or on a cluster; what is to be told of that."""
    if cluster is None:
        search.run(choices)
        return None
    from pyrometer.tuning.search.on_cluster import Order, crew

    laboratory = bench.laboratory
    sent = laboratory.source.pickled
    order = Order(
        laboratory.source,
        None if sent is None else Path(sent).read_bytes(),
        False,
        str(bench.cwd),
        laboratory.limits,
        search.settings,
        laboratory.step_s,
        base.environment,
    )
    with crew(cluster, order) as machines:
        search.ahead = machines.ahead
        search.run(choices)
        return machines.note


def _advised(source: protocol.Source, budget: Budget, tell: Progress) -> tuple[Sequence[Finding], str | None]:
    """The findings of a target; a workload that was handed over cannot be diagnosed elsewhere."""
    return ((), None) if source.spec is None else findings_of(source.spec.target(), tell, budget)


# ---- the place of the search -----------------------------------------------------------------------------------


@dataclass
class _Bench:
    """Where a search takes place."""

    target: str
    laboratory: Laboratory
    folder: Path
    path: Path | None
    cwd: Path


@contextlib.contextmanager
def _bench(
    work: Workload | str | Target, settings: TuneSettings, path: Path | None, num_ranks: int | None
) -> Iterator[_Bench]:
    """A folder for the search: beside the recipe, where it can be resumed; else a temporary one."""
    with contextlib.ExitStack() as stack:
        if path is None:
            folder = Path(
                stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="pyrometer-tune-", ignore_cleanup_errors=True)
                )
            )
        else:
            folder = path.with_suffix(".tune")
            _made(folder)
        if isinstance(work, str):
            work = parse_target(work)
        limits = Limits(tolerance=settings.tolerance, metric_drop=settings.metric_drop)
        if num_ranks is not None:
            if not isinstance(work, Target):
                raise InputError(
                    "nproc: got a workload, of one process; name the script that torchrun would start"
                )
            ranks = laboratory_for(work, num_ranks, folder, limits)
            yield _Bench(work.text, ranks, folder, path, Path(work.spec.cwd))
            return
        if isinstance(work, Target):
            source, name, cwd = protocol.Source(spec=work.spec), work.text, Path(work.spec.cwd)
            if work.kind == "script":
                from pyrometer.workload.loading import load_workload

                load_workload(work)  # says that a script has no factory, and which there are
        else:
            send(work, folder / "workload.pickle")
            source, name, cwd = (
                protocol.Source(pickled=str(folder / "workload.pickle")),
                work.name,
                Path.cwd(),
            )
        laboratory = Laboratory(source, folder, limits, metric=settings.metric, cwd=str(cwd))
        yield _Bench(name, laboratory, folder, path, cwd)


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be made: {error.strerror}; name another place for the recipe with -o"
        ) from error


# ---- before and after the search ---------------------------------------------------------------------------------


@dataclass
class _Baseline:
    """What the workload is before anything is changed."""

    measurement: Measurement
    peak_bytes: Bytes
    surveyed: protocol.Surveyed
    environment: Environment

    @classmethod
    def of(cls, bench: _Bench, side: OpenConfiguration, levers: Sequence[str], budget: Budget) -> _Baseline:
        laboratory = bench.laboratory
        measurement = laboratory.measure(side, budget.baseline_s)
        if not measurement.complete:
            raise InputError(
                f"{bench.target}: {measurement.failure or 'the measurement was not complete'}; tune needs a workload that runs"
            )
        peak = laboratory.peak_bytes(side)
        planned = [name for name in levers if find_lever(name).for_memory]
        surveyed = laboratory.survey(side, [name for name in levers if name not in planned])
        if planned:
            surveyed = _with_planned(laboratory, surveyed, planned, budget.planning_s)
        laboratory.keep_reference(side)
        return cls(measurement, peak, surveyed, read_environment())


def _with_planned(
    laboratory: Laboratory, surveyed: protocol.Surveyed, levers: list[str], limit_s: Seconds
) -> protocol.Surveyed:
    """What was surveyed, and levers whose plan is measured, in a process of their own: it may take too long."""
    try:
        with opened(laboratory, ()) as side:
            more = laboratory.survey(side, levers, timeout_s=limit_s)
    except PyrometerError as error:
        reasons = dict.fromkeys(levers, f"whether it fits could not be found out: {error}")
        return replace(surveyed, refused=surveyed.refused | reasons)
    return replace(surveyed, refused=surveyed.refused | more.refused, choices=surveyed.choices | more.choices)


def _identity(bench: _Bench, base: _Baseline, settings: TuneSettings) -> str:
    goals = replace(settings, budget_s=1.0)  # more time is what one resumes for
    return identity_of(
        bench.target,
        base.surveyed.signature.parameters,
        base.environment.fingerprint,
        to_json(goals).decode(),
    )


def _choices(surveyed: protocol.Surveyed, settings: TuneSettings) -> dict[str, list[LeverChoice]]:
    return {
        name: [LeverChoice(lever=name, parameters=parameters) for parameters in listed]
        for name, listed in surveyed.choices.items()
        if settings.may_change_meaning or find_lever(name).fix_class != "semantic"
    }


def _refused(
    surveyed: protocol.Surveyed,
    predicted: dict[str, Prediction],
    settings: TuneSettings,
    reasons: dict[str, str],
) -> list[LeverOutcome]:
    reasons = reasons | surveyed.refused
    if not settings.may_change_meaning:
        for name in surveyed.choices:
            if find_lever(name).fix_class == "semantic":
                reasons[name] = (
                    "it changes what is computed: give --metric file.py:function, or --allow semantic"
                )
    return [
        LeverOutcome(
            name=name,
            outcome="not applicable",
            stage=find_lever(name).stage,
            fix_class=find_lever(name).fix_class,
            reason=reason,
            predicted_low=predicted.get(name, Prediction()).low,
            predicted_high=predicted.get(name, Prediction()).high,
            rules=list(predicted.get(name, Prediction()).rules),
        )
        for name, reason in reasons.items()
    ]


@dataclass
class _Confirmation:
    """What the confirmation found; nothing where no lever was kept."""

    configuration: Configuration
    verdict: Verdict | None = None
    numerics: Numerics | None = None
    peak_bytes: Bytes | None = None
    note: str | None = None


def _confirmed(bench: _Bench, search: Search, baseline_bytes: Bytes, tell: Progress) -> _Confirmation:
    """Prove the best configuration anew; one that does not hold is not handed over."""
    if not search.best:
        return _Confirmation(())
    try:
        budget = search.budget
        then_s = 0.0 if search.settings.latency_s is None else THEN_S
        end_s = budget.now() + budget.left_s - then_s
        pairs = Pairs(search.settings.num_confirmations, PAIR_S, end_s, budget.now, budget.fewest_pairs)
        verdict, numerics, peak = confirm(
            bench.laboratory, search.best, pairs, lambda _, what: tell(budget.share, what)
        )
    except KeyboardInterrupt:
        search.interrupted = True
        return _Confirmation(
            search.best, note="interrupted before the recipe was confirmed in fresh processes"
        )
    except PyrometerError as error:
        return _Confirmation((), note=f"the recipe could not be confirmed and is dropped: {error}")
    if not numerics.passes:
        return _Confirmation(
            (),
            note=f"the recipe computed wrong numbers when it was confirmed, and is dropped: {numerics.refused}",
        )
    limit = search.settings.memory_bytes
    saves = limit is not None and baseline_bytes > limit and peak < baseline_bytes * (1 - LEAST_SAVING)
    if verdict.outcome in {"slower", "same"} and not saves:
        return _Confirmation(
            (),
            verdict,
            numerics,
            peak,
            note="in fresh processes the recipe was no faster than the baseline, and is dropped",
        )
    return _Confirmation(search.best, verdict, numerics, peak)


def _handed_over(
    bench: _Bench,
    base: _Baseline,
    search: Search,
    confirmation: _Confirmation,
    notes: list[str],
) -> tuple[Tuning, Recipe]:
    proof = None
    if confirmation.verdict is not None and confirmation.numerics is not None and confirmation.configuration:
        proof = proof_of(confirmation.verdict, confirmation.numerics, confirmation.peak_bytes)
    recipe = make_recipe(
        confirmation.configuration,
        search.outcomes,
        target=bench.target,
        kind=base.surveyed.kind,
        commit=read_commit(bench.cwd)[0],
        signature=base.surveyed.signature,
        proof=proof,
        tolerance=search.settings.tolerance,
        environment=base.environment,
        num_ranks=bench.laboratory.num_ranks if isinstance(bench.laboratory, RankLaboratory) else None,
        artefacts=_artefacts(bench, confirmation.configuration),
        now=dt.datetime.now(dt.UTC),
    )
    if bench.path is not None:
        recipe.write(bench.path)
    tuning = Tuning(
        target=bench.target,
        kind=recipe.kind,
        baseline=base.measurement,
        baseline_peak_bytes=base.peak_bytes,
        recipe=RecipeSummary(
            path=None if bench.path is None else os.fspath(bench.path),
            levers=list(confirmation.configuration),
        ),
        final=confirmation.verdict,
        numerics=confirmation.numerics,
        levers=search.outcomes,
        stages=search.stages,
        targets=list(_goals(bench, base, confirmation, search.settings)),
        signature=base.surveyed.signature,
        environment=base.environment,
        elapsed_s=search.budget.spent_s,
        interrupted=search.interrupted,
        notes=notes,
    )
    return tuning, recipe


def _artefacts(bench: _Bench, configuration: Configuration) -> dict[str, list[Artefact]]:
    """Keep what the recipe's levers wrote beside it; without a recipe on disk there is nothing to keep."""
    made = bench.laboratory.files_of(configuration)
    if bench.path is None or not made:
        return {}
    places = kept_files(configuration, made, bench.folder)
    return {
        lever: [artefact_of(path, bench.path.parent) for path in paths] for lever, paths in places.items()
    }


def _goals(
    bench: _Bench, base: _Baseline, confirmation: _Confirmation, settings: TuneSettings
) -> Iterator[Goal]:
    verdict = confirmation.verdict if confirmation.configuration else None
    if settings.latency_s is not None:
        before = base.measurement.median_s
        # Of the confirmation too, whose figures are those that are told.
        reached = before if verdict is None else (verdict.baseline_s or before) * verdict.ratio
        met = reached <= settings.latency_s
        known = bench.laboratory.source != protocol.Source()  # not of a script
        left = (
            ""
            if met or not known
            else remaining(bench.laboratory.source, reached, _dtype(confirmation.configuration))
        )
        yield Goal(name="latency", goal=settings.latency_s, reached=reached, met=met, left=left)
    if settings.memory_bytes is not None:
        peak = confirmation.peak_bytes if confirmation.configuration else base.peak_bytes
        met_memory = None if peak is None else peak <= settings.memory_bytes
        yield Goal(name="memory", goal=settings.memory_bytes, reached=peak, met=met_memory)


def _dtype(configuration: Configuration) -> str:
    """What most of the arithmetic is in."""
    names = {choice.lever for choice in configuration}
    if names & {"autocast_bf16", "cast_bf16"}:
        return "bfloat16"
    return "float16" if "autocast_fp16" in names else "float32"
