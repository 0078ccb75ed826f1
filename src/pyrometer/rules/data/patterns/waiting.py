"""What waiting for data costs, and the loader's own advice as findings about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyrometer.advice import Advice, Cost, Gain
from pyrometer.evidence.data_share import DataShare, measured_share, watched_share
from pyrometer.place import Place
from pyrometer.quantity import counted
from pyrometer.rules.data.patterns.loaders import stepping_loader
from pyrometer.rules.finding import Finding, Value
from pyrometer.rules.from_advice import advice_finding, given_advice
from pyrometer.rules.rule import Case, Rule
from pyrometer.rules.untraced import phase_share
from pyrometer.source.rewriting import Rewrite, rewritten, with_keywords

if TYPE_CHECKING:
    from pyrometer.loading.report import LoaderReport

DATA = "data"
"""The resource that all of them count: the time that a step waits for its data."""

OF_WORKERS = frozenset(["prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context"])
"""Arguments of a loader that it refuses without workers."""

_KEYWORD = re.compile(r"(\w+)=(\w+)")

UNCERTAIN = 0.25
"""Of a predicted saving: the loader's model counts as wrong where it misses the step by more than a quarter."""

APART = 0.1
"""Of a step, beyond the interval of the measured one: so far apart, the watched steps are other steps."""


def advised(rule: Rule, case: Case, *slugs: str, **fields: Any) -> list[Finding]:
    """One finding per advice of the loader with one of these slugs; `fields` replace what follows from the advice."""
    report = case.loading
    if report is None:
        return []
    own: dict[str, Any] = {
        "where": loader_place(case),
        "evidence": facts(report, case),
        "cost": waiting_cost(report, case),
        "resource": DATA,
    }
    free, is_apart = free_ratio(report, case), differing(report, case)
    return [
        advice_finding(
            rule,
            given,
            **{
                **own,
                "links": [given.link, "/loading/data_share"],
                "gain": gain_of(given.advice, report, free),
                "rewrite": loader_rewrite(case, given.advice.rewrite),
                "confidence": "high" if given.advice.saves_s and not is_apart else "medium",
                **fields,
            },
        )
        for given in given_advice(report, "/loading", *slugs)
    ]


def free_ratio(report: LoaderReport, case: Case) -> float:
    """The step with data for free over the step, at best: two times it was measured, with the loader watched and before."""
    return max(0.0, min(report.free_data_ratio, 1 - phase_share(case, "data", unknown=0.0)))


def gain_of(advice: Advice, report: LoaderReport, free: float) -> Gain | None:
    """What an advice should bring by the loader's model of a step; never more than data for free would, its ratio `free`."""
    if not advice.saves_s or report.measured_step_s <= 0:
        return None
    ratio = max(report.free_data_ratio, 1 - advice.saves_s / report.measured_step_s)
    ratio = min(1.0, max(0.0, ratio))
    return Gain(
        ratio_low=min(ratio, max(free, ratio - UNCERTAIN * (1 - ratio))),
        ratio_high=ratio + UNCERTAIN * (1 - ratio),
        method="model: the slowest of workers, training process and CPUs sets the pace; a quarter more of the saving at best, "
        "though no more than data for free, and a quarter less at worst",
    )


def waiting_cost(report: LoaderReport, case: Case) -> Cost:
    """What waiting for data costs a step."""
    share = told_share(report, case)
    return Cost(
        seconds_per_step=share.wait_s,
        share=share.share,
        method=f"measured: mean time per step until its batches were there, {_of(share, report)}",
    )


def told_share(report: LoaderReport, case: Case) -> DataShare:
    """The share of a step that getting its data is said to take."""
    return measured_share(case.measurement) or watched_share(report)


def differing(report: LoaderReport, case: Case) -> bool:
    """Whether the watched steps were others than the measured ones, as the time they took tells."""
    m = case.measurement
    if m is None or not m.complete or m.median_s <= 0:
        return False
    return not m.ci_low_s * (1 - APART) <= report.measured_step_s <= m.ci_high_s * (1 + APART)


def _of(share: DataShare, report: LoaderReport) -> str:
    if share.of == "measured":
        return "of the steps whose phases were timed"
    steps = f"the {counted(report.num_steps, 'step')}" if report.num_steps else "steps"
    return f"of {steps} that watched the loader"


def loader_place(case: Case) -> Place:
    """Where the loader of the steps is made, if the sources show it."""
    found = stepping_loader(case.modules)
    return Place() if found is None else Place(file=found.module.path, line=found.call.lineno)


def loader_rewrite(case: Case, keywords: str | None) -> Rewrite | str | None:
    """The call that makes the loader of the steps with these keyword arguments, if the sources show it; else the arguments alone."""
    found = stepping_loader(case.modules)
    if keywords is None or found is None or len(found.call.args) > 1:
        return keywords
    wanted = dict(_KEYWORD.findall(keywords))
    if wanted.get("num_workers") == "0" and any(keyword.arg in OF_WORKERS for keyword in found.call.keywords):
        return keywords
    return rewritten(found.module, with_keywords(found.module, found.call, wanted)) or keywords


def facts(report: LoaderReport, case: Case) -> dict[str, Value]:
    """The figures that every finding about a loader rests on."""
    share = told_share(report, case)
    return {
        "verdict": report.verdict,
        "settings": report.settings.label,
        "data_share": share.share,
        "wait_s": share.wait_s,
        "step_s": share.step_s,
        "worker_busy": report.worker_busy,
        "occupancy": report.occupancy,
    }
