"""Settings of torch's caching allocator: reading their text as torch does, and saying what torch would not.

torch accepts unknown keys without a word and splits its attention when two variables are set; here both are problems.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

from pyrometer.record import Record, doc

_INTERVALS = 16
"""Powers of two from 1 MiB to 32 GiB that have their own number of divisions; the last is for all above."""
_UNLIMITED = (1 << 63) - 1
_MIB = 1 << 20


class AllocatorSettings(Record, frozen=True, kw_only=True):
    """What the allocator was told, as far as it changes where blocks lie."""

    expandable_segments: bool = False
    max_split_bytes: Annotated[int | None, doc("blocks from here on are not split; null when unlimited")] = (
        None
    )
    max_non_split_rounding_bytes: int = 20 * _MIB
    garbage_collection_threshold: float = 0.0
    roundup_power2_divisions: Annotated[
        tuple[int, ...], doc("per power of two from 1 MiB on; empty or 0 for none")
    ] = ()
    large_segment_bytes: int = 20 * _MIB
    per_process_memory_fraction: float = 1.0
    backend: str = "native"
    text: Annotated[str, doc("as it was set")] = ""

    def divisions_for(self, size: int) -> int:
        """Into how many steps the stretch between two powers of two is cut for this size."""
        if not self.roundup_power2_divisions:
            return 0
        index = size.bit_length() - 1 - _MIB.bit_length() + 1
        return self.roundup_power2_divisions[min(max(index, 0), len(self.roundup_power2_divisions) - 1)]


class SettingsCheck(Record, frozen=True, kw_only=True):
    """A settings text, understood."""

    settings: AllocatorSettings
    problems: Annotated[list[str], doc("what torch would reject, or ignore without a word")] = []


Problem: TypeAlias = str | None
_Check = Callable[[str], Problem]


def _flag(value: str) -> Problem:
    return None if value in {"True", "False"} else f"{value!r} must be True or False, with a capital"


def _at_least(low: int) -> _Check:
    def check(value: str) -> Problem:
        if value.isdigit() and int(value) >= low:
            return None
        return f"{value!r} must be a whole number from {low} on"

    return check


def _between(low: float, high: float, *, open_ends: bool) -> _Check:
    def check(value: str) -> Problem:
        try:
            number = float(value)
        except ValueError:
            return f"{value!r} is not a number"
        fits = low < number < high if open_ends else low < number <= high
        if fits:
            return None
        return f"{value!r} must lie above {low:g} and {'below' if open_ends else 'not above'} {high:g}"

    return check


def _divisions(value: str) -> Problem:
    for entry in _entries(value):
        bound, _, number = entry.rpartition(":")
        if not number.isdigit() or (int(number) and int(number) & (int(number) - 1)):
            return f"{number!r} divisions must be 0 or a power of two"
        if bound and bound != ">" and not (bound.isdigit() and _is_power_of_two(int(bound))):
            return f"{bound!r} must be a power of two in MiB, or >"
    return None


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _backend(value: str) -> Problem:
    if value in {"native", "cudaMallocAsync", "hipMallocAsync"}:
        return None
    return f"{value!r} must be native or cudaMallocAsync"


KEYS: dict[str, _Check] = {
    "expandable_segments": _flag,
    "max_split_size_mb": _at_least(20),
    "max_non_split_rounding_mb": _at_least(20),
    "garbage_collection_threshold": _between(0, 1, open_ends=True),
    "roundup_power2_divisions": _divisions,
    "large_segment_size_mb": _at_least(20),
    "per_process_memory_fraction": _between(0, 1, open_ends=False),
    "backend": _backend,
    "graph_capture_record_stream_reuse": _flag,
    "throw_on_cudamalloc_oom": _flag,
    "release_lock_on_cudamalloc": _flag,
    "release_lock_on_hipmalloc": _flag,
    "pinned_use_cuda_host_register": _flag,
    "pinned_use_hip_host_register": _flag,
    "pinned_use_background_threads": _flag,
    "pinned_free_catch_all": _flag,
    "pinned_num_register_threads": _at_least(1),
    "pinned_reserve_segment_size_mb": _at_least(1),
    "pinned_max_round_threshold_mb": _at_least(1),
    "pinned_max_cached_size_mb": _at_least(1),
}
"""Every key that torch 2.13 knows, and what its value must be."""


def check_settings(text: str) -> SettingsCheck:
    """Read a settings text such as `expandable_segments:True,max_split_size_mb:128`.

    >>> check_settings("expandible_segments:True").problems
    ["'expandible_segments' is no setting; did you mean expandable_segments? torch ignores it without a word"]
    >>> check_settings("max_split_size_mb:128").settings.max_split_bytes >> 20
    128
    """
    problems: list[str] = []
    values: dict[str, str] = {}
    for pair in split_pairs(text):
        key, colon, value = pair.partition(":")
        problem = _problem(key, value) if colon else f"{pair!r} has no value; write key:value"
        if problem:
            problems.append(problem)
            continue
        if key in values:
            problems.append(f"{key} is set twice; the last wins")
        values[key] = value
    return SettingsCheck(settings=_settings(values, text), problems=problems)


def recorded_settings(raw: Mapping[str, Any]) -> SettingsCheck:
    """The settings that a snapshot's `allocator_settings` tell; the single values win over the text."""
    given = raw.get("PYTORCH_CUDA_ALLOC_CONF") or raw.get("PYTORCH_ALLOC_CONF") or ""
    checked = check_settings(given if isinstance(given, str) else "")
    allocator_settings = checked.settings
    split = raw.get("max_split_size")
    divisions = raw.get("roundup_power2_divisions")
    threshold = raw.get("garbage_collection_threshold")
    settings = AllocatorSettings(
        expandable_segments=bool(raw.get("expandable_segments", allocator_settings.expandable_segments)),
        max_split_bytes=_split_bytes(split) if isinstance(split, int) else allocator_settings.max_split_bytes,
        max_non_split_rounding_bytes=allocator_settings.max_non_split_rounding_bytes,
        garbage_collection_threshold=(
            float(threshold)
            if isinstance(threshold, (int, float))
            else allocator_settings.garbage_collection_threshold
        ),
        roundup_power2_divisions=(
            _by_interval(divisions)
            if isinstance(divisions, dict)
            else allocator_settings.roundup_power2_divisions
        ),
        large_segment_bytes=allocator_settings.large_segment_bytes,
        per_process_memory_fraction=allocator_settings.per_process_memory_fraction,
        backend=allocator_settings.backend,
        text=allocator_settings.text,
    )
    return SettingsCheck(settings=settings, problems=checked.problems)


def _split_bytes(value: int) -> int | None:
    return value if 0 < value < _UNLIMITED else None


def _by_interval(divisions: dict[Any, Any]) -> tuple[int, ...]:
    """The file's numbers by powers of two in MiB."""
    found = [divisions.get(str(1 << i), 0) for i in range(_INTERVALS)]
    numbers = tuple(int(n) if isinstance(n, (int, float)) else 0 for n in found)
    return numbers if any(numbers) else ()


def _problem(key: str, value: str) -> Problem:
    check = KEYS.get(key)
    if check is None:
        return f"{key!r} is no setting; {_nearest(key)}torch ignores it without a word"
    wrong = check(value)
    return f"{key}: {wrong}" if wrong else None


def _nearest(key: str) -> str:
    close = difflib.get_close_matches(key.lower(), KEYS, n=1)
    return f"did you mean {close[0]}? " if close else ""


def split_pairs(text: str) -> list[str]:
    """Pairs between commas that are in no brackets; blanks do not count.

    >>> split_pairs("a:1, b:[2:3,>:4]")
    ['a:1', 'b:[2:3,>:4]']
    """
    return [pair for pair in re.split(r",(?![^\[]*\])", re.sub(r"\s", "", text)) if pair]


def _entries(value: str) -> list[str]:
    return value.strip("[]").split(",")


def _settings(values: Mapping[str, str], text: str) -> AllocatorSettings:
    def mib(key: str) -> int | None:
        return int(values[key]) * _MIB if key in values else None

    return AllocatorSettings(
        expandable_segments=values.get("expandable_segments") == "True",
        max_split_bytes=mib("max_split_size_mb"),
        max_non_split_rounding_bytes=mib("max_non_split_rounding_mb") or 20 * _MIB,
        garbage_collection_threshold=float(values.get("garbage_collection_threshold", 0)),
        roundup_power2_divisions=_parsed_divisions(values.get("roundup_power2_divisions")),
        large_segment_bytes=mib("large_segment_size_mb") or 20 * _MIB,
        per_process_memory_fraction=float(values.get("per_process_memory_fraction", 1)),
        backend=values.get("backend", "native"),
        text=text,
    )


def _parsed_divisions(value: str | None) -> tuple[int, ...]:
    """Divisions per power of two: a bound covers its own interval and, the first, all below; `>` all that follow."""
    if value is None:
        return ()
    if not value.startswith("["):
        return (int(value),) * _INTERVALS
    found, last, first = [0] * _INTERVALS, 0, True
    for entry in _entries(value):
        bound, _, number = entry.partition(":")
        if bound == ">":
            found[last + 1 :] = [int(number)] * (_INTERVALS - last - 1)
            continue
        index = min(int(bound).bit_length() - 1, _INTERVALS - 1)
        if first:
            found[:index] = [int(number)] * index
            first = False
        found[index] = int(number)
        last = index
    return tuple(found)
