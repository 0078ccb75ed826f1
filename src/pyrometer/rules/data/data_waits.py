"""The step waits for its data.

## What it does
Reads how long a step takes to get its batches, as its phases were measured or the loader was observed; without that, the share of the trace in which the
step only waits for data. It names the function in which the loading spends its time, where a trace shows it.

## Why it costs
While a batch is awaited neither the device nor the training process computes. With workers a step takes as long as the slower of the two,
making batches or computing; without workers they take turns and the times add up.

## Example
```python
import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([(value / 255 - 0.5) / 0.25 for value in range(1024)])


loader = DataLoader(Pictures(), batch_size=16)
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> torch.Tensor:
        return (torch.arange(1024) / 255 - 0.5) / 0.25


loader = DataLoader(Pictures(), batch_size=16, num_workers=4, persistent_workers=True)
```

## Fix safety
Workers change the order of nothing, but random numbers that samples draw come from other seeds, and what the program changes in
the dataset between epochs no longer reaches workers that are kept.

## References
- PyTorch documentation, torch.utils.data: https://docs.pytorch.org/docs/stable/data.html
- PyTorch tutorials, Performance Tuning Guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.evidence.data_share import measured_share
from pyrometer.place import Place
from pyrometer.quantity import Ratio, counted, format_percent, format_seconds
from pyrometer.rules.data.patterns.loaders import starts_anew, stepping_loader
from pyrometer.rules.data.patterns.preparing import dearest_line
from pyrometer.rules.data.patterns.waiting import (
    DATA,
    differing,
    facts,
    free_ratio,
    gain_of,
    loader_place,
    loader_rewrite,
    told_share,
    waiting_cost,
)
from pyrometer.rules.data.patterns.whole_batches import ADVICE, loader_of_single_samples, whole_batches
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.surroundings import surroundings
from pyrometer.text import with_capital

if TYPE_CHECKING:
    from pyrometer.loading.report import LoaderReport
    from pyrometer.source.rewriting import Rewrite
    from pyrometer.trace.records.rank import RankReport

RULE = declare(
    code="PYR301",
    severity="warning",
    scope="symptom",
    fix_class="semantic",
    lever="num_workers",
    limits=(
        Limit("min_share", 0.1, "below a tenth of the step other costs are larger"),
        Limit(
            "min_share_unadvised",
            0.75,
            "where the loader's model knows no change that pays, only a step that is mostly loading is worth a word",
        ),
    ),
)

REMEDIES = {
    "serial": "make batches while the step runs",
    "starved-steady": "make samples cheaper or add workers",
    "bursty": "let workers prepare more batches ahead, or make samples alike in cost",
    "handover-bound": "hand over fewer and larger tensors, or load in the training process",
    "no-loader": "draw the batches from a DataLoader with workers, so that they are made while the step runs",
}


STAYS = 0.3
"""Of the function with the dearest line that makes samples, at worst, once it is mended."""

SINGLES_STAY = 0.4
"""Of the wait for samples that are taken one by one, at worst, once they are taken as whole batches."""

FREE_ERROR = 0.3
"""Of the step without data, which is a small difference of two times where it is most of the step."""


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The wait as the loader was observed, with the place from the trace; where that names a function, it names the cause."""
    report = case.loading
    if report is None:
        return
    enough = "min_share_unadvised" if _nothing_helps(report) else "min_share"
    share = told_share(report, case)
    if share.share < case.limit(RULE, enough):
        return
    place = _slow_function(case) or loader_place(case)
    single = loader_of_single_samples(case)
    yield RULE.finding(
        message=f"{format_percent(share.share)} of a step, {format_seconds(share.wait_s)} of "
        f"{format_seconds(share.step_s)}, go to getting its data{_within(place)}",
        where=place,
        scope="mechanism" if place.function else RULE.scope,
        evidence=facts(report, case),
        links=["/loading/data_share", "/loading/stages"],
        cost=waiting_cost(report, case),
        gain=_gain(report, case),
        lever=_lever(report) if single is None else None,
        confidence="medium" if differing(report, case) else "high",
        advice=_advice(report, place) if single is None else f"{ADVICE}.",
        rewrite=_rewrite(report, case) if single is None else whole_batches(single),
        resource=DATA,
    )


@RULE.in_evidence("trace")
def explain_trace(case: Case) -> Findings:
    """The wait as the measured steps and a trace show it, where no loader was observed."""
    trace, known = case.trace, measured_share(case.measurement)
    if trace is None or case.loading is not None or not trace.span_ns:
        return
    traced = trace.breakdown_ns.data / trace.span_ns
    share = traced if known is None else known.share
    if share < case.limit(RULE, "min_share"):
        return
    single = loader_of_single_samples(case)
    place = _slow_function(case) or loader_place(case)
    told = "of the traced time" if known is None else f"of a step, {format_seconds(known.wait_s)}"
    yield RULE.finding(
        message=f"the step waits for its data for {format_percent(share)} {told}{_within(place)}",
        where=place,
        scope="mechanism" if place.function else RULE.scope,
        evidence={"data_share": traced, "num_steps": len(trace.steps)},
        links=["/trace/breakdown_ns/data"],
        cost=case.cost_of(share, "time in which only the loading ran"),
        gain=_gain_without_wait(trace, share, None if single is None else SINGLES_STAY, known is None),
        confidence="medium",
        advice=f"{_traced_remedy(case)}{_first_look(place)}." if single is None else f"{ADVICE}.",
        rewrite=None if single is None else whole_batches(single),
        resource=DATA,
    )


def _rewrite(report: LoaderReport, case: Case) -> Rewrite | str | None:
    return loader_rewrite(case, report.advice[0].rewrite) if report.advice else None


def _traced_remedy(case: Case) -> str:
    """What to do without a look at the loader: one with workers needs no word about having some."""
    loader = stepping_loader(case.modules)
    workers = None if loader is None else loader.has_workers
    if not (workers or (workers is None and _workers_ran(case))):
        return "Make batches while the step runs (num_workers of the DataLoader)"
    if loader is not None and starts_anew(loader):
        return "Its workers start anew in each epoch: keep them by persistent_workers=True; then make samples cheaper, or try more workers"
    return "The workers do not keep up: make samples cheaper, or try more workers"


def _workers_ran(case: Case) -> bool:
    """Whether the trace waits for the iterator of a loader with workers, which its mark names."""
    path = case.trace.critical_path.by_op if case.trace is not None else []
    return any("_MultiProcessingDataLoaderIter" in op.name for op in path)


def _nothing_helps(report: LoaderReport) -> bool:
    """Whether loading takes turns with computing, and the loader's model knows nothing that would make the step shorter."""
    return report.verdict == "serial" and not report.advice


def _lever(report: LoaderReport) -> str | None:
    """That of the first advice that has one; without workers, tuning can always try some."""
    levers = (advice.lever for advice in report.advice if advice.lever is not None)
    return next(levers, "num_workers" if report.verdict == "serial" else None)


def _gain(report: LoaderReport, case: Case) -> Gain:
    """From data for free to the best single advice; to nothing where none is predicted."""
    free, line = free_ratio(report, case), dearest_line(case)
    held = 0.0 if line is None or case.host is None else case.host.share(line.own_s)
    around = surroundings(case, line.where, held) if line is not None else None
    held = held if around is None else around.share
    gains = [gain_of(advice, report, free) for advice in report.advice]
    highs = [gain.ratio_high for gain in gains if gain is not None]
    known = [high for high in highs if high is not None]
    return Gain(
        ratio_low=free if not held else free * (1 - FREE_ERROR),
        ratio_high=max(report.free_data_ratio, min([*known, 1 - held * (1 - STAYS)])),
        method="measured: steps without waiting at best, the watched or the measured ones, whichever wait longer; at worst "
        "the best single advice of the loader's model, or most of the function with the dearest line of the samples, whichever brings more",
    )


def _gain_without_wait(trace: RankReport, share: Ratio, stays: Ratio | None, is_traced: bool) -> Gain:
    """All of the wait at best; at worst nothing, or what is sure to go where it is known what to write."""
    free = (
        next((one.ratio_low for one in trace.recoverable if one.kind == "data"), None) if is_traced else None
    )
    return Gain(
        ratio_low=1 - share if free is None else free,
        ratio_high=1.0 if stays is None else 1 - share * (1 - stays),
        method="a bound: all data ready when it is asked for",
    )


def _slow_function(case: Case) -> Place | None:
    """The line in which samples of the host, where it loads itself, else the function in which the trace spends most of its loading."""
    line = dearest_line(case)
    if line is not None:
        return place_of(case, line.where)
    if case.trace is None:
        return None
    loading = case.trace.critical_path.loading
    return place_of(case, loading) if loading.file is not None else None


def _within(place: Place) -> str:
    return f", mostly in {place.function}" if place.function else ""


def _first_look(place: Place) -> str:
    return f", and look at {place.function} first" if place.function else ""


def _advice(report: LoaderReport, place: Place) -> str:
    """The loader's own first advice, else what its verdict asks for; and the function to look at."""
    if report.advice:
        first = report.advice[0]
        saved = f", which should save {format_seconds(first.saves_s)} per step" if first.saves_s else ""
        more = len(report.advice) - 1
        also = f"; {counted(more, 'other change')} would help too" if more else ""
        text = f"{first.title}{saved}{also}"
    else:
        text = REMEDIES.get(report.verdict, REMEDIES["serial"])
    return f"{with_capital(text)}{_first_look(place)}."
