"""Allocator advice: a table of rules, each with the evidence that calls for it, what forbids it, and its trial.

A rule proposes trials; each is played in the simulated allocator with the recorded requests, and the best is advised only
when it lowers the peak of reserved bytes, serves a request that failed, or saves what the rule is about. What helps no
request and saves nothing is not advised, however bad the figures look.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from pyrometer.advice import Advice, Gain
from pyrometer.memory.snapshots.allocator.beyond import beyond_settings
from pyrometer.memory.snapshots.allocator.conditions import (
    empties_often,
    flush_storm,
    fragmented,
    many_sizes,
    rounded_much,
    wasteful,
)
from pyrometer.memory.snapshots.allocator.evidence import Evidence, proof
from pyrometer.memory.snapshots.allocator.replay import Outcome
from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings, check_settings, split_pairs
from pyrometer.memory.snapshots.lifetimes import BEFORE
from pyrometer.quantity import counted, format_bytes

_LEAST_GAIN = 0.05
_LEAST_GAIN_BYTES = 64 << 20
_MAX_SPLITS = (32, 64, 128, 256, 512)
_DIVISIONS = ("[256:1,512:2,1024:4,>:8]", "4", "8", "16")
_THRESHOLDS = ("0.6", "0.7", "0.8")
_PLACES = 6


@dataclass(frozen=True)
class Trial:
    """Something to try."""

    use: str
    run: Callable[[], Outcome]


@dataclass(frozen=True)
class Rule:
    """One lever."""

    slug: str
    title: str
    effect: str
    evidence: Callable[[Evidence], str | None]
    """Why it is called for, with figures; `None` when it is not."""
    veto: Callable[[Evidence], bool]
    trials: Callable[[Evidence], list[Trial]]
    worth: Callable[[Evidence, Outcome], float]
    """How good an outcome is; nothing is advised for zero or less."""
    claim: Callable[[Evidence, Outcome], str]


def advise(evidence: Evidence) -> list[Advice]:
    """What to change about the allocator, most bytes first; empty when nothing would help."""
    found = [*beyond_settings(evidence)]
    if evidence.simulation.trusted:
        tried = [advice for rule in RULES if (advice := _tried(rule, evidence)) is not None]
        found += sorted(tried, key=lambda advice: -advice.saves_bytes)
    return found


def _tried(rule: Rule, evidence: Evidence) -> Advice | None:
    why = rule.evidence(evidence)
    if why is None or rule.veto(evidence):
        return None
    outcomes = [(trial, trial.run()) for trial in rule.trials(evidence)]
    outcomes = [(trial, outcome) for trial, outcome in outcomes if outcome.failed <= evidence.base.failed]
    if not outcomes:
        return None
    trial, best = max(outcomes, key=lambda pair: rule.worth(evidence, pair[1]))
    if rule.worth(evidence, best) <= 0:
        return None
    return Advice(
        slug=rule.slug,
        title=rule.title,
        why=why,
        rewrite=trial.use,
        effect=f"{rule.claim(evidence, best)}; {rule.effect}",
        fix_class="exact",
        gain=Gain(
            saves_bytes=max(evidence.base.peak_reserved_bytes - best.peak_reserved_bytes, 0),
            method=proof(evidence),
        ),
    )


def _saved(evidence: Evidence, outcome: Outcome) -> float:
    """Bytes saved, when it is worth the trouble; a request that now fits outweighs all bytes."""
    base = evidence.base
    saved = base.peak_reserved_bytes - outcome.peak_reserved_bytes
    served = sum(outcome.fits) - sum(base.fits)
    if served > 0:
        return float(1 << 50) * served + saved
    enough = saved >= max(_LEAST_GAIN_BYTES, _LEAST_GAIN * base.peak_reserved_bytes)
    return float(saved) if served == 0 and enough else 0.0


def _claim(evidence: Evidence, outcome: Outcome) -> str:
    base = evidence.base
    served = sum(outcome.fits) - sum(base.fits)
    parts = []
    if served > 0:
        parts.append(f"{served} of {counted(len(base.fits), 'failed request')} would have been served")
    if outcome.peak_reserved_bytes < base.peak_reserved_bytes:
        before, after = format_bytes(base.peak_reserved_bytes), format_bytes(outcome.peak_reserved_bytes)
        parts.append(f"the peak of reserved memory falls from {before} to {after}")
    return ", ".join(parts) or "the same memory"


def _with(settings: AllocatorSettings, addition: str) -> tuple[str, AllocatorSettings]:
    """Settings with some more, as text and as understood."""
    replaced = {pair.partition(":")[0] for pair in split_pairs(addition)}
    kept = [pair for pair in split_pairs(settings.text) if pair.partition(":")[0] not in replaced]
    text = ",".join([*kept, addition])
    new = check_settings(addition).settings
    names = {name for name in AllocatorSettings.__struct_fields__ if name != "text"}
    default = AllocatorSettings()
    changed = {name: getattr(new, name) for name in names if getattr(new, name) != getattr(default, name)}
    return text, msgspec.structs.replace(settings, **changed, text=text)


def _environment(text: str) -> str:
    return f"PYTORCH_ALLOC_CONF={text} before the program starts (older torch: PYTORCH_CUDA_ALLOC_CONF)"


def _setting(evidence: Evidence, addition: str) -> Trial:
    text, settings = _with(evidence.settings, addition)
    return Trial(_environment(text), lambda: evidence.try_settings(settings))


def _expandable_impossible(evidence: Evidence) -> bool:
    return evidence.settings.expandable_segments or evidence.settings.backend != "native"


def _limits_without_effect(evidence: Evidence) -> bool:
    return _expandable_impossible(evidence) or evidence.settings.max_split_bytes is not None


def _rounding_veto(evidence: Evidence) -> bool:
    return bool(any(evidence.settings.roundup_power2_divisions)) or evidence.settings.backend != "native"


def _collects_already(evidence: Evidence) -> bool:
    return _expandable_impossible(evidence) or evidence.settings.garbage_collection_threshold > 0


def _never(_: Evidence) -> bool:
    return False


def _places(evidence: Evidence) -> list[Trial]:
    """Emptying the cache once where little is in use, before the peak of reserved bytes."""
    totals = evidence.lifetimes.sizes_over_time(evidence.lifetimes.size)
    end = int(evidence.reserved.argmax())
    edges = np.linspace(max(evidence.script.first, 0), end, _PLACES + 1).astype(np.int64)
    places: set[int] = set()
    for begin, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        piece = totals[begin:stop]
        if len(piece):
            lowest = np.flatnonzero(piece == piece.min())
            places |= {begin + int(lowest[0]) - 1, begin + int(lowest[-1]) - 1}
    return [_emptied(evidence, event) for event in sorted(places) if event >= 0]


def _emptied(evidence: Evidence, event: int) -> Trial:
    changed = evidence.script.with_empty_cache(event)
    return Trial(_before(evidence, event), lambda: evidence.try_script(changed))


def _before(evidence: Evidence, event: int) -> str:
    """Where to write it: before the line that allocates next."""
    later = np.flatnonzero((evidence.lifetimes.made > event) & (evidence.lifetimes.made != BEFORE))
    if not len(later):
        return "torch.cuda.empty_cache()"
    following = later[evidence.lifetimes.made[later].argmin()]
    site = evidence.sites[int(evidence.lifetimes.stack[following])]
    return f"torch.cuda.empty_cache() once, before {site.name} allocates (event {event + 1})"


def _fewer_retries(evidence: Evidence, outcome: Outcome) -> float:
    if sum(outcome.fits) < sum(evidence.base.fits):
        return 0.0
    fewer = evidence.base.retries - outcome.retries
    return float(fewer) if 2 * outcome.retries <= evidence.base.retries else 0.0


def _fewer_calls(evidence: Evidence, outcome: Outcome) -> float:
    no_more = outcome.peak_reserved_bytes <= evidence.base.peak_reserved_bytes * 1.02
    fits = sum(outcome.fits) >= sum(evidence.base.fits)
    return float(evidence.base.device_allocs - outcome.device_allocs) if no_more and fits else 0.0


def _claim_retries(evidence: Evidence, outcome: Outcome) -> str:
    return f"{counted(outcome.retries, 'flush')} instead of {evidence.base.retries}".replace(
        "flushs", "flushes"
    )


def _claim_calls(evidence: Evidence, outcome: Outcome) -> str:
    return (
        f"{counted(outcome.device_allocs, 'cudaMalloc')} instead of {evidence.base.device_allocs}, and no more memory: "
        f"{format_bytes(outcome.peak_reserved_bytes)} reserved at the most"
    )


RULES = (
    Rule(
        slug="expandable-segments",
        title="Let segments grow instead of allocating new ones",
        effect="not together with CUDA IPC (custom all-reduce of vLLM, sharing tensors between processes)",
        evidence=lambda e: fragmented(e) or wasteful(e),
        veto=_expandable_impossible,
        trials=lambda e: [_setting(e, "expandable_segments:True")],
        worth=_saved,
        claim=_claim,
    ),
    Rule(
        slug="max-split-size",
        title="Where expandable segments cannot be used: keep large blocks whole",
        effect="requests above the limit get segments of their own, so that some are made more often",
        evidence=fragmented,
        veto=_limits_without_effect,
        trials=lambda e: [_setting(e, f"max_split_size_mb:{size}") for size in reversed(_MAX_SPLITS)],
        worth=_saved,
        claim=_claim,
    ),
    Rule(
        slug="garbage-collection-threshold",
        title="Give old cached memory back early instead of all of it late",
        effect="works only with a fraction set, as here, or by torch.cuda.set_per_process_memory_fraction",
        evidence=flush_storm,
        veto=_collects_already,
        trials=lambda e: [
            _setting(e, f"garbage_collection_threshold:{share},per_process_memory_fraction:0.99")
            for share in reversed(_THRESHOLDS)
        ],
        worth=_fewer_retries,
        claim=_claim_retries,
    ),
    Rule(
        slug="roundup-power2-divisions",
        title="Round sizes up so that freed blocks fit again",
        effect="each block grows a little; padding the inputs to a few lengths does the same and more",
        evidence=many_sizes,
        veto=_rounding_veto,
        trials=lambda e: [_setting(e, f"roundup_power2_divisions:{value}") for value in _DIVISIONS],
        worth=_saved,
        claim=_claim,
    ),
    Rule(
        slug="less-rounding",
        title="Round sizes up in smaller steps",
        effect="freed blocks fit others less often",
        evidence=rounded_much,
        veto=_never,
        trials=lambda e: [_setting(e, f"roundup_power2_divisions:{value}") for value in ("1", "16", "8")],
        worth=_saved,
        claim=_claim,
    ),
    Rule(
        slug="empty-cache-once",
        title="Empty the cache once, where one phase ends and another begins",
        effect="once only: what comes next must ask the device anew",
        evidence=wasteful,
        veto=lambda e: e.settings.backend != "native",
        trials=_places,
        worth=_saved,
        claim=_claim,
    ),
    Rule(
        slug="no-empty-cache",
        title="Do not empty the cache in each step",
        effect="every call waits for the device, and what follows waits for cudaMalloc",
        evidence=empties_often,
        veto=_never,
        trials=lambda e: [
            Trial(
                "remove torch.cuda.empty_cache() from the loop",
                lambda: e.try_script(e.script.without_empty_cache()),
            )
        ],
        worth=_fewer_calls,
        claim=_claim_calls,
    ),
)
