"""`tune`: measure, try every lever that could help, keep what is proved, and hand over the recipe."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pyrometer.bench.stage import Progress
from pyrometer.cluster import require_cluster
from pyrometer.errors import InputError, PyrometerError
from pyrometer.evidence.options import silent
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import to_json
from pyrometer.rules.finding import Finding
from pyrometer.settings import parse_bytes, parse_duration
from pyrometer.store.commit import read_commit
from pyrometer.tuning.levers.choice import LeverChoice, label_of
from pyrometer.tuning.levers.lever import LeverOf, missing_packages, uninstalled
from pyrometer.tuning.levers.registry import find_lever, select
from pyrometer.tuning.outcome import LeverOutcome, RecipeSummary, Tuning
from pyrometer.tuning.ranks.laboratory import RankLaboratory
from pyrometer.tuning.recipe.making import dropped_levers, kept_files, proof_of, proved_levers
from pyrometer.tuning.recipe.recipe import Recipe
from pyrometer.tuning.search.advised import findings_of
from pyrometer.tuning.search.baseline import Baseline
from pyrometer.tuning.search.budget import PAIR_S, Budget
from pyrometer.tuning.search.confirming import Confirmation, Pairs, confirm
from pyrometer.tuning.search.earlier import NOTHING_EARLIER, Earlier, corrected
from pyrometer.tuning.search.goals import goals_of
from pyrometer.tuning.search.journal import Journal, identity_of
from pyrometer.tuning.search.ordering import predictions_of
from pyrometer.tuning.search.place import SearchPlace, open_place
from pyrometer.tuning.search.priors import priors_of, with_priors
from pyrometer.tuning.search.search import Search
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.search.weighing import LEAST_SAVING, Weighing
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Numerics
from pyrometer.workload.target import Target
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
    resume: bool = False,
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
        resume: go on with a search that ended early, of the same `path`.
        progress: told of the share of the budget that is spent.
        nproc: run a script on so many ranks by torchrun, and try how it spreads its model over them.
        settings: further fields of `TuneSettings`: `tolerance`, `allow_semantic`, `metric`, `only`, `without`, `stages`, `seed`.

    Raises:
        InputError: the workload cannot be sent to another process, a setting is illegal, or there is no `path` to resume.
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
    if resume and path is None:
        raise InputError("tune: resume=True goes on with the search of a recipe: give its path, too")
    place = None if path is None else Path(path)
    _, recipe = search_recipe(work, asked, path=place, resume=resume, progress=progress, num_ranks=nproc)
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
    earlier: Earlier = NOTHING_EARLIER,
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
        earlier: what was found on this machine before; it corrects what is predicted, and says how far pairs vary.

    Raises:
        PyrometerError: see `tune`.
    """
    if cluster is not None:
        require_cluster(cluster)
    budget, tell = budget or Budget(settings.budget_s), progress or silent
    selected = _fitting(settings, num_ranks)
    wanted = [lever for lever in selected if settings.memory_bytes is not None or not lever.for_memory]
    with open_place(work, settings, path, num_ranks) as place, contextlib.ExitStack() as stack:
        findings, without = _advised(place.laboratory.source, budget, tell)
        tell(budget.share, "the baseline")
        baseline = stack.enter_context(place.laboratory.open(()))
        base = Baseline.of(place, baseline, [lever.name for lever in wanted], budget)
        journal = Journal(place.folder / JOURNAL, _identity(place, base, settings), resume=resume)
        surveyed, step_s = base.surveyed, base.measurement.median_s
        priors = corrected(priors_of(surveyed.device, surveyed.made_of), earlier.predicted)
        weighing = Weighing(place.laboratory, settings, budget, step_s)
        predicted = with_priors(predictions_of(findings), priors)
        search = Search(weighing, journal, predicted, tell, spread=earlier.spread)
        weighing.begin_with(baseline)
        try:
            reasons = {lever.name: _WITHOUT_GOAL for lever in selected if lever not in wanted}
            search.outcomes += _refused(base.surveyed, search, reasons)
            where = _run(search, _choices(base.surveyed, settings), cluster, place, base)
            confirmation = _confirmed(place, search, base.peak_bytes, tell)
            if search.go_on():
                confirmation = _confirmed(place, search, base.peak_bytes, tell, confirmation)
        finally:
            weighing.close()
        search.tell_untried()
        lacking = uninstalled(_lacking(wanted, base.surveyed, settings))
        unchecked = _unchecked(confirmation.numerics)
        noted = (*base.surveyed.notes, confirmation.note, unchecked, without, where, journal.note, lacking)
        notes = [note for note in noted if note is not None]
        tuning, recipe = _handed_over(place, base, search, confirmation, notes)
        if not search.interrupted:  # --resume would need it
            place.laboratory.forget_trials()
        return tuning, recipe


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
    search: Search,
    choices: dict[str, list[LeverChoice]],
    cluster: str | None,
    place: SearchPlace,
    base: Baseline,
) -> str | None:
    """Try everything, here or on a cluster; what is to be told of that."""
    if cluster is None:
        search.run(choices)
        return None
    from pyrometer.tuning.search.on_cluster import Order, crew

    laboratory = place.laboratory
    sent = laboratory.source.pickled
    order = Order(
        laboratory.source,
        None if sent is None else Path(sent).read_bytes(),
        False,
        str(place.cwd),
        laboratory.limits,
        search.weighing.settings,
        laboratory.step_s,
        base.environment,
    )
    with crew(cluster, order) as machines:
        search.ahead = machines.ahead
        search.run(choices)
        search.ahead = None
        return machines.note


def _advised(source: protocol.Source, budget: Budget, tell: Progress) -> tuple[Sequence[Finding], str | None]:
    """The findings of a target; a workload that was handed over cannot be diagnosed elsewhere."""
    return ((), None) if source.spec is None else findings_of(source.spec.target(), tell, budget)


# ---- before and after the search ---------------------------------------------------------------------------------


def _identity(place: SearchPlace, base: Baseline, settings: TuneSettings) -> str:
    goals = replace(settings, budget_s=1.0)  # more time is what one resumes for
    return identity_of(
        place.target,
        to_json(base.surveyed.signature).decode(),
        base.environment.fingerprint,
        to_json(goals).decode(),
    )


def _choices(surveyed: protocol.Surveyed, settings: TuneSettings) -> dict[str, list[LeverChoice]]:
    return {
        name: [LeverChoice(lever=name, parameters=parameters) for parameters in listed]
        for name, listed in surveyed.choices.items()
        if settings.may_change_meaning or find_lever(name).fix_class != "semantic"
    }


def _lacking(
    wanted: list[LeverOf[Any]], surveyed: protocol.Surveyed, settings: TuneSettings
) -> Iterator[LeverOf[Any]]:
    """The levers that nothing but their packages keeps from being tried."""
    for lever in wanted:
        is_allowed = settings.may_change_meaning or lever.fix_class != "semantic"
        reason = surveyed.refused.get(lever.name)
        if is_allowed and reason is not None and reason == missing_packages(lever):
            yield lever


def _refused(surveyed: protocol.Surveyed, search: Search, reasons: dict[str, str]) -> list[LeverOutcome]:
    reasons = reasons | surveyed.refused
    if not search.weighing.settings.may_change_meaning:
        for name in surveyed.choices:
            if find_lever(name).fix_class == "semantic":
                reasons[name] = (
                    "it changes what is computed: give --metric file.py:function, or --allow semantic"
                )
    return [
        replace(search.blank(LeverChoice(lever=name), ()), outcome="not applicable", reason=reason)
        for name, reason in reasons.items()
    ]


def _confirmed(
    place: SearchPlace,
    search: Search,
    baseline_bytes: Bytes,
    tell: Progress,
    before: Confirmation | None = None,
) -> Confirmation:
    """Prove the best configuration anew; one that does not hold is not handed over, but what was proved before it, if anything."""
    search.weighing.close()  # its process would take memory from those that are compared
    if not search.best:
        return Confirmation(())
    found = _proved(place, search, baseline_bytes, tell)
    if before is None or not before.configuration or found.is_faster or not before.is_faster:
        search.best = found.configuration
        return found
    note = found.note or f"{label_of(search.best)} was not proved to be faster in fresh processes"
    search.best = before.configuration
    return dataclasses.replace(before, note=note)


def _proved(place: SearchPlace, search: Search, baseline_bytes: Bytes, tell: Progress) -> Confirmation:
    weighing, budget = search.weighing, search.budget
    begin, more = budget.now(), place.laboratory.more_pairs
    end_s = begin + budget.left_s - weighing.then_s
    pairs = Pairs(weighing.settings.num_confirmations * more, PAIR_S / more, end_s, budget.now, search.spread)
    try:
        verdict, numerics, peak = confirm(
            place.laboratory, search.best, pairs, lambda _, what: tell(budget.share, what)
        )
    except KeyboardInterrupt:
        search.interrupted = True
        return Confirmation(
            search.best, note="interrupted before the recipe was confirmed in fresh processes"
        )
    except (PyrometerError, OSError) as error:
        return Confirmation((), note=f"the recipe could not be confirmed and is dropped: {error}")
    weighing.costs.correct(budget.now() - begin, verdict.num_processes or 1)
    if not numerics.passes:
        return Confirmation(
            (),
            note=f"the recipe computed wrong numbers when it was confirmed, and is dropped: {numerics.refused}",
        )
    limit = weighing.settings.memory_bytes
    saves = limit is not None and baseline_bytes > limit and peak < baseline_bytes * (1 - LEAST_SAVING)
    if verdict.outcome in {"slower", "same"} and not saves:
        return Confirmation(
            (),
            verdict,
            numerics,
            peak,
            note="in fresh processes the recipe was no faster than the baseline, and is dropped",
        )
    return Confirmation(search.best, verdict, numerics, peak)


def _unchecked(numerics: Numerics | None) -> str | None:
    """What is to be told where no case said anything of the recipe's numbers."""
    if numerics is None or numerics.counted or numerics.metric is not None or not numerics.cases:
        return None
    return f"the recipe's numbers were not checked: {numerics.cases[0].skipped}; --metric FILE:FUNCTION would hold it to yours"


def _handed_over(
    place: SearchPlace,
    base: Baseline,
    search: Search,
    confirmation: Confirmation,
    notes: list[str],
) -> tuple[Tuning, Recipe]:
    proof = None
    if confirmation.verdict is not None and confirmation.numerics is not None and confirmation.configuration:
        proof = proof_of(confirmation.verdict, confirmation.numerics, confirmation.peak_bytes)
    made = place.laboratory.files_of(confirmation.configuration)
    if place.path is None:
        made = {}  # without a recipe on disk there is nothing to keep
    artefacts = kept_files(confirmation.configuration, made, place.folder)
    settings = search.weighing.settings
    recipe = Recipe(
        target=place.target,
        kind=base.surveyed.kind,
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        commit=read_commit(place.cwd)[0],
        signature=base.surveyed.signature,
        proof=proof,
        levers=proved_levers(confirmation.configuration, search.outcomes, artefacts),
        dropped=dropped_levers(search.outcomes),
        tolerance=settings.tolerance,
        environment=base.environment,
        num_ranks=place.laboratory.num_ranks if isinstance(place.laboratory, RankLaboratory) else None,
    )
    path = place.path
    if path is not None:
        try:
            recipe.write(path)
        except InputError as error:
            path, notes = None, [*notes, f"the recipe was not written: {error}"]
    limit_s = max(search.budget.left_s, search.weighing.then_s)
    tuning = Tuning(
        target=place.target,
        kind=recipe.kind,
        baseline=base.measurement,
        baseline_peak_bytes=base.peak_bytes,
        recipe=RecipeSummary(
            path=None if path is None else os.fspath(path),
            levers=list(confirmation.configuration),
            num_ranks=recipe.num_ranks,
        ),
        final=confirmation.verdict,
        numerics=confirmation.numerics,
        levers=search.outcomes,
        stages=search.stages,
        targets=list(goals_of(place.laboratory.source, settings, base, confirmation, limit_s)),
        signature=base.surveyed.signature,
        environment=base.environment,
        elapsed_s=search.budget.spent_s,
        interrupted=search.interrupted,
        notes=notes,
    )
    return tuning, recipe
