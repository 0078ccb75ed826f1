"""What parameters without annotations are: told by what kind of function it is, and by how it uses them."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from pyrometer.source.attributes import is_static
from pyrometer.source.index import FunctionNode, walk
from pyrometer.source.torch_calls import NUMERIC_HOMES, OPERATION_HOMES
from pyrometer.source.torch_names import METHODS, OPERATIONS, REDUCING, SEQUENCES, TAKING_LISTS
from pyrometer.source.value import BATCH, HOST, TENSOR, Kind, Value
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.source.module import Module

LAYERS = frozenset({"forward"})
TAKING_BATCHES = words("training_step validation_step test_step predict_step")

TENSOR_ATTRIBUTES = words("shape device dtype ndim T mT requires_grad is_cuda data")
TENSOR_METHODS = (
    METHODS | REDUCING | SEQUENCES | words("size dim numel stride item tolist unbind unique")
) - words("copy index split repeat set fill add sort range mode to cuda cpu")
"""Methods that a parameter of `forward` has because it is a tensor: no list, dict, text or settings have them."""

TAKING_SIZES = words("view reshape expand repeat unflatten new_zeros new_ones new_empty new_full chunk")
"""Methods of tensors that take sizes."""

NEUTRAL_METHODS = words("to cuda cpu repeat split sort add")
"""Methods of tensors and of other objects as well."""

LISTED = re.compile(
    r"(^|_)(features|feats|fmaps|maps|residuals|skips|inputs|images|imgs|outputs|outs|xs|ys|levels|pyramid|tensors|lists?|samples|targets|graphs?|"
    r"batch|boxes|proposals|instances|items|hiddens|states|layers|views|crops|scales|shapes|sizes|dims|names|kwargs|args)$",
    re.IGNORECASE,
)
"""What lists of tensors are called as often as tensors: iterating over one of these says nothing."""

PLURAL = re.compile(r"(?<!s|u|i|a)s$(?<!tokens)")
"""A list as often as a tensor, unless another use tells: `hs`, `parts`."""

ENOUGH = 2
DEEPEST_CALLS = 2


def implied(module: Module, function: FunctionNode) -> dict[ast.arg, Value]:
    """What the parameters of a module's `forward`, or of a step of Lightning, are by their uses; others are left out."""
    owner = module.classes.class_of_method(function)
    if owner is None or not module.classes.is_module(owner):
        return {}
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs][1:]
    if function.name in TAKING_BATCHES:
        return taken_by_step(arguments)
    if function.name not in LAYERS:
        return {}
    return {
        argument: TENSOR
        for number, argument in enumerate(arguments)
        if likelihood(module, function, argument.arg, 1 if number == 0 else 0) >= ENOUGH
    }


def taken_by_step(arguments: list[ast.arg]) -> dict[ast.arg, Value]:
    """`training_step(self, batch, batch_idx)`."""
    kinds = [Value(Kind.TENSORS, of=BATCH), HOST]
    return dict(zip(arguments, kinds, strict=False))


def likelihood(module: Module, function: FunctionNode, name: str, prior: int, depth: int = 0) -> int:
    """How much speaks for a parameter being a tensor; negative where a use says that it is something else."""
    score = prior
    until = first_rebound(function, name)
    for use in names_within(function).get(name, ()):
        if not isinstance(use.ctx, ast.Load):
            continue
        if until is not None and use.lineno > until:
            continue
        said = said_by(module, use, depth)
        if said is None:
            return -1
        score += said
    return score


def first_rebound(function: FunctionNode, name: str) -> int | None:
    """The line in which a parameter first becomes something else."""
    lines = [node.lineno for node in names_within(function).get(name, ()) if isinstance(node.ctx, ast.Store)]
    return min(lines, default=None)


@lru_cache(maxsize=8)
def names_within(function: FunctionNode) -> dict[str, list[ast.Name]]:
    """The places of each name in a function; its parameters are asked for one after the other."""
    places: dict[str, list[ast.Name]] = {}
    for node in walk(function):
        if node.__class__ is ast.Name:
            places.setdefault(node.id, []).append(node)
    return places


def said_by(module: Module, use: ast.Name, depth: int) -> int | None:
    """What one use says: 2 for a tensor, 1 for perhaps, 0 for nothing, None against it."""
    above = module.parent(use)
    said: int | None = 0
    if isinstance(above, ast.Attribute):
        said = said_by_attribute(module, above)
    elif isinstance(above, ast.Subscript):
        said = said_by_index(above) if above.value is use else 0
    elif isinstance(above, ast.BinOp):
        said = said_by_arithmetic(above)
    elif isinstance(above, ast.Call):
        said = said_by_call(module, above, use, depth)
    elif isinstance(above, ast.Compare):
        said = said_by_comparison(module, above)
    elif isinstance(above, ast.For | ast.comprehension) and above.iter is use:
        said = said_by_rounds(module, above, use, above.target)
    elif is_asked(above, use):
        said = None
    return said


def said_by_arithmetic(operation: ast.BinOp) -> int | None:
    """`a @ b` is of tensors; `h % 2` and `h * w` mostly are of sizes."""
    if isinstance(operation.op, ast.MatMult):
        return 2
    return (
        None
        if isinstance(operation.op, ast.Mod | ast.FloorDiv)
        else 0
        if is_product_of_names(operation)
        else 1
    )


def is_product_of_names(operation: ast.BinOp) -> bool:
    """Whether two names are multiplied, as height and width are."""
    sides = (operation.left, operation.right)
    return isinstance(operation.op, ast.Mult) and all(isinstance(side, ast.Name) for side in sides)


def is_asked(above: ast.AST | None, use: ast.Name) -> bool:
    """Whether a parameter is asked for its truth, or taken apart into arguments: a flag, a list."""
    tests = isinstance(above, ast.If | ast.While | ast.IfExp | ast.Assert) and above.test is use
    negated = isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)
    return tests or negated or isinstance(above, ast.BoolOp | ast.Starred)


def said_by_attribute(module: Module, access: ast.Attribute) -> int | None:
    """`x.shape` and `x.mean(1)` of a tensor; `cfg.width` and `batch.items()` are of something else."""
    above = module.parent(access)
    if isinstance(above, ast.Call) and above.func is access:
        if access.attr in NEUTRAL_METHODS:
            return 0
        known = access.attr in TENSOR_METHODS or access.attr.removesuffix("_") in TENSOR_METHODS
        return 2 if known else None
    return 2 if access.attr in TENSOR_ATTRIBUTES else None


def said_by_index(access: ast.Subscript) -> int | None:
    """`x[:, 0]` of a tensor, `batch["image"]` of a dict."""
    index = access.slice
    if isinstance(index, ast.Constant) and isinstance(index.value, str):
        return None
    if isinstance(index, ast.Constant) and (index.value is None or index.value is ...):
        return 2
    return 2 if isinstance(index, ast.Tuple | ast.Compare) else 0


def said_by_call(module: Module, call: ast.Call, use: ast.Name, depth: int) -> int | None:
    """`torch.relu(x)`, `isinstance(x, list)`, `range(n)`, `self.mix(x)`, or a function of this file that uses it."""
    name = module.name_of(call.func)
    if name is not None:
        return said_by_named(module, call, name, use)
    if isinstance(call.func, ast.Attribute) and call.func.attr in TAKING_SIZES:
        return None
    if use not in call.args or depth >= DEEPEST_CALLS:
        return 0
    function = module.classes.function_meant(call.func) if is_plainly_meant(module, call.func) else None
    if function is None:
        return 0
    arguments = [*function.args.posonlyargs, *function.args.args]
    position = call.args.index(use) + (isinstance(call.func, ast.Attribute) and not is_static(function))
    if position >= len(arguments) or arguments[position].annotation is not None:
        return 0
    return max(0, likelihood(module, function, arguments[position].arg, 0, depth + 1))


def is_plainly_meant(module: Module, function: ast.expr) -> bool:
    """Whether the function behind an expression is known without asking for values."""
    return isinstance(function, ast.Name) or (
        isinstance(function, ast.Attribute) and module.classes.is_self(function.value) is not None
    )


def said_by_named(module: Module, call: ast.Call, name: str, use: ast.Name) -> int | None:
    """What it says to be given to a function that is imported, or a builtin."""
    home, _, last = name.rpartition(".")
    if name == "isinstance":
        classes = (
            {part.id for part in ast.walk(call.args[1]) if isinstance(part, ast.Name)}
            if len(call.args) > 1
            else set()
        )
        return None if classes & {"list", "tuple", "dict", "str", "int", "float", "bool"} else 0
    if name in ("zip", "enumerate") and use in call.args:
        loop, position = module.parent(call), call.args.index(use) + (name == "enumerate")
        targets = loop.target if isinstance(loop, ast.For | ast.comprehension) else None
        if isinstance(loop, ast.For | ast.comprehension) and isinstance(targets, ast.Tuple):
            return said_by_rounds(module, loop, use, targets.elts[min(position, len(targets.elts) - 1)])
    if name in ("range", "int", "str", "float", "bool", "getattr", "hasattr", "open"):
        return None
    if home in OPERATION_HOMES or home in NUMERIC_HOMES:
        if last in TAKING_LISTS:
            return None if call.args and call.args[0] is use else 0
        return 2 if last in OPERATIONS and call.args and call.args[0] is use else 1
    return 0


def said_by_comparison(module: Module, comparison: ast.Compare) -> int | None:
    """`x is None` says nothing; `mode == "train"` and `key in names` speak against a tensor."""
    if any(isinstance(operator, ast.In | ast.NotIn) for operator in comparison.ops):
        return None
    sides = [comparison.left, *comparison.comparators]
    if any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides):
        return None
    return 2 if is_mask(module, comparison) else 0


def is_mask(module: Module, made: ast.expr) -> bool:
    """Whether the outcome of a comparison selects elements, or has methods of tensors, by itself or under a name."""
    above = module.parent(made)
    if isinstance(above, ast.Subscript):
        return above.slice is made
    if isinstance(above, ast.Attribute):
        return said_by_attribute(module, above) == ENOUGH
    if isinstance(above, ast.BinOp) or (isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Invert)):
        return is_mask(module, above)
    if isinstance(made, ast.Name) or not isinstance(above, ast.Assign):
        return False
    name = above.targets[0]
    return isinstance(name, ast.Name) and any(
        is_mask(module, use) for use in module.uses(name.id, name) if use.lineno > above.lineno
    )


def said_by_rounds(
    module: Module, loop: ast.For | ast.comprehension, use: ast.Name, target: ast.expr
) -> int | None:
    """What is done with the elements of something that is called like one tensor."""
    if not isinstance(target, ast.Name) or LISTED.search(use.id) or PLURAL.search(use.id):
        return 0
    around = loop if isinstance(loop, ast.For) else module.parent(loop)
    if around is None:
        return 0
    uses = (
        module.parent(node)
        for node in ast.walk(around)
        if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
    )
    said = [said_by_attribute(module, above) for above in uses if isinstance(above, ast.Attribute)]
    if any(score is None for score in said):
        return None
    return 2 if any(said) else 0
