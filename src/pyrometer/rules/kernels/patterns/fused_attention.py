"""Attention that is written out, as one call of the fused operator with its scale, its mask and its dropout.

The text is read backwards, from the product with the values to the product with the keys. Whatever stands between and is not
understood ends it: then there is no rewrite.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import NamedTuple

from pyrometer.rules.kernels.patterns.attention_parts import (
    UnclearError,
    assigned,
    is_dropout,
    is_infinite,
    is_plain_product,
    negated,
    operands,
    swaps_last,
)
from pyrometer.rules.kernels.patterns.attention_pattern import TRANSPOSES, Attention
from pyrometer.rules.kernels.patterns.better import bracketed
from pyrometer.rules.rule import Module
from pyrometer.source.edit import Edit, delete_statement, replace
from pyrometer.source.index import last_name
from pyrometer.source.mutation import assigned_in, changed_in_place, names_in
from pyrometer.source.numbers import is_number
from pyrometer.source.rewriting import spelled

FUSED = "torch.nn.functional.scaled_dot_product_attention"
CASTS = frozenset(["to", "type_as", "float", "half", "bfloat16", "contiguous"])
"""Methods that change at most the type in which a softmax is computed, which the fused operator chooses by itself."""

DROPOUTS = frozenset(["torch.nn.functional.dropout", "torch.dropout"])
LEAST = -1e4
"""A number that is added to hide a score is at most this."""


DTYPE = "<dtype of the queries>"


class Mask(NamedTuple):
    """What hides scores."""

    text: str
    is_boolean: bool
    """True means: take part; else it is added."""
    condition: str | None
    """Under which it applies."""


@dataclasses.dataclass
class Parts:
    """What was read so far, from the back."""

    scales: list[str] = dataclasses.field(default_factory=list)
    masks: list[Mask] = dataclasses.field(default_factory=list)
    dropout: str | None = None
    chain: list[ast.stmt] = dataclasses.field(default_factory=list)
    """Statements that go."""
    condition: str | None = None
    """Under which what is being read applies."""


def fused(module: Module, attention: Attention) -> list[Edit]:
    """Edits that write the attention as one call; none where not all of it is understood, or torch has no name in the file."""
    name = spelled(module, FUSED)
    try:
        call = None if name is None else _Reader(module, attention).read(name)
    except UnclearError:
        return []
    return call or []


class _Reader:
    def __init__(self, module: Module, attention: Attention) -> None:
        self.module = module
        self.attention = attention
        self.last = module.statement_of(attention.product)
        self.block = _block(module, self.last)
        self.parts = Parts()
        self.place = self.block.index(self.last)
        """Of the statement that is being read, in its block."""
        self.read_at: dict[str, int] = {}
        """Each name that the call will use, with the first statement that reads it now."""

    def read(self, name: str) -> list[Edit]:
        weights, values = operands(self.attention.product)
        softmax = self._softmax(weights, self.block.index(self.last))
        node, place = softmax
        query, key = self._scores(node, place)
        dtype = f"{bracketed(self.module, query)}.dtype"
        self.parts.masks = [mask._replace(text=mask.text.replace(DTYPE, dtype)) for mask in self.parts.masks]
        texts = [*map(self.module.source, (query,)), key, self.module.source(values)]
        call = f"{name}({', '.join([*texts, *self._options(query)])})"
        self._require_unchanged(call)
        edits = [replace(self.module, self.attention.product, call)]
        return [*(delete_statement(self.module, statement) for statement in self.parts.chain), *edits]

    def _softmax(self, node: ast.expr, place: int) -> tuple[ast.expr, int]:
        """Back to the softmax, through dropout and casts; what it is of, and from which statement on."""
        self.place = place
        if node is self.attention.softmax:
            return self._softmax_input(), place
        if isinstance(node, ast.Name):
            value, place = self._definition(node.id, place)
            if value is None:
                raise UnclearError
            return self._softmax(value, place)
        if not isinstance(node, ast.Call):
            raise UnclearError
        if self._is_cast(node):
            return self._softmax(node.func.value, place)  # type: ignore[attr-defined] # a cast is a method
        return self._softmax(self._dropped(node), place)

    def _softmax_input(self) -> ast.expr:
        call, module = self.attention.softmax, self.module
        is_function = module.name_of(call.func) is not None
        given = list(call.args) if is_function else [call.func.value, *call.args]  # type: ignore[attr-defined]
        dim = module.keyword(call, "dim") or (given[1] if len(given) > 1 else None)
        if not given or dim is None or module.literal(dim) != -1:
            raise UnclearError
        if any(keyword.arg not in {"dim", "dtype"} for keyword in call.keywords) or len(given) > 2:
            raise UnclearError
        if isinstance(given[0], ast.Name) and given[0].id == "self":
            raise UnclearError
        return given[0]

    def _dropped(self, call: ast.Call) -> ast.expr:
        """What a dropout works on, with its probability kept."""
        module = self.module
        if self.parts.dropout is not None or not call.args:
            raise UnclearError
        self._use(call)
        if module.name_of(call.func) in DROPOUTS:
            names = ("input", "p", "training", "inplace")
            given = dict(zip(names, call.args, strict=False)) | {
                keyword.arg: keyword.value for keyword in call.keywords if keyword.arg
            }
            p = module.source(given["p"]) if "p" in given else "0.5"
            training = given.get("training")
            always = training is None or module.literal(training) is True
            self.parts.dropout = p if always else f"{p} if {module.source(training)} else 0.0"  # type: ignore[arg-type]
        elif len(call.args) == 1 and is_dropout(module, call.func):
            layer = module.source(call.func)
            self.parts.dropout = f"{layer}.p if {layer}.training else 0.0"
        else:
            raise UnclearError
        return call.args[0]

    def _scores(self, node: ast.expr, place: int) -> tuple[ast.expr, str]:
        """Back to the product of queries and keys, through scales, masks and casts."""
        self.place = place
        product = operands(node) if is_plain_product(node) else None
        if product is not None:
            self._use(*product)
            return product[0], self._key(node, product[1])
        if isinstance(node, ast.Name):
            value, place = self._definition(node.id, place)
            if value is None:
                return self._scores(ast.Name(node.id, ast.Load()), place)
            return self._scores(value, place)
        if isinstance(node, ast.BinOp):
            return self._scores(self._arithmetic(node.left, node.op, node.right), place)
        if isinstance(node, ast.Call):
            return self._scores(self._called(node), place)
        raise UnclearError

    def _arithmetic(self, left: ast.expr, op: ast.operator, right: ast.expr) -> ast.expr:
        """The side that the scores are on; the other is a scale or a mask to add."""
        module = self.module
        if isinstance(op, ast.Mult) and is_number(module, left):
            left, right = right, left
        if isinstance(op, (ast.Mult, ast.Div)) and is_number(module, right):
            if self.parts.condition is not None:
                raise UnclearError
            text = bracketed(module, right) if not isinstance(right, ast.Constant) else module.source(right)
            self._use(right)
            self.parts.scales.insert(0, text if isinstance(op, ast.Mult) else f"1 / {text}")
            return left
        if isinstance(op, ast.Add) and module.value_of(right).is_tensor and not is_number(module, right):
            self._mask(module.source(right), is_boolean=False)
            return left
        raise UnclearError

    def _called(self, call: ast.Call) -> ast.expr:
        """What a call that masks or casts works on."""
        module, name = self.module, last_name(call.func)
        if self._is_cast(call):
            return call.func.value  # type: ignore[attr-defined,no-any-return] # a cast is a method
        is_function = (module.name_of(call.func) or "").startswith("torch.")
        given = (
            list(call.args)
            if is_function
            else [call.func.value, *call.args]
            if isinstance(call.func, ast.Attribute)
            else []
        )
        if call.keywords or len(given) != 3:
            raise UnclearError
        if name in {"masked_fill", "masked_fill_"}:
            scores, mask, fill = given
            hidden = bracketed(module, mask)
            self._hide(fill, keep=negated(module, mask), hidden=hidden)
            return scores
        if name == "where":
            mask, scores, fill = given if is_function else (given[1], given[0], given[2])
            self._hide(fill, keep=module.source(mask), hidden=negated(module, mask))
            return scores
        raise UnclearError

    def _hide(self, fill: ast.expr, *, keep: str, hidden: str) -> None:
        """A boolean mask for minus infinity; a finite number is added, so that rows which are all masked stay what they are."""
        text = self.module.source(fill)
        if is_infinite(self.module, fill):
            self._mask(keep, is_boolean=True)
        elif self._is_low(fill):
            where = spelled(self.module, "torch.where")
            if where is None:
                raise UnclearError
            self._mask(f"{where}({hidden}, {text}, 0.0).to({DTYPE})", is_boolean=False)
        else:
            raise UnclearError

    def _is_low(self, fill: ast.expr) -> bool:
        number = self.module.literal(fill)
        if isinstance(number, (int, float)):
            return number <= LEAST
        return (
            isinstance(fill, ast.Attribute)
            and fill.attr == "min"
            and isinstance(fill.value, ast.Call)
            and self.module.name_of(fill.value.func) == "torch.finfo"
        )

    def _mask(self, text: str, *, is_boolean: bool) -> None:
        if self.parts.scales:
            raise UnclearError  # the scale is applied to what the mask has made of the scores
        self._use(ast.parse(text.replace(DTYPE, "None")))
        self.parts.masks.insert(0, Mask(text, is_boolean, self.parts.condition))

    def _use(self, *nodes: ast.AST) -> None:
        for name in names_in(*nodes):
            self.read_at[name] = min(self.place, self.read_at.get(name, self.place))

    def _is_cast(self, call: ast.Call) -> bool:
        return (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in CASTS
            and self.module.name_of(call.func) is None
            and len(call.args) + len(call.keywords) <= 1
            and not any("device" in ast.dump(part) for part in [*call.args, *call.keywords])
        )

    def _definition(self, name: str, place: int) -> tuple[ast.expr | None, int]:
        """The value that a name has before a statement of the block; None for itself, after a change under a condition."""
        for number in range(place - 1, -1, -1):
            statement = self.block[number]
            if name not in assigned_in(statement) | changed_in_place(statement):
                continue
            if isinstance(statement, ast.If) and not statement.orelse and len(statement.body) == 1:
                return self._under_condition(statement, name, number)
            value = assigned(statement, name)
            if value is None:
                raise UnclearError
            self.parts.chain.append(statement)
            return value, number
        raise UnclearError

    def _under_condition(self, branch: ast.If, name: str, number: int) -> tuple[None, int]:
        """A mask that `if mask is not None:` applies: an argument that is None otherwise."""
        value = assigned(branch.body[0], name)
        if value is None or self.parts.condition is not None:
            raise UnclearError
        self.parts.condition = self.module.source(branch.test)
        self.place = number
        self._use(branch.test)
        rest = self._one_mask(value)
        self.parts.condition = None
        if not (isinstance(rest, ast.Name) and rest.id == name):
            raise UnclearError
        self.parts.chain.append(branch)
        return None, number

    def _one_mask(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.BinOp):
            return self._arithmetic(value.left, value.op, value.right)
        if isinstance(value, ast.Call) and not self._is_cast(value):
            return self._called(value)
        raise UnclearError

    def _key(self, product: ast.expr, operand: ast.expr) -> str:
        module = self.module
        if last_name(getattr(product, "func", product)) == "einsum":
            return module.source(operand)
        if isinstance(operand, ast.Attribute) and operand.attr == "mT":
            return module.source(operand.value)
        if (
            isinstance(operand, ast.Call)
            and isinstance(operand.func, ast.Attribute)
            and operand.func.attr in TRANSPOSES
            and swaps_last(module, operand)
        ):
            return module.source(operand.func.value)
        return f"{bracketed(module, operand)}.transpose(-2, -1)"

    def _options(self, query: ast.expr) -> list[str]:
        options = []
        if self.parts.masks:
            options.append(f"attn_mask={_joined(self.parts.masks)}")
        if self.parts.dropout is not None:
            options.append(f"dropout_p={self.parts.dropout}")
        scale = " * ".join(self.parts.scales) or "1.0"
        source = self.module.source(query)
        roots = {f"1 / math.sqrt({source}.{size})" for size in ("shape[-1]", "size(-1)")}
        if scale not in roots:
            options.append(f"scale={scale}")
        return options

    def _require_unchanged(self, call: str) -> None:
        """Refuse where a name of the call changes on the way, or what goes is read elsewhere."""
        chain = self.parts.chain
        gone = {name for statement in chain for name in assigned_in(statement)}
        used = names_in(ast.parse(call))
        if used & gone:
            raise UnclearError
        if chain:
            first = min(self.block.index(statement) for statement in chain)
            between = self.block[first : self.block.index(self.last)]
            changing = [statement for statement in between if statement not in chain]
            for node in changing:
                other = used & (assigned_in(node) | changed_in_place(node))
                if any(self.read_at.get(name, first) < self.block.index(node) for name in other):
                    raise UnclearError
            if any(gone & names_in(node) for node in changing):
                raise UnclearError
            self._require_unread(gone, first)
        inside = {id(part) for part in ast.walk(self.attention.product)}
        if any(
            part.id in gone
            for part in ast.walk(self.last)
            if isinstance(part, ast.Name) and _reads(part, inside)
        ):
            raise UnclearError

    def _require_unread(self, gone: set[str], first: int) -> None:
        """After its last statement nothing may read a name that went, unless that statement gives it anew."""
        function = self.module.function_of(self.last)
        anew = assigned_in(self.last)
        begin, end = self.block[first].lineno, self.last.end_lineno or self.last.lineno
        repeated = bool(self.module.loops_around(self.last))
        for node in ast.walk(function) if function is not None else ():
            if not (isinstance(node, ast.Name) and node.id in gone and isinstance(node.ctx, ast.Load)):
                continue
            if (node.lineno > end and node.id not in anew) or (node.lineno < begin and repeated):
                raise UnclearError


def _joined(masks: list[Mask]) -> str:
    """All masks as one argument; at most one of several may apply under a condition."""
    always = [mask.text for mask in masks if mask.condition is None]
    at_times = [mask for mask in masks if mask.condition is not None]
    if len(at_times) > 1 or (len(masks) > 1 and not all(mask.is_boolean for mask in masks)):
        raise UnclearError
    base = always[0] if len(always) == 1 else " & ".join(f"({text})" for text in always)
    if not at_times:
        return base
    mask = at_times[0]
    both = f"({base}) & ({mask.text})" if base else mask.text
    return f"{both} if {mask.condition} else {base or None}"


def _reads(part: ast.Name, inside: set[int]) -> bool:
    return isinstance(part.ctx, ast.Load) and id(part) not in inside


def _block(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    above = module.parent(statement)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(above, field, None)
        if isinstance(block, list) and statement in block:
            return block
    raise UnclearError
