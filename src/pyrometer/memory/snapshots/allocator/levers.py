"""Allocator advice: a table of levers, each with the figures that call for it, what forbids it, and its trial.

A lever proposes trials; each is played in the simulated allocator with the recorded requests, and the best is advised only
when it lowers the peak of reserved bytes, serves a request that failed, or saves what the lever is about. What helps no
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
from pyrometer.memory.snapshots.allocator.device import RecordedDevice, proof
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
class Lever:
    """One lever."""

    slug: str
    title: str
    effect: str
    why: Callable[[RecordedDevice], str | None]
    """Why it is called for, with figures; `None` when it is not."""
    veto: Callable[[RecordedDevice], bool]
    trials: Callable[[RecordedDevice], list[Trial]]
    worth: Callable[[RecordedDevice, Outcome], float]
    """How good an outcome is; nothing is advised for zero or less."""
    claim: Callable[[RecordedDevice, Outcome], str]


def advise(device: RecordedDevice) -> list[Advice]:
    """What to change about the allocator, most bytes first; empty when nothing would help."""
    found = [*beyond_settings(device)]
    if device.simulation.trusted:
        tried = [advice for lever in LEVERS if (advice := _tried(lever, device)) is not None]
        found += sorted(tried, key=lambda advice: -advice.saves_bytes)
    return found


def _tried(lever: Lever, device: RecordedDevice) -> Advice | None:
    why = lever.why(device)
    if why is None or lever.veto(device):
        return None
    outcomes = [(trial, trial.run()) for trial in lever.trials(device)]
    outcomes = [(trial, outcome) for trial, outcome in outcomes if outcome.failed <= device.base.failed]
    if not outcomes:
        return None
    trial, best = max(outcomes, key=lambda pair: lever.worth(device, pair[1]))
    if lever.worth(device, best) <= 0:
        return None
    return Advice(
        slug=lever.slug,
        title=lever.title,
        why=why,
        rewrite=trial.use,
        effect=f"{lever.claim(device, best)}; {lever.effect}",
        fix_class="exact",
        gain=Gain(
            saves_bytes=max(device.base.peak_reserved_bytes - best.peak_reserved_bytes, 0),
            method=proof(device),
        ),
    )


def _saved(device: RecordedDevice, outcome: Outcome) -> float:
    """Bytes saved, when it is worth the trouble; a request that now fits outweighs all bytes."""
    base = device.base
    saved = base.peak_reserved_bytes - outcome.peak_reserved_bytes
    served = sum(outcome.fits) - sum(base.fits)
    if served > 0:
        return float(1 << 50) * served + saved
    enough = saved >= max(_LEAST_GAIN_BYTES, _LEAST_GAIN * base.peak_reserved_bytes)
    return float(saved) if served == 0 and enough else 0.0


def _claim(device: RecordedDevice, outcome: Outcome) -> str:
    base = device.base
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


def _setting(device: RecordedDevice, addition: str) -> Trial:
    text, settings = _with(device.settings, addition)
    return Trial(_environment(text), lambda: device.try_settings(settings))


def _expandable_impossible(device: RecordedDevice) -> bool:
    return device.settings.expandable_segments or device.settings.backend != "native"


def _rounding_veto(device: RecordedDevice) -> bool:
    return bool(any(device.settings.roundup_power2_divisions)) or device.settings.backend != "native"


def _collects_already(device: RecordedDevice) -> bool:
    return _expandable_impossible(device) or device.settings.garbage_collection_threshold > 0


def _never(_: RecordedDevice) -> bool:
    return False


def _places(device: RecordedDevice) -> list[Trial]:
    """Emptying the cache once where little is in use, before the peak of reserved bytes."""
    totals = device.lifetimes.sizes_over_time(device.lifetimes.size)
    end = int(device.reserved.argmax())
    edges = np.linspace(max(device.script.first, 0), end, _PLACES + 1).astype(np.int64)
    places: set[int] = set()
    for begin, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        piece = totals[begin:stop]
        if len(piece):
            lowest = np.flatnonzero(piece == piece.min())
            places |= {begin + int(lowest[0]) - 1, begin + int(lowest[-1]) - 1}
    return [_emptied(device, event) for event in sorted(places) if event >= 0]


def _emptied(device: RecordedDevice, event: int) -> Trial:
    changed = device.script.with_empty_cache(event)
    return Trial(_before(device, event), lambda: device.try_script(changed))


def _before(device: RecordedDevice, event: int) -> str:
    """Where to write it: before the line that allocates next."""
    later = np.flatnonzero((device.lifetimes.made > event) & (device.lifetimes.made != BEFORE))
    if not len(later):
        return "torch.cuda.empty_cache()"
    following = later[device.lifetimes.made[later].argmin()]
    site = device.sites[int(device.lifetimes.stack[following])]
    return f"torch.cuda.empty_cache() once, before {site.name} allocates (event {event + 1})"


def _fewer_retries(device: RecordedDevice, outcome: Outcome) -> float:
    if sum(outcome.fits) < sum(device.base.fits):
        return 0.0
    fewer = device.base.retries - outcome.retries
    return float(fewer) if 2 * outcome.retries <= device.base.retries else 0.0


def _fewer_calls(device: RecordedDevice, outcome: Outcome) -> float:
    no_more = outcome.peak_reserved_bytes <= device.base.peak_reserved_bytes * 1.02
    fits = sum(outcome.fits) >= sum(device.base.fits)
    return float(device.base.device_allocs - outcome.device_allocs) if no_more and fits else 0.0


def _claim_retries(device: RecordedDevice, outcome: Outcome) -> str:
    return f"{counted(outcome.retries, 'flush')} instead of {device.base.retries}".replace(
        "flushs", "flushes"
    )


def _claim_calls(device: RecordedDevice, outcome: Outcome) -> str:
    return (
        f"{counted(outcome.device_allocs, 'cudaMalloc')} instead of {device.base.device_allocs}, and no more memory: "
        f"{format_bytes(outcome.peak_reserved_bytes)} reserved at the most"
    )


LEVERS = (
    Lever(
        slug="expandable-segments",
        title="Let segments grow instead of allocating new ones",
        effect="not together with CUDA IPC (custom all-reduce of vLLM, sharing tensors between processes)",
        why=lambda e: fragmented(e) or wasteful(e),
        veto=_expandable_impossible,
        trials=lambda e: [_setting(e, "expandable_segments:True")],
        worth=_saved,
        claim=_claim,
    ),
    Lever(
        slug="max-split-size",
        title="Where expandable segments cannot be used: keep large blocks whole",
        effect="requests above the limit get segments of their own, so that some are made more often",
        why=fragmented,
        veto=lambda device: _expandable_impossible(device) or device.settings.max_split_bytes is not None,
        trials=lambda e: [_setting(e, f"max_split_size_mb:{size}") for size in reversed(_MAX_SPLITS)],
        worth=_saved,
        claim=_claim,
    ),
    Lever(
        slug="garbage-collection-threshold",
        title="Give old cached memory back early instead of all of it late",
        effect="works only with a fraction set, as here, or by torch.cuda.set_per_process_memory_fraction",
        why=flush_storm,
        veto=_collects_already,
        trials=lambda e: [
            _setting(e, f"garbage_collection_threshold:{share},per_process_memory_fraction:0.99")
            for share in reversed(_THRESHOLDS)
        ],
        worth=_fewer_retries,
        claim=_claim_retries,
    ),
    Lever(
        slug="roundup-power2-divisions",
        title="Round sizes up so that freed blocks fit again",
        effect="each block grows a little; padding the inputs to a few lengths does the same and more",
        why=many_sizes,
        veto=_rounding_veto,
        trials=lambda e: [_setting(e, f"roundup_power2_divisions:{value}") for value in _DIVISIONS],
        worth=_saved,
        claim=_claim,
    ),
    Lever(
        slug="less-rounding",
        title="Round sizes up in smaller steps",
        effect="freed blocks fit others less often",
        why=rounded_much,
        veto=_never,
        trials=lambda e: [_setting(e, f"roundup_power2_divisions:{value}") for value in ("1", "16", "8")],
        worth=_saved,
        claim=_claim,
    ),
    Lever(
        slug="empty-cache-once",
        title="Empty the cache once, where one phase ends and another begins",
        effect="once only: what comes next must ask the device anew",
        why=wasteful,
        veto=lambda e: e.settings.backend != "native",
        trials=_places,
        worth=_saved,
        claim=_claim,
    ),
    Lever(
        slug="no-empty-cache",
        title="Do not empty the cache in each step",
        effect="every call waits for the device, and what follows waits for cudaMalloc",
        why=empties_often,
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
