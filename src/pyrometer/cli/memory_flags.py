"""The flags of `pyrometer memory` that hold lists: what if, sizes, limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pyrometer.errors import InputError, UsageError
from pyrometer.quantity import Bytes, format_bytes
from pyrometer.settings import parse_bytes

WHAT_IF = ("batch", "sequence", "dtype", "amp", "optimizer", "checkpoint", "accumulate", "device")
"""What `--predict` may set; the names of the arguments of `predict_memory`."""

COUNTS = frozenset({"batch", "sequence", "accumulate"})

LIMITS = ("peak", "growth")


class MemoryLimits(NamedTuple):
    """What a program's memory may be; `None` where nothing was asked for."""

    peak_bytes: Bytes | None = None
    growth_bytes_per_step: Bytes | None = None


def parse_what_if(text: str) -> dict[str, Any]:
    """Read `--predict batch=64,amp=bfloat16`.

    >>> parse_what_if("batch=64, checkpoint=2, optimizer=SGD")
    {'batch': 64, 'checkpoint': 'every 2', 'optimizer': 'SGD'}

    Raises:
        UsageError: an unknown name, or a value that is none.
    """
    settings: dict[str, Any] = {}
    for name, value in _pairs("--predict", text, WHAT_IF):
        if name in COUNTS:
            settings[name] = _count(name, value)
        elif name == "checkpoint" and value.isdigit():
            settings[name] = f"every {value}"
        else:
            settings[name] = value
    return settings


def parse_sizes(text: str) -> list[Bytes]:
    """Read `--fit 24GiB,80GiB`.

    >>> parse_sizes("1GiB, 2GiB")
    [1073741824, 2147483648]

    Raises:
        UsageError: something that is no size.
    """
    try:
        return [parse_bytes(part) for part in text.split(",")]
    except InputError as error:
        raise UsageError(f"--fit: {error}") from error


def parse_memory_limits(texts: Iterable[str]) -> MemoryLimits:
    """Read the limits of all flags together.

    >>> parse_memory_limits(["peak=2GiB,growth=0"])
    MemoryLimits(peak_bytes=2147483648, growth_bytes_per_step=0)

    Raises:
        UsageError: an unknown name, or a value that is no size.
    """
    pairs = [pair for text in texts for pair in _pairs("--limit", text, LIMITS)]
    found = {name: _size(name, value) for name, value in pairs}
    return MemoryLimits(found.get("peak"), found.get("growth"))


def over_limits(limits: MemoryLimits, peak_bytes: Bytes, growth: float | None) -> list[str]:
    """What exceeds its limit, a sentence each.

    >>> over_limits(MemoryLimits(peak_bytes=2**20), 2**21, None)
    ['the peak is 2.00 MiB, 1.00 MiB are allowed']
    """
    lines = []
    if limits.peak_bytes is not None and peak_bytes > limits.peak_bytes:
        lines.append(f"the peak is {format_bytes(peak_bytes)}, {format_bytes(limits.peak_bytes)} are allowed")
    allowed = limits.growth_bytes_per_step
    if allowed is not None and growth is not None and growth > allowed:
        lines.append(f"memory grows by {format_bytes(growth)} per step, {format_bytes(allowed)} are allowed")
    return lines


def undecided(limits: MemoryLimits, verdict: str | None) -> bool:
    """Whether growth is limited, but could not be told.

    >>> undecided(MemoryLimits(growth_bytes_per_step=0), "undecided"), undecided(MemoryLimits(), None)
    (True, False)
    """
    return limits.growth_bytes_per_step is not None and verdict in {
        None,
        "undecided",
        "growing, not decidable yet",
    }


def _pairs(flag: str, text: str, legal: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        name, equals, value = part.partition("=")
        if not equals or name.strip() not in legal or not value.strip():
            raise UsageError(f"{flag}: got {part!r}; legal are {', '.join(f'{known}=…' for known in legal)}")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _size(name: str, value: str) -> Bytes:
    try:
        return 0 if value == "0" else parse_bytes(value)
    except InputError as error:
        raise UsageError(f"--limit {name}: {error}") from error


def _count(name: str, value: str) -> int:
    if not value.isdigit() or value == "0":
        raise UsageError(f"--predict: got {name}={value}; it must be a whole number of at least 1")
    return int(value)
