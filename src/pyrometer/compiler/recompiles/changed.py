"""The inputs that changed between compilations of a frame, with the values that they had."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import structs

from pyrometer.compiler.recompiles.facts import GLOBAL
from pyrometer.compiler.recompiles.failing import Failure
from pyrometer.compiler.recompiles.frames import LoggedCompilation
from pyrometer.compiler.recompiles.kinds import in_words
from pyrometer.compiler.recompiles.reason import Reported
from pyrometer.compiler.recompiles.record import ChangedInput
from pyrometer.quantity import counted

NOT_TOLD = "not told"
_DTYPES = {"5": "float16", "6": "float32", "7": "float64", "15": "bfloat16"}
"""Numbers under which torch writes dtypes in its global state."""


class Failed(NamedTuple):
    """A guard of an earlier compilation that failed."""

    entry: str
    """The earlier compilation."""
    failure: Failure
    reported: Reported | None = None
    """The reason that torch gave, where it gave one."""


def changed_inputs(
    compilation: LoggedCompilation, earlier: Sequence[LoggedCompilation], failing: Sequence[Failed]
) -> list[ChangedInput]:
    """One record per input whose value fits none of the earlier compilations, with the values of all of them.

    An input that not all of them had counts where its value is new: a cache that was empty at first. Where each value by itself
    was met before, and only all of them together were not, the inputs that differ from the nearest earlier compilation, with
    its values: the one from which the fewest differ.

    Args:
        compilation: the new one.
        earlier: those of the same frame before it.
        failing: the guards that failed.
    """
    different: dict[str, set[str]] = {}
    for failed in failing:
        subjects = [
            one for one in failed.failure.subjects if _differs(one, failed.failure, compilation, earlier)
        ]
        if subjects:
            different.setdefault(failed.entry, set()).update(subjects)
    if not different:
        return []
    new = set.intersection(*different.values()) or _never_met(
        set.union(*different.values()), compilation, earlier
    )
    if not new:
        nearest = min(different, key=lambda entry: len(different[entry]))
        new = different[nearest]
        failing = [failed for failed in failing if failed.entry == nearest]
        earlier = [
            logged_compilation for logged_compilation in earlier if logged_compilation.id.text == nearest
        ]
    found: dict[str, ChangedInput] = {}
    for _, failure, reported in failing:
        for subject in failure.subjects:
            if subject in found and reported is not None:
                found[subject] = _completed(found[subject], reported)
            elif subject in new and subject not in found:
                found[subject] = _changed(subject, failure.kind, compilation, earlier, reported)
    return _switched_over(found.values())


def _never_met(
    subjects: Iterable[str], compilation: LoggedCompilation, earlier: Sequence[LoggedCompilation]
) -> set[str]:
    """Those whose value is known now, and that no earlier compilation was made for."""
    return {
        subject
        for subject in subjects
        if (now := compilation.facts.get(subject)) is not None
        and now not in [logged_compilation.facts.get(subject) for logged_compilation in earlier]
    }


def _switched_over(inputs: Iterable[ChangedInput]) -> list[ChangedInput]:
    """`train()` and `eval()` switch every module: modules with the same flags are one input."""
    kept, flags = list[ChangedInput](), dict[tuple[str, ...], list[ChangedInput]]()
    for changed in inputs:
        if changed.kind != "training":
            kept.append(changed)
            continue
        alike = flags.setdefault((*changed.before, changed.after), [])
        if not alike:
            kept.append(changed)
        alike.append(changed)
    more = {id(alike[0]): len(alike) - 1 for alike in flags.values()}
    return [_named(changed, more.get(id(changed), 0)) for changed in kept]


def _named(changed: ChangedInput, more: int) -> ChangedInput:
    if not more:
        return changed
    return structs.replace(changed, name=f"{changed.name}, and of {counted(more, 'more module')}")


def _differs(
    subject: str, failure: Failure, compilation: LoggedCompilation, earlier: Sequence[LoggedCompilation]
) -> bool:
    """Of several values in one condition only those that changed count."""
    if len(failure.subjects) == 1:
        return True
    now = compilation.facts.get(subject)
    return now is None or any(
        logged_compilation.facts.get(subject) not in (None, now) for logged_compilation in earlier
    )


def _changed(
    subject: str,
    kind: str,
    compilation: LoggedCompilation,
    earlier: Sequence[LoggedCompilation],
    reported: Reported | None,
) -> ChangedInput:
    texts = [
        text for logged_compilation in earlier if (text := logged_compilation.facts.get(subject)) is not None
    ]
    now = compilation.facts.get(subject)
    if reported is not None:
        texts = texts or ([reported.before] if reported.before is not None else [])
        now = reported.after if now is None else now
    now = _of_type(subject, compilation) if now is None else now
    shown = _shown(subject, [*texts, NOT_TOLD if now is None else now])
    return ChangedInput(
        source=subject.removeprefix(GLOBAL),
        name=in_words(subject),
        kind=kind,
        before=list(dict.fromkeys(shown[:-1])),
        after=shown[-1],
        became_dynamic=subject in compilation.facts.open,
    )


def _of_type(subject: str, compilation: LoggedCompilation) -> str | None:
    """Of a value that no guard tells, its type."""
    source = subject.removeprefix("id(").removesuffix(")") if subject.startswith("id(") else subject
    fact = compilation.facts.get(f"type({source})")
    return None if fact is None else f"a value of type {_bare(fact)}"


def _bare(type_text: str) -> str:
    return type_text.removeprefix("<class '").removeprefix("<enum '").removesuffix("'>")


def _completed(changed: ChangedInput, reported: Reported) -> ChangedInput:
    """With the earlier value that another cause names, where the log does not hold that compilation."""
    if reported.before is None or changed.before:
        return changed
    return structs.replace(changed, before=[reported.before])


def _shown(subject: str, texts: list[str]) -> list[str]:
    """Values for people: objects are numbered in the order in which they came, types are bare names."""
    if subject.startswith(("id(", "typeid(")):
        numbers = {text: f"object {at}" for at, text in enumerate(dict.fromkeys(texts), 1)}
        return [numbers[text] if text.isdigit() else text for text in texts]
    if subject.startswith("type("):
        return [_bare(text) for text in texts]
    is_dtype = subject == f"{GLOBAL}default_dtype" or re.match(r"global\.autocast.*_dtype$", subject)
    return [_DTYPES.get(text, text) for text in texts] if is_dtype else texts
