"""`pm.check` and `pm.audit`: all observers and rules on a program, in one document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyrometer.bench.measure import DEFAULT_BUDGET_S
from pyrometer.bench.stage import Progress
from pyrometer.evidence.observe import observe
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions, silent
from pyrometer.evidence.script import observe_script
from pyrometer.quantity import Seconds
from pyrometer.report.documents import AuditDocument, CheckDocument
from pyrometer.rules.diagnose import calling_file
from pyrometer.rules.settings import RuleSettings
from pyrometer.store.place import Location, local_folder
from pyrometer.verbs.documents import StoreChoice, location_of, stored, told
from pyrometer.workload.given import workload_of
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import entries_of, parse_target


def check(
    work: Any,
    *inputs: Any,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    try_compile: bool = False,
    sources: Iterable[str | Path] | None = None,
    rules: RuleSettings | None = None,
    store: StoreChoice = False,
    progress: Progress | None = None,
    **keywords: Any,
) -> CheckDocument:
    """Measure, observe and explain a program, as `pyrometer check` does.

    `print` shows the answer, `.save("report.html")` writes the page with its timelines, `.to_json()` is what the verb
    prints with `--json`; `.evidence` and `.diagnosis` hold what was seen and what it means.

    Args:
        work: a workload, a model, or a target as the command line takes it: `"train.py"`, `"model.py:work"`.
        inputs: of a model, as its arguments; of a script, its command line.
        budget_s: time to measure; each observer takes up to a third on top. A script takes its own time.
        try_compile: also try torch.compile where the program does not use it.
        sources: files of the program, whose text the rules read too; by default those of the target, or the file that
            calls this and all that it imports from beside it.
        rules: which rules to ask, with which limits; by default all stable ones.
        store: folder of the store to keep the result in; `True` is that of the settings, `.pyrometer`.
        progress: told of the share done.
        keywords: of a model, its inputs by keyword.

    Raises:
        InputError: what is given is no workload, or inputs do not fit.
        UserProgramError: the very first step raised.
    """
    place = location_of(store)
    options = _options(budget_s, place, progress, compiling=try_compile)
    seen, entries = _observed(work, inputs, keywords, options)
    return stored(told(CheckDocument, seen, sources=_named(sources, entries), rules=rules), place)


def audit(
    work: Any,
    *inputs: Any,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    sources: Iterable[str | Path] | None = None,
    rules: RuleSettings | None = None,
    store: StoreChoice = False,
    progress: Progress | None = None,
    **keywords: Any,
) -> AuditDocument:
    """Go through the checklist for a program, as `pyrometer audit` does; `.audit` holds answers and score.

    Args:
        work: a workload, a model, or a target as the command line takes it: `"train.py"`, `"model.py:work"`.
        inputs: of a model, as its arguments; of a script, its command line.
        budget_s: time to measure; each observer takes up to a third on top. A script takes its own time.
        sources: files of the program; by default as `check` finds them.
        rules: which rules to ask, with which limits; by default all stable ones.
        store: folder of the store to keep the result in; `True` is that of the settings, `.pyrometer`.
        progress: told of the share done.
        keywords: of a model, its inputs by keyword.

    Raises:
        InputError: what is given is no workload, or inputs do not fit.
        UserProgramError: the very first step raised.
    """
    place = location_of(store)
    seen, entries = _observed(work, inputs, keywords, _options(budget_s, place, progress))
    named = _named(sources, entries)
    return stored(told(AuditDocument, seen, sources=named, rules=rules, with_audit=True), place)


def _options(
    budget_s: Seconds, store: Location | None, progress: Progress | None, *, compiling: bool = False
) -> ObserveOptions:
    peaks = None if store is None else local_folder(store) / "peaks"
    return ObserveOptions(
        budget_s=budget_s, peaks_folder=peaks, compiling=compiling, progress=progress or silent
    )


def _observed(
    work: Any, inputs: tuple[Any, ...], keywords: Mapping[str, Any], options: ObserveOptions
) -> tuple[Observed, tuple[Path, ...]]:
    """What was observed, and the files that the program begins with."""
    if not isinstance(work, str):
        given, options = workload_of(work, inputs, keywords), replace(options, command="")
        return observe(given, given.name, options), calling_file()
    target = parse_target(work, [str(word) for word in inputs])
    if target.kind == "script":
        return observe_script([work, *target.spec.args], options), entries_of(target)
    return observe(load_workload(target), work, options), entries_of(target)


def _named(sources: Iterable[str | Path] | None, found: tuple[Path, ...]) -> tuple[Path, ...]:
    return found if sources is None else tuple(Path(path) for path in sources)
