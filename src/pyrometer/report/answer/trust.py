"""How far the figures hold, in one line, and the one command that would improve it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from pyrometer.bench.measurement import Measurement
from pyrometer.bench.quality import Caveat, CaveatCode
from pyrometer.quantity import counted, format_percent
from pyrometer.report.documents import Document

COMMAND = re.compile(r"`(pyrometer [^`]+)`")

WORDS: dict[str, str] = {
    CaveatCode.FIRST_CALL_ONLY: "first call only",
    CaveatCode.NOT_STEADY: "not steady yet",
    CaveatCode.DRIFTING: "drifting",
    CaveatCode.FEW_SAMPLES: "few samples",
    CaveatCode.WIDE_INTERVAL: "wide interval",
    CaveatCode.TAIL_UNBOUNDED: "tail not bounded",
    CaveatCode.AUTOCORRELATED: "samples are alike",
    CaveatCode.BATCHED: "short steps timed together",
    CaveatCode.COMPILED_WHILE_STEADY: "compiled while timed",
    CaveatCode.COMPETING_LOAD: "other processes busy",
    CaveatCode.STEAL: "CPU time stolen",
    CaveatCode.THROTTLED: "throttled",
    CaveatCode.FREQUENCY_CHANGED: "CPU clock fell",
    CaveatCode.RETURNS_UNFINISHED: "steps return unfinished",
    CaveatCode.WORK_PUT_OFF: "work put off to a thread",
    CaveatCode.ANSWERS_KEPT: "answers kept",
    CaveatCode.NAN_OUTPUT: "output holds NaN",
    CaveatCode.SHAPE_VARIES: "shapes vary",
    CaveatCode.MEMORY_GROWS: "memory grows",
    CaveatCode.INTERRUPTED: "interrupted",
    CaveatCode.FAILED: "failed",
    CaveatCode.TAIL_SLOWER: "tail slower",
    CaveatCode.SLOT_EFFECT: "order matters",
    CaveatCode.SIDES_DISTURB: "sides disturb each other",
    CaveatCode.WALL_DISAGREES: "wall time disagrees",
}
"""Reservations in a few words."""

HARMLESS: frozenset[str] = frozenset(
    {CaveatCode.BATCHED, CaveatCode.AUTOCORRELATED, CaveatCode.TAIL_UNBOUNDED}
)
"""Those that the intervals allow for: told only where nothing else is to be told."""


def of_measurement(m: Measurement) -> str:
    """How well the median is known, and what limits it."""
    said = [f"median {half}" if (half := half_width(m)) else counted(m.num_samples, "sample")]
    limits = limiting(m.warnings)
    if limits:
        return " · ".join([*said, *limits])
    state = f"steady after {counted(m.warmup_steps, 'step')}" if m.steady else "not steady"
    return " · ".join([*said, state, counted(m.num_samples, "sample")])


def half_width(m: Measurement) -> str:
    """Half the interval of the median, over it; empty for too few samples."""
    if m.num_samples < 2 or m.median_s <= 0:
        return ""
    half = (m.ci_high_s - m.ci_low_s) / 2 / m.median_s
    return f"±{format_percent(half, 2)}" if half < 1 else "uncertain"


def limiting(caveats: Sequence[Caveat]) -> list[str]:
    """What limits the trust, each in a few words, once."""
    told = [caveat for caveat in caveats if caveat.code != CaveatCode.FAILED]
    grave = [caveat for caveat in told if caveat.code not in HARMLESS] or told
    return list(dict.fromkeys(WORDS.get(caveat.code, caveat.message) for caveat in grave))


def command(caveats: Sequence[Caveat]) -> str:
    """The command that lifts the most of them: of several that ask for more time the longest; else the first one's advice."""
    longer = [(caveat.needed_s, caveat.advice.title) for caveat in caveats if caveat.needed_s is not None]
    titles = [max(longer)[1]] if longer else []
    grave = [caveat for caveat in caveats if caveat.code not in HARMLESS and caveat.code != CaveatCode.FAILED]
    titles += [caveat.advice.title for caveat in grave]
    commands = [match[1] for title in titles if (match := COMMAND.search(title))]
    return next(iter([*commands, *titles]), "")


def again(document: Document, *flags: str) -> str:
    """The command that made a document, with other flags behind it; empty where none did."""
    if not document.command:
        return ""
    words = _without(document.command, "--store", *flags[:1])
    at = words.index("--") if "--" in words else len(words)
    return shlex.join([*words[:at], *flags, *words[at:]])


def _without(words: Sequence[str], *flags: str) -> list[str]:
    """A command line without these flags and their values.

    >>> _without(["pyrometer", "check", "--store", "runs", "a.py", "--budget=2s"], "--store", "--budget")
    ['pyrometer', 'check', 'a.py']
    """
    kept = [word for i, word in enumerate(words) if word not in flags and words[i - 1] not in flags]
    return [word for word in kept if word.partition("=")[0] not in flags]


def has_flag(document: Document, flag: str) -> bool:
    """Whether the command that made a document has a flag."""
    return any(word.partition("=")[0] == flag for word in document.command or ())
