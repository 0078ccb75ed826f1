"""Compile caches: what was found, what was not, and why not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pyrometer.compiler.collecting.entries import payload_json
from pyrometer.compiler.costs.key_difference import differences
from pyrometer.compiler.costs.keys import Key
from pyrometer.compiler.costs.metrics import number
from pyrometer.compiler.costs.record import CacheEvent, CacheSummary
from pyrometer.compiler.log import CompileLog, LogEntry

CACHES = {"fx_graph_cache": "fx_graph", "aotautograd_cache": "aot_autograd"}
"""Names of the artifacts, without the outcome, and our names of the caches."""

_KIND = re.compile(rf"({'|'.join(CACHES)})_(hit|miss|bypass)$")

GUARD_MISS = "the key was found, but conditions on sizes under which it was compiled do not hold"

NOT_KEPT = "the key is the same as before, but its entry is gone: another cache folder, a cleared one, or it was never saved"


class CacheLook(NamedTuple):
    """One look into a cache, as logged."""

    cache: str
    outcome: str
    compile_id: str
    text: str
    """The hash of the key."""
    key: Key
    told: dict[str, Any]


def read_cache(log: CompileLog, earlier: Iterable[CompileLog] = ()) -> CacheSummary:
    """Looks into Inductor's and AOTAutograd's caches, in order; of each miss, what is different from the nearest other entry.

    The nearest entry is, of those before the miss of the same cache and direction (forward, backward), the one whose key
    shares most components; in doubt the latest. Where the key itself was asked for before, its entry is gone.

    Source: artifacts `fx_graph_cache_*` and `aotautograd_cache_*` of torch's structured trace. Inductor's key comes with its
    components; AOTAutograd's only while its logger is at DEBUG, so that a miss there may stay unexplained.

    Args:
        log: what the compiler said.
        earlier: logs of runs before, perhaps of other processes, which a hit had been expected from.
    """
    known = [look for past in earlier for look in read_looks(past)]
    looks = read_looks(log)
    events = [_event(look, [*known, *looks[:at]]) for at, look in enumerate(looks)]
    hits, misses, bypasses = (
        sum(look.outcome == outcome for look in looks) for outcome in ("hit", "miss", "bypass")
    )
    return CacheSummary(
        hits=hits,
        misses=misses,
        bypasses=bypasses,
        state="unused" if not looks else "warm" if hits == len(looks) else "mixed" if hits else "cold",
        events=events,
    )


def read_looks(log: CompileLog) -> list[CacheLook]:
    """Every look into a cache, in order."""
    return [look for look in map(cache_look, log.entries) if look is not None]


def cache_look(entry: LogEntry) -> CacheLook | None:
    """The look into a cache that an entry tells of; `None` if it tells of none."""
    match = _KIND.match(entry.kind)
    if match is None:
        return None
    told = payload_json(entry)
    told = told if isinstance(told, dict) else {}
    components = told.get("components")
    return CacheLook(
        cache=CACHES[match[1]],
        outcome=match[2],
        compile_id=entry.id_text,
        text=str(told.get("key") or ""),
        key=Key(part for part in components if isinstance(part, str))
        if isinstance(components, list)
        else Key(()),
        told=told,
    )


def _event(look: CacheLook, before: Sequence[CacheLook]) -> CacheEvent:
    is_miss = look.outcome == "miss"
    was_there = (
        is_miss and look.text and any((one.cache, one.text) == (look.cache, look.text) for one in before)
    )
    nearest = _nearest(look, before) if is_miss and not was_there else None
    return CacheEvent(
        compile_id=look.compile_id,
        cache=look.cache,
        outcome=look.outcome,
        key=look.text,
        saved_s=_saved_s(look.told) if look.outcome == "hit" else None,
        reason=_reason(look) or (NOT_KEPT if was_there else ""),
        differs_from=None if nearest is None else nearest.text,
        differing=[] if nearest is None else differences(look.key, nearest.key),
    )


def _nearest(look: CacheLook, before: Sequence[CacheLook]) -> CacheLook | None:
    if not look.key:
        return None
    comparable = [
        other
        for other in reversed(before)
        if other.key
        and other.cache == look.cache
        and other.key.option("is_backward") == look.key.option("is_backward")
    ]
    return min(comparable, key=lambda other: look.key.distance(other.key), default=None)


def _reason(look: CacheLook) -> str:
    if look.outcome == "bypass":
        return str(look.told.get("cache_bypass_reason") or "")
    return GUARD_MISS if look.told.get("cache_status_detailed") == "guard_miss" else ""


def _saved_s(told: dict[str, Any]) -> float | None:
    saved_ns, saved_ms = number(told, "time_saved_ns"), number(told, "time_saved_ms")
    if saved_ns is not None:
        return saved_ns / 1e9
    return None if saved_ms is None else saved_ms / 1e3
