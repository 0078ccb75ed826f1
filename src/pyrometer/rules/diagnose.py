"""`diagnose`: everything that can be observed of a workload, explained by the rules, with the score of the audit."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from pyrometer.bench.measure import DEFAULT_BUDGET_S
from pyrometer.bench.stage import Progress
from pyrometer.evidence.observe import observe
from pyrometer.evidence.options import ObserveOptions, silent
from pyrometer.quantity import Seconds
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.explain import explain
from pyrometer.rules.settings import RuleSettings
from pyrometer.source.ownership import owner_of
from pyrometer.workload.given import workload_of


def diagnose(
    work: Any,
    *inputs: Any,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    sources: Iterable[str | Path] | None = None,
    rules: RuleSettings | None = None,
    progress: Progress | None = None,
    **keywords: Any,
) -> Diagnosis:
    """Measure and observe a workload, or a model's forward pass, in every way, and say what it means.

    Args:
        work: what to diagnose: a workload, or a model.
        inputs: of a model, as its arguments; a single one in any form that `Inference` takes.
        budget_s: time to measure; each observer takes up to a third on top.
        sources: files of the program, whose text the rules read too; by default the file that calls this, where it
            is the user's own, and all that it imports from beside it.
        rules: which rules to ask, with which limits; by default all stable ones. `load_rule_settings` reads those
            of a project.
        progress: told of the share done.
        keywords: of a model, its inputs by keyword.

    Raises:
        InputError: what is given is no workload, or inputs do not fit.
        UserProgramError: the very first step raised.
    """
    work = workload_of(work, inputs, keywords)
    entries = calling_file() if sources is None else tuple(Path(path) for path in sources)
    options = ObserveOptions(budget_s=budget_s, command="", progress=progress or silent)
    evidence = observe(work, work.name, options).evidence
    diagnosis = explain(evidence, entries, rules, with_audit=True)
    return msgspec.structs.replace(diagnosis, notes=[*evidence.notes, *diagnosis.notes])


def calling_file() -> tuple[Path, ...]:
    """The nearest file on the stack that is neither ours nor a library's; a notebook or a prompt has none."""
    for frame in inspect.stack(context=0):
        path = Path(frame.filename)
        if path.is_file() and owner_of(frame.filename) == "user":
            return (path,)
    return ()
