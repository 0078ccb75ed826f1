"""What the guards of a compilation tell of the values that it was compiled for.

Every guard held for those values. So `L['b'] == 5` says that `b` was 5, a tensor's check says its sizes, and a symbolic size has
the value that it had at that call. What no guard speaks of is unknown.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pyrometer.compiler.recompiles.tree import Guard

_TENSOR = re.compile(
    r"check_tensor\((?P<name>.+), (?P<cls>[\w.]+), DispatchKeySet\((?P<_dispatch_keys>[^)]*)\), (?P<dtype>torch\.\w+), "
    r"device=(?P<device>[^,]+), requires_grad=(?P<requires_grad>\w+), "
    r"size=\[(?P<size>[^\]]*)\], stride=\[(?P<stride>[^\]]*)\]\)"
)
_IDENTITY = re.compile(r"___check_(?P<what>obj|type)_id\((?P<source>.+), (?P<id>\d+)\)")
_AGAINST = "___check_global_state() against "
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
_AUTOCAST_DEVICES = ("cpu", "cuda")
GLOBAL = "global."
"""Begins the name of a part of torch's global state."""


DISPATCH_KEYS = "_dispatch_keys"


class Facts:
    """Values by expression, as text; and which tensors are known to be distinct objects."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.distinct: list[frozenset[str]] = []
        self.same: list[tuple[str, str]] = []
        self.open: set[str] = set()
        """Expressions that the compilation holds open: it was made for any value of them."""

    def get(self, expression: str) -> str | None:
        """Text of the value; `None` where nothing tells it."""
        return self.texts.get(expression)


class TensorCheck(NamedTuple):
    """A tensor's check taken apart."""

    name: str
    kind: str
    """Name of its class: `Tensor`, `Parameter`."""
    rank: int
    parts: dict[str, str]
    """By expression, such as `L['x'].size()[0]`; sizes and strides that are open have no entry."""


def facts_of(guards: Iterable[Guard], types: Mapping[str, str], symbols: Mapping[str, str]) -> Facts:
    """Collect what a compilation's guards say.

    Args:
        guards: all of them.
        types: of guarded values, by source.
        symbols: the value at that call of every open size or number, by source.
    """
    facts = Facts()
    equations: list[tuple[str, str]] = []
    for source, text in types.items():
        facts.texts[f"type({source})"] = text
    for guard in guards:
        _learn(facts, equations, guard)
    for source, text in symbols.items():
        if source not in facts.texts:
            facts.texts[source] = text
            facts.open.add(source)
    _solve(facts, equations)
    return facts


def part_of(name: str, part: str) -> str:
    """A part of a tensor as an expression that no attribute of the program's can be taken for.

    >>> part_of("L['x']", "dtype"), part_of("L['x']", DISPATCH_KEYS)
    ("L['x'].dtype", "torch._C._dispatch_keys(L['x'])")
    """
    return f"torch._C.{part}({name})" if part == DISPATCH_KEYS else f"{name}.{part}"


def tensor_check(guard: Guard) -> TensorCheck | None:
    """A tensor's check taken apart; `None` where the text is not one."""
    match = _TENSOR.search(guard.text)
    if match is None:
        return None
    name, rank = match["name"], 0
    parts = {part_of(name, part): match[part] for part in ("dtype", "device", "requires_grad", DISPATCH_KEYS)}
    for part in ("size", "stride"):
        numbers = [number.strip() for number in match[part].split(",") if number.strip()]
        rank = len(numbers) if part == "size" else rank
        parts.update(
            (f"{name}.{part}()[{index}]", number) for index, number in enumerate(numbers) if number != "None"
        )
    parts[f"{name}.dim()"] = str(rank)
    return TensorCheck(name, match["cls"], rank, parts)


def identity(guard: Guard) -> tuple[str, str] | None:
    """What an identity check is on, as `id(source)` or `typeid(source)`, and the number that it wants."""
    match = _IDENTITY.search(guard.text)
    if match is None:
        return None
    return f"{'id' if match['what'] == 'obj' else 'typeid'}({match['source']})", match["id"]


def global_state(guard: Guard) -> dict[str, str]:
    """The parts of torch's global state that a guard was made under; each as JSON text."""
    _, _, text = guard.text.partition(_AGAINST)
    try:
        state = json.loads(text)
    except json.JSONDecodeError:
        return {}
    if not isinstance(state, dict):
        return {}
    return {GLOBAL + name: json.dumps(value) for name, value in _flat(state)}


def unaliased(guard: Guard) -> frozenset[str]:
    """The tensors that a guard wants to be distinct objects."""
    return frozenset(guard.text.removeprefix("check_no_aliasing(").removesuffix(")").split(", "))


def equation(text: str) -> tuple[str, str] | None:
    """Both sides of `expression == value`, addresses blanked; `None` where it is no such condition.

    >>> equation("L['s'].mode == 'a == b'"), equation("2 <= L['x'].size()[0]")
    (("L['s'].mode", "'a == b'"), None)
    """
    left, sign, right = text.partition(" == ")
    if not sign or " and " in left or " or " in left or left.startswith("not "):
        return None
    return left.strip(), _ADDRESS.sub("0x…", right.strip())


def _learn(facts: Facts, equations: list[tuple[str, str]], guard: Guard) -> None:
    if guard.type == "TENSOR_MATCH":
        check = tensor_check(guard)
        facts.texts.update({} if check is None else check.parts)
    elif guard.type == "GLOBAL_STATE":
        facts.texts.update(global_state(guard))
    elif guard.type == "NO_TENSOR_ALIASING":
        facts.distinct.append(unaliased(guard))
    elif (found := identity(guard)) is not None:
        facts.texts[found[0]] = found[1]
    elif (sides := equation(guard.text)) is not None:
        if guard.type == "LAMBDA_GUARD":
            equations.append(sides)
        else:
            facts.texts[sides[0]] = sides[1]
            facts.texts.update(_items(*sides))
    else:
        _learn_statement(facts, guard.text)


def _items(source: str, text: str) -> dict[str, str]:
    """What `L['t'] == (1, 2)` says of the single items."""
    try:
        value = ast.literal_eval(text) if text.startswith("(") else ()
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return {}
    return {f"{source}[{index}]": repr(item) for index, item in enumerate(value)}


def _learn_statement(facts: Facts, text: str) -> None:
    """A condition without comparison: that a key is there or not, that two names are one object."""
    if "___dict_contains(" in text[:20]:
        facts.texts[text.removeprefix("not ")] = str(not text.startswith("not "))
    elif text.endswith(" is None"):
        facts.texts[text.removesuffix(" is None")] = "None"
    elif " is " in text and " not " not in text:
        left, _, right = text.partition(" is ")
        facts.same.append((left, right))


def _solve(facts: Facts, equations: list[tuple[str, str]]) -> None:
    """`L['x'].stride()[0] == L['x'].size()[1]` tells one side where the other is known."""
    for left, right in equations:
        if right.lstrip("-").isdigit():
            facts.texts.setdefault(left, right)
    for left, right in equations:
        if left not in facts.texts and right in facts.texts:
            facts.texts[left] = facts.texts[right]
            facts.open.add(left)


def _flat(state: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in state.items():
        if name != "autocast_state" or not isinstance(value, dict):
            yield name, value
            continue
        for part, inner in value.items():
            if not isinstance(inner, list):
                yield f"autocast_{part}", inner
                continue
            for index, item in enumerate(inner):
                device = _AUTOCAST_DEVICES[index] if index < len(_AUTOCAST_DEVICES) else f"device {index}"
                yield f"autocast({device})_{part}", item
