"""Guards that hold for fewer values than the code may need: what each ties down, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from pyrometer.compiler.recompiles.expression import Opaque, literal
from pyrometer.compiler.recompiles.facts import Facts, equation, tensor_check
from pyrometer.compiler.recompiles.kinds import in_words, kind_of
from pyrometer.compiler.recompiles.tree import Guard

_INTERNAL = re.compile(r"__(?:mro|defaults|kwdefaults|closure)__|\._(?:parameters|buffers)\[")
"""What a function or class is made of, and what modules hold."""
_INSIDE_MODULES = re.compile(r"\._(?:modules|parameters|buffers|\w*hooks\w*)\)*(?:\[\d+\])?$")
"""The dicts in which modules keep these, whose keys and lengths are not the program's to choose."""
_HELD_BY_MODULE = re.compile(r"\._(?:parameters|buffers)\[")
_LOCAL = re.compile(r"L\['\w+'\]$")
_HANDED_OVER = re.compile(r"L\['___\w+'\]")
"""What Dynamo hands to the rest behind a break: a value without a name of the user's."""
_BOUND = re.compile(r"(?P<size>L\[[^\s]*\.(?:size|stride)\(\)\[\d+\]) (?:<=|<|!=) (?P<bound>\d+)")
_DIVIDED = re.compile(r"(?P<size>L\[[^\s%]*\.(?:size|stride)\(\)\[\d+\]) ?% ?(?P<divisor>\d+)")
_MISMATCH = re.compile(
    r" size mismatch at index (?P<index>\d+)\. expected (?P<expected>\d+), actual (?P<actual>\d+)"
)
_STATIC_INTEGER = "integer attributes of the nn.Module"
"""What torch writes behind a guard on an integer that it never opens."""


def why_strict(
    guard: Guard, facts: Facts, *, failed: Collection[str], rest_at: int | None = None
) -> str | None:
    """What a guard ties down and what to do about it; `None` for a guard that the code needs, or that nobody can act on.

    Guards on the state of torch's own modules, on parameters, on library functions and on what the rest behind a break is
    handed count only when they failed.

    Args:
        guard: the guard.
        facts: what is known of the values of its compilation.
        failed: in torch's words what of it calls in this log failed; empty where all passed.
        rest_at: of the rest behind a break, the break's line.
    """
    if _INSIDE_MODULES.search(guard.source):
        return None
    if rest_at is not None and _is_handed_over(guard):
        return _handed_over(guard, rest_at) if failed else None
    if not failed and _is_given(guard, facts):
        return None
    if guard.type == "TENSOR_MATCH":
        return _tensor(guard, failed)
    rule = _RULES.get(guard.type)
    return None if rule is None else rule(guard, bool(failed))


def _is_handed_over(guard: Guard) -> bool:
    """Whether it is on a size, a number or an object that code before the break may have made, rather than the caller."""
    if _HANDED_OVER.match(guard.source):
        return True
    sides = equation(guard.text) if guard.type == "EQUALS_MATCH" else None
    is_number = sides is not None and isinstance(literal(sides[1]), (int, float))
    return _LOCAL.match(guard.source) is not None and (
        is_number or guard.type in {"TENSOR_MATCH", "ID_MATCH"}
    )


def _handed_over(guard: Guard, line: int) -> str:
    check, sides = tensor_check(guard), equation(guard.text)
    name = in_words(guard.source)
    if check is not None:
        sizes = [check.parts.get(f"{check.name}.size()[{index}]", "any") for index in range(check.rank)]
        text = f"{name} of size ({', '.join(sizes)}), {check.parts[f'{check.name}.dtype']}"
    elif sides is not None:
        text = f"{sides[1]} as {name}"
    else:
        text = f"{name} as it was"
    return (
        f"The rest behind the break in line {line} holds only for {text}: code before the break hands it over, and another "
        "one compiles the rest anew. Take the break away, and there is no rest to compile."
    )


def _is_given(guard: Guard, facts: Facts) -> bool:
    """Whether it is on what a program hardly changes: a library's object, a parameter, what a module's code refers to."""
    source = guard.source.removesuffix(".__code__")
    owner = facts.get(f"type({source.rpartition('.')[0]})") or ""
    return (
        owner.startswith("<class 'torch.") or source.startswith("G") or _INTERNAL.search(source) is not None
    )


def _equals(guard: Guard, failed: bool) -> str | None:
    sides = equation(guard.text)
    if sides is None:
        return None
    subject, value = in_words(sides[0]), literal(sides[1])
    if kind_of(sides[0]) == "keys":
        return f"Holds only while {subject} is {sides[1]}: other keys compile anew. Give dicts of one set of keys, in one order."
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number(subject, sides[1], static=_STATIC_INTEGER in guard.comment)
    if isinstance(value, str) and not isinstance(value, Opaque):
        return (
            f"Holds only for the text {sides[1]} as {subject}: every other text compiles anew. Keep such texts fewer than the "
            "recompile limit, or choose outside the compiled function."
        )
    # A dtype, a device, a flag: the code is made for it.
    return f"Holds only for {sides[1]} as {subject}: another value compiles anew." if failed else None


def _number(subject: str, value: str, *, static: bool) -> str:
    if static:
        return (
            f"Holds only for the integer {value} in {subject}: torch never opens integers of modules, so that every other "
            "value compiles anew. Keep it in a tensor, or set torch._dynamo.config.allow_unspec_int_on_nn_module = True."
        )
    return (
        f"Holds only for the number {value} as {subject}: a second value compiles once more, then torch keeps it open where it "
        "can. Pass it as a tensor to spare that compilation."
    )


def _length(guard: Guard, _failed: bool) -> str | None:
    sides = equation(guard.text)
    if sides is None or not sides[0].startswith("len("):
        return None
    return (
        f"Holds only while the {in_words(sides[0])} is {sides[1]}: the loop over it was unrolled, and another length compiles "
        "anew. Stack the items into one tensor, or pad to a few lengths."
    )


def _tensor(guard: Guard, failed: Collection[str]) -> str | None:
    check = tensor_check(guard)
    if check is None or check.kind == "Parameter" or _HELD_BY_MODULE.search(check.name):
        return None  # sizes of parameters and buffers are the model's
    fixed = [
        (index, check.parts[size])
        for index in range(check.rank)
        if (size := f"{check.name}.size()[{index}]") in check.parts
    ]
    if not fixed:
        return _bound_strides(check.name, check.parts, check.rank) if failed else None
    changed = [(index, size) for index, size in fixed if _failed_at(index, failed)]
    if failed and not changed:
        return _bound_properties(check.name, check.parts, failed)
    name = in_words(check.name)
    sizes = ", ".join(f"{size} in dimension {index}" for index, size in changed or fixed)
    which = ", ".join(str(index) for index, _ in changed) or "DIM"
    if len(changed) > 1:
        which = f"[{which}]"
    again = "another size compiles once more, then torch keeps that dimension open"
    mark = f"torch._dynamo.mark_dynamic({name}, {which}) before the first call"
    if not changed:
        return f"Holds only for {name} of size {sizes}: {again}. Where a dimension DIM varies, {mark} spares that compilation."
    if all(_met_zero_or_one(index, failed) for index, _ in changed):
        return f"Holds only for {name} of size {sizes}: torch makes graphs of their own for sizes 0 and 1."
    return f"Holds only for {name} of size {sizes}: {again}. It varies: {mark} spares that compilation."


def _failed_at(index: int, failed: Collection[str]) -> bool:
    return any(f" size mismatch at index {index}." in f"{text}." for text in failed)


def _met_zero_or_one(index: int, failed: Collection[str]) -> bool:
    """Whether a dimension was only ever 0 or 1 on one side of a failure: no mark spares that compilation."""
    sizes = [match for text in failed if (match := _MISMATCH.search(text)) and int(match["index"]) == index]
    return all({match["expected"], match["actual"]} & {"0", "1"} for match in sizes)


def _bound_properties(name: str, parts: Mapping[str, str], failed: Collection[str]) -> str:
    """Of a tensor whose sizes all fitted: what did not."""
    differing = [
        part for part in ("dtype", "device", "requires_grad") if any(part in text for text in failed)
    ]
    held = " and ".join(f"{part} {parts[f'{name}.{part}']}" for part in differing) or "one type and layout"
    return (
        f"Holds only for {in_words(name)} with {held}: another compiles anew. Keep it the same in all calls."
    )


def _bound_strides(name: str, parts: Mapping[str, str], rank: int) -> str:
    strides = [parts.get(f"{name}.stride()[{index}]", "any") for index in range(rank)]
    return (
        f"Holds only for {in_words(name)} with strides ({', '.join(strides)}), {parts[f'{name}.dtype']} and "
        f"requires_grad={parts[f'{name}.requires_grad']}. Call .contiguous(), and keep dtype and requires_grad the same."
    )


def _identity(guard: Guard, _failed: bool) -> str | None:
    name = in_words(guard.source.removesuffix(".__code__"))
    return (
        f"Holds only for this one object as {name}: another one, even an equal one, compiles anew. Pass the same object each "
        "time, or decide outside the compiled function."
    )


def _type(guard: Guard, failed: bool) -> str | None:
    return (
        f"Holds only for values of type {guard.value_type} as {in_words(guard.source)}." if failed else None
    )


def _flag(guard: Guard, failed: bool) -> str | None:
    if not failed:
        return None
    name = in_words(guard.source)
    if kind_of(guard.source) == "training":
        return f"{name} changed, as the flag of every module does: training and evaluation are two graphs, each compiled once."
    return f"Holds only for one value of {name}: each value of a flag is its own graph."


def _none(guard: Guard, failed: bool) -> str | None:
    if not failed:
        return None
    return f"Holds only while {in_words(guard.source)} is None: with a value the code is another. Pass it always, or never."


def _state(_guard: Guard, failed: bool) -> str | None:
    if not failed:
        return None
    return (
        "Holds only under one global state (gradient mode, autocast, default dtype, number of threads, determinism): set it in "
        "one place around all calls."
    )


def _condition(guard: Guard, _failed: bool) -> str | None:
    """An open size that a condition of the program bounds."""
    if (match := _BOUND.search(guard.text)) is not None:
        return (
            f"Ties {in_words(match['size'])} to one side of {match['bound']}: a condition of the program on this size, so that "
            "the other side compiles anew. Take the condition out of the compiled function, or pad to one side."
        )
    if (match := _DIVIDED.search(guard.text)) is not None:
        return f"Ties {in_words(match['size'])} to multiples of {match['divisor']}: pad to them."
    return None


_RULES: Mapping[str, Callable[[Guard, bool], str | None]] = {
    "EQUALS_MATCH": _equals,
    "LENGTH_CHECK": _length,
    "DICT_LENGTH": _length,
    "ID_MATCH": _identity,
    "TYPE_MATCH": _type,
    "TRUE_MATCH": _flag,
    "FALSE_MATCH": _flag,
    "NONE_MATCH": _none,
    "GLOBAL_STATE": _state,
    "LAMBDA_GUARD": _condition,
}
