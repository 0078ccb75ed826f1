"""Which guards of an earlier compilation fail for the values of a later one.

Torch reports the first failing guard of each earlier compilation and stops there. The others follow from what the guards of the
later compilation say of its values: a guard is listed only if they contradict it. A guard of which they say nothing is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from pyrometer.compiler.recompiles.expression import equal, truth
from pyrometer.compiler.recompiles.facts import (
    DISPATCH_KEYS,
    GLOBAL,
    Facts,
    TensorCheck,
    equation,
    global_state,
    identity,
    part_of,
    tensor_check,
    unaliased,
)
from pyrometer.compiler.recompiles.kinds import kind_of
from pyrometer.compiler.recompiles.tree import Guard, spoken

_SCALARS = {
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "bfloat16": "BFloat16",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "bool": "Bool",
    "complex32": "ComplexHalf",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}
_EXACT_TYPE = frozenset({"EQUALS_MATCH", "TYPE_MATCH", "NONE_MATCH", "TRUE_MATCH", "FALSE_MATCH", "ID_MATCH"})
"""Guards that no value of another type can pass."""


class Failure(NamedTuple):
    """A guard that fails."""

    text: str
    """In torch's words."""
    kind: str
    subjects: tuple[str, ...]
    """What was different, as expressions."""
    guard: Guard


def failures(guards: Collection[Guard], new: Facts, held: Collection[tuple[str, str]] = ()) -> list[Failure]:
    """The guards that fail, in their own order.

    Args:
        guards: of the earlier compilation.
        new: what is known of the later one's values.
        held: type and text of the later compilation's own guards: those hold.
    """
    found: dict[str, Failure] = {}
    for guard in guards:
        if (guard.type, guard.text) in held:
            continue
        for failure in _failures(guard, new):
            found.setdefault(failure.text, failure)
    return list(found.values())


def _failures(guard: Guard, new: Facts) -> Iterator[Failure]:
    if guard.type == "GLOBAL_STATE":
        yield from _global_state(guard, new)
        return
    if guard.type == "NO_TENSOR_ALIASING":
        yield from _aliasing(guard, new)
        return
    if guard.type == "TENSOR_MATCH":
        check = tensor_check(guard)
        yield from () if check is None else tensor_failures(check, guard, new)
        return
    if guard.type in _EXACT_TYPE and _other_type(guard, new):
        yield Failure(guard.words, "type", (f"type({guard.source})",), guard)
        return
    known = identity(guard)
    if known is not None:
        actual = new.get(known[0])
        if actual is not None and actual != known[1]:
            subject = f"type({guard.source})" if guard.type == "TYPE_MATCH" else known[0]
            yield Failure(guard.words, kind_of(subject), (subject,), guard)
        return
    yield from _condition(guard, new)


def _condition(guard: Guard, new: Facts) -> Iterator[Failure]:
    sides = equation(guard.text)
    if sides is not None and guard.type != "LAMBDA_GUARD":
        actual = new.get(sides[0])
        if actual is not None and not equal(sides[1], actual):
            yield Failure(guard.words, kind_of(sides[0]), (sides[0],), guard)
        return
    holds, subjects = truth(guard.text, new)
    if holds is False:
        kind = kind_of(subjects[0]) if subjects else "aliasing" if " is " in guard.text else "unknown"
        yield Failure(guard.words, kind, tuple(subjects), guard)


def _other_type(guard: Guard, new: Facts) -> bool:
    actual = new.get(f"type({guard.source})")
    return bool(guard.value_type) and actual is not None and actual != guard.value_type


def tensor_failures(check: TensorCheck, guard: Guard, new: Facts) -> Iterator[Failure]:
    """Every part that differs, in the words in which torch reports the first of them."""
    name = spoken(check.name)
    if _other_type(guard, new):
        found = new.get(f"type({guard.source})")
        words = f"expected type of '{name}' to be a tensor type, ' but found {found}"
        yield Failure(words, "type", (f"type({guard.source})",), guard)
    for part in (DISPATCH_KEYS, "dtype", "device", "requires_grad", "dim()"):
        subject = part_of(check.name, part)
        expected, actual = check.parts[subject], new.get(subject)
        if actual is not None and actual != expected:
            words = f"tensor '{name}' {_difference(part, expected, actual)}"
            yield Failure(words, kind_of(subject, tensor=True), (subject,), guard)
    if new.get(f"{check.name}.dim()") != str(check.rank):
        return
    for part in ("size", "stride"):
        for index in range(check.rank):
            subject = f"{check.name}.{part}()[{index}]"
            expected, actual = check.parts.get(subject, ""), new.get(subject)
            if expected and actual is not None and actual != expected:
                words = (
                    f"tensor '{name}' {part} mismatch at index {index}. expected {expected}, actual {actual}"
                )
                yield Failure(words, part, (subject,), guard)


def _difference(part: str, expected: str, actual: str) -> str:
    if part == "dtype":
        before, after = (_SCALARS.get(text.removeprefix("torch."), text) for text in (expected, actual))
        return f"dtype mismatch. expected {before}, actual {after}"
    if part == "requires_grad":
        return f"requires_grad mismatch. expected requires_grad={int(expected == 'True')}"
    if part == "device":
        return f"Tensor device index mismatch. Expected device index to be {expected}, but found {actual} instead."
    if part == DISPATCH_KEYS:
        return (
            f"dispatch key set mismatch. expected DispatchKeySet({expected}), actual DispatchKeySet({actual})"
        )
    return f"rank mismatch. expected {expected}, actual {actual}"


def _global_state(guard: Guard, new: Facts) -> Iterator[Failure]:
    subjects = tuple(
        name
        for name, text in global_state(guard).items()
        if (actual := new.get(name)) is not None and actual != text
    )
    if subjects:
        names = " ".join(name.removeprefix(GLOBAL) for name in subjects)
        yield Failure(f"GLOBAL_STATE changed: {names} ", "global_state", subjects, guard)


def _aliasing(guard: Guard, new: Facts) -> Iterator[Failure]:
    names = unaliased(guard)
    for one, other in new.same:
        if one in names and other in names:
            words = f'Duplicate tensors found: ["{spoken(one)}", "{spoken(other)}"]'
            yield Failure(words, "aliasing", (one, other), guard)
