"""Waits in a layer that another way of writing avoids, told from those that its result needs.

Within a training loop each wait holds up the whole step, and is told. In a layer, waits mostly are there for a reason: a
result of unknown size is returned, an argument is checked, a library takes arrays of the host. There only those are told for
which the text shows what to write instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyrometer.rules.host.patterns.reads import Read
from pyrometer.source.index import last_name
from pyrometer.source.rare import BAD_VALUE
from pyrometer.source.torch_names import OPERATIONS
from pyrometer.source.value import Kind
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.source.module import Hot, Module

REDUCING = words(
    "sum mean any all amax amin max min prod nansum nanmean std var norm count_nonzero logsumexp median"
)
SHAPED = words("numel size shape dim ndim dtype device nelement")
LOSS = re.compile(
    r"(^|_)(loss|losses|criterion|cross_entropy|kl_div)(_|$)|Loss$|^(cross_entropy|kl_div|nll_loss|mse_loss|l1_loss)$"
)
CHECKING = re.compile(r"check|assert|validate|verify|ensure", re.IGNORECASE)
RESHAPING = words(
    "squeeze flatten view reshape unsqueeze long float double half contiguous detach clone to type T t"
)
TO_HOST = words("tolist cpu numpy item")
COMPARING = frozenset({"equal", "allclose", "eq"})
SOUND = BAD_VALUE | {"isfinite"}
FURTHEST = 3
MOST_STATEMENTS = 3
COUNTS = frozenset({"num_batches_tracked"})
"""What layers of torch itself read as a number."""


def in_layer(why: Hot) -> bool:
    """Whether a place is hot because a layer is, or a loop that may be any search, and not by a loop of steps."""
    return why.within in {"layer", "round"}


def evaluates(module: Module, why: Hot) -> bool:
    """Whether a place is in a loop that does not train: evaluation and inference need most of what they ask for."""
    return why.loop is not None and not module.heat.loops.trains(why.loop)


def may_do_without(module: Module, node: ast.expr, depth: int = 0) -> bool:
    """Whether what is selected, or indices of it, is only reduced, counted or written back: a mask of full size does that, too."""
    above = module.parent(node)
    may = False
    if isinstance(above, ast.Attribute):
        may = _may_after_method(module, above, depth)
    elif isinstance(above, ast.Call):
        may = _may_in_call(module, above, depth)
    elif isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Store):
        may = above.slice is node
    elif isinstance(above, ast.Tuple) and _is_index(module, above):
        index = module.parent(above)
        alone = all(part is node or isinstance(part, ast.Slice | ast.Constant) for part in above.elts)
        stores = isinstance(index, ast.Subscript) and isinstance(index.ctx, ast.Store)
        may = alone and (
            stores or (isinstance(index, ast.Subscript) and may_do_without(module, index, depth))
        )
    elif isinstance(above, ast.Subscript | ast.BinOp | ast.UnaryOp):
        may = may_do_without(module, above, depth)
    elif isinstance(above, ast.AugAssign):
        may = above.target is node
    elif isinstance(above, ast.Assign):
        may = _may_when_assigned(module, above, node, depth)
    return may


def is_worked_on(module: Module, node: ast.expr) -> bool:
    """Whether what is selected goes through a network or a function of the program, or to the host: fewer elements are less work."""
    uses = list(uses_of(module, node))
    return any(_is_work(module, use) or decides(module, use) for use in uses)


def _is_work(module: Module, use: ast.expr) -> bool:
    if isinstance(use, ast.Call) and isinstance(use.func, ast.Attribute) and use.func.attr in TO_HOST:
        return True
    above = module.parent(use)
    while isinstance(above, ast.Attribute | ast.Subscript | ast.keyword):
        if isinstance(above, ast.Attribute) and above.attr in TO_HOST:
            return True
        use, above = (use if isinstance(above, ast.keyword) else above), module.parent(above)
    if isinstance(above, ast.For | ast.comprehension):
        return above.iter is use
    if not isinstance(above, ast.Call) or use is above.func:
        return False
    is_own = isinstance(above.func, ast.Name) and module.name_of(above.func) is None
    return (
        is_own or module.classes.function_meant(above.func) is not None or module.flow.is_module_call(above)
    )


def _is_index(module: Module, node: ast.Tuple) -> bool:
    above = module.parent(node)
    return isinstance(above, ast.Subscript) and above.slice is node


def _may_after_method(module: Module, access: ast.Attribute, depth: int) -> bool:
    call = module.parent(access)
    if access.attr in REDUCING:
        return True
    is_call = isinstance(call, ast.Call) and call.func is access
    if access.attr in SHAPED:
        return True
    elementwise = access.attr in RESHAPING or (is_call and access.attr.removesuffix("_") in OPERATIONS)
    if not elementwise:
        return False
    return may_do_without(module, call if is_call and isinstance(call, ast.Call) else access, depth)


def _may_in_call(module: Module, call: ast.Call, depth: int) -> bool:
    name = module.name_of(call.func) or ""
    last = name.rpartition(".")[2] or (
        call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    )
    if name == "len" or (name.startswith("torch.") and last in REDUCING) or LOSS.search(last):
        return True
    if isinstance(call.func, ast.Attribute) and last == "index_select":
        return may_do_without(module, call, depth)
    return (
        name.startswith("torch.")
        and last in OPERATIONS
        and last not in {"cat", "stack"}
        and may_do_without(module, call, depth)
    )


def _may_when_assigned(module: Module, assignment: ast.Assign, node: ast.expr, depth: int) -> bool:
    target = assignment.targets[0]
    if isinstance(target, ast.Subscript):  # x[mask] = f(y[mask])
        selections = (part for part in ast.walk(node) if isinstance(part, ast.Subscript))
        return any(_same(module, target.slice, part.slice) for part in selections)
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    if depth >= FURTHEST or not all(isinstance(name, ast.Name) for name in names):
        return False
    uses = [
        use
        for name in names
        if isinstance(name, ast.Name) and name.id != "_"
        for use in module.uses(name.id, name)
        if use.lineno > assignment.lineno and module.function_of(use) is module.function_of(node)
    ]
    return bool(uses) and all(may_do_without(module, use, depth + 1) for use in uses)


def _same(module: Module, one: ast.expr, other: ast.expr) -> bool:
    return module.source(one) == module.source(other)


def ends_early(module: Module, read: Read) -> bool:
    """Whether a loop is left by what this very round gave: it has converged, or reached its goal."""
    asking = module.statement_of(read.node)
    leaves = isinstance(asking, ast.If) and isinstance(asking.body[-1], ast.Break)
    return leaves and not is_about_soundness(read)


def is_about_soundness(read: Read) -> bool:
    """Whether a question is one whether numbers are finite."""
    return not names_called(read.node).isdisjoint(SOUND)


def names_called(node: ast.expr) -> set[str]:
    """The last names of what an expression calls."""
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in calls}


def is_avoidable_question(module: Module, read: Read) -> bool:
    """Whether a question is one whether numbers are sound, or chooses between values that could both be there."""
    statement = module.statement_of(read.node)
    names = names_called(read.node)
    if isinstance(statement, ast.Assert) or not names.isdisjoint(COMPARING):
        return not names.isdisjoint(SOUND)
    if isinstance(statement, ast.While):
        return False  # Only what it asks says when it is done.
    if not names.isdisjoint(SOUND):
        return not (isinstance(statement, ast.If) and _is_guard(statement.body))
    if isinstance(statement, ast.If):
        branches = [*statement.body, *statement.orelse]
        return len(branches) <= MOST_STATEMENTS and all(_only_chooses(module, branch) for branch in branches)
    choice = next((above for above in module.ancestors(read.node) if isinstance(above, ast.IfExp)), None)
    return choice is not None and all(_is_cheap(module, side) for side in (choice.body, choice.orelse))


def _is_guard(body: Sequence[ast.stmt]) -> bool:
    """Whether a branch only fails, warns or gives up: it was put there to stop at once."""
    return isinstance(body[-1], ast.Return) or _ends_in_failure(body)


def _only_chooses(module: Module, statement: ast.stmt) -> bool:
    """Whether a statement gives a tensor another value by cheap arithmetic, as `torch.where` could."""
    if not isinstance(statement, ast.Assign | ast.AugAssign) or not _is_cheap(module, statement.value):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return all(
        isinstance(target, ast.Subscript) or module.value_of(statement.value).is_tensor for target in targets
    )


def _is_cheap(module: Module, value: ast.expr) -> bool:
    calls = (part for part in ast.walk(value) if isinstance(part, ast.Call))
    return all(
        not module.flow.is_module_call(call)
        and (
            (module.name_of(call.func) or "").startswith("torch.")
            or (isinstance(call.func, ast.Attribute) and module.value_of(call.func.value).is_tensor)
        )
        for call in calls
    )


def only_checks(module: Module, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value serves a check of arguments: a condition under which something is raised, or a function called `check_…`."""
    for above in module.ancestors(node):
        if isinstance(above, ast.Call):
            called = (
                above.func.attr if isinstance(above.func, ast.Attribute) else getattr(above.func, "id", "")
            )
            if CHECKING.search(called):
                return True
        if isinstance(above, ast.Assign) and depth == 0 and isinstance(above.targets[0], ast.Name):
            target = above.targets[0]
            uses = [use for use in module.uses(target.id, target) if use.lineno > above.lineno]
            return bool(uses) and all(only_checks(module, use, 1) for use in uses)
        if isinstance(above, ast.stmt):
            return isinstance(above, ast.Raise) or (
                isinstance(above, ast.If) and _ends_in_failure(above.body)
            )
    return False


def _ends_in_failure(body: Sequence[ast.stmt]) -> bool:
    last = body[-1]
    warns = (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and isinstance(last.value.func, ast.Attribute)
    )
    return isinstance(last, ast.Raise) or (warns and "warn" in ast.unparse(last))


def is_needless_number(module: Module, node: ast.expr, depth: int = 0) -> bool:
    """Whether a number that was read goes back into arithmetic with tensors, or is kept for someone to look at."""
    child: ast.AST = node
    for above in module.ancestors(node):
        if isinstance(above, ast.BinOp):
            if module.value_of(above.left if above.right is child else above.right).is_tensor:
                return True
        elif isinstance(above, ast.Call) and child is not above.func:
            return _takes_a_tensor(module, above) or _is_plain_number(module, above, depth)
        elif isinstance(above, ast.Assign):
            return _is_needless_in(module, above, depth)
        elif isinstance(above, ast.stmt | ast.Dict):
            return isinstance(above, ast.AugAssign | ast.Dict)
        elif not isinstance(above, ast.keyword | ast.UnaryOp | ast.IfExp):
            return False
        child = above
    return False


def _takes_a_tensor(module: Module, call: ast.Call) -> bool:
    """Whether an operation on tensors takes the number where it could take a tensor, or a list or log keeps it."""
    if isinstance(call.func, ast.Attribute):
        if call.func.attr in {"append", "log", "add_scalar", "log_scalar", "record"}:
            return True
        if module.value_of(call.func.value).is_tensor:
            return call.func.attr.removesuffix("_") in NUMBER_OR_TENSOR
    return (module.name_of(call.func) or "").removeprefix("torch.") in NUMBER_OR_TENSOR


def _is_plain_number(module: Module, call: ast.Call, depth: int) -> bool:
    """`float(x.item())`: look at where that goes."""
    return module.name_of(call.func) in {"float", "int", "abs", "round"} and is_needless_number(
        module, call, depth
    )


def _is_needless_in(module: Module, assignment: ast.Assign, depth: int) -> bool:
    target = assignment.targets[0]
    if isinstance(target, ast.Attribute | ast.Subscript):
        return True
    if not isinstance(target, ast.Name) or depth >= FURTHEST:
        return False
    uses = [use for use in module.uses(target.id, target) if use.lineno > assignment.lineno]
    here = [use for use in uses if module.function_of(use) is module.function_of(assignment)]
    if any(decides(module, use) for use in here):
        return False
    return any(is_needless_number(module, use, depth + 1) for use in here)


def decides(module: Module, node: ast.AST, depth: int = 0) -> bool:
    """Whether Python goes one way or another by a value, or makes something as large as it says, so that it has to know it."""
    child = node
    for above in module.ancestors(node):
        if isinstance(above, ast.If | ast.While | ast.IfExp):
            return child is above.test
        if isinstance(above, ast.Slice):
            return True
        if isinstance(above, ast.Call) and child is not above.func:
            called = last_name(above.func) or ""
            if called not in PLAIN:
                return called in SIZED
        elif isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name) and depth < FURTHEST:
            target = above.targets[0]
            here = (
                use
                for use in module.uses(target.id, target)
                if module.function_of(use) is module.function_of(above)
                and (use.lineno > above.lineno or _asks_again(module, use, above))
            )
            return any(decides(module, use, depth + 1) for use in here)
        if isinstance(above, ast.stmt):
            return False
        child = above
    return False


def _asks_again(module: Module, use: ast.AST, assignment: ast.Assign) -> bool:
    """Whether a use stands in the condition of a loop around an assignment: `while sign == wanted: … sign = x.sign().item()`."""
    asking = module.statement_of(use) if isinstance(use, ast.expr) else None
    return isinstance(asking, ast.While) and asking in module.loops_around(assignment)


PLAIN = words("int float min max abs round ceil floor")
"""Functions that give a number for a number."""

SIZED = words(
    "range zeros ones full empty new_zeros new_ones new_full new_empty arange linspace topk narrow view reshape expand repeat split"
    " chunk randperm randint pad interpolate unfold sequence_mask"
)
"""Functions and methods that make a result as large as a number says."""


NUMBER_OR_TENSOR = words(
    "add sub mul div clamp clamp_min clamp_max pow where maximum minimum masked_fill fill lerp roll full_like"
)
"""Operations that take tensors where a number stands."""


def uses_of(module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """Where a value goes: itself with what methods of arrays make of it, or the names that it is given."""
    child, above = node, module.parent(node)
    while isinstance(above, ast.Attribute) or (isinstance(above, ast.Call) and above.func is child):
        child, above = above, module.parent(above)
    if isinstance(above, ast.Assign) and all(isinstance(target, ast.Name) for target in above.targets):
        for target in above.targets:
            assert isinstance(target, ast.Name)
            yield from (
                use
                for use in module.uses(target.id, target)
                if use.lineno > above.lineno and module.function_of(use) is module.function_of(node)
            )
    else:
        yield child


NUMPY_REDUCING = words(
    "numpy.mean numpy.sum numpy.max numpy.min numpy.argmax numpy.abs numpy.std numpy.var numpy.sqrt numpy.any numpy.all"
)
ON_HOST_ANYWAY = words("print len float int sum min max str abs round")
PASSING = words("zip enumerate reversed list tuple")


def is_required(module: Module, read: Read) -> bool:
    """Whether a copy to the host serves something that only works there: a library of arrays, a plot, a loop over elements."""
    return any(_takes_host(module, use) for use in uses_of(module, read.node))


def is_for_library(module: Module, read: Read) -> bool:
    """Whether a function of an imported library that knows no tensors is given the value."""
    calls = (module.parent(use) for use in uses_of(module, read.node))
    names = [module.name_of(call.func) for call in calls if isinstance(call, ast.Call)]
    return any(name is not None and "." in name and not name.startswith("torch.") for name in names)


def _takes_host(module: Module, use: ast.expr) -> bool:
    child: ast.AST = use
    for above in module.ancestors(use):
        if isinstance(above, ast.Call) and child is not above.func:
            if module.name_of(above.func) in PASSING:
                child = above
                continue
            return _wants_arrays(module, above)
        if isinstance(above, ast.keyword):
            child = above
            continue
        if (
            isinstance(above, ast.Subscript)
            and above.slice is not child
            and not isinstance(above.slice, ast.Slice | ast.Constant)
        ):
            return (
                bool(module.loops_around(above))
                and module.loops_around(above) != module.loops_around(module.statement_of(use))[1:]
            )
        if isinstance(above, ast.For | ast.comprehension) and child is above.iter:
            return True
        if isinstance(above, ast.stmt | ast.BinOp | ast.Compare):
            return False
        child = above
    return False


def _wants_arrays(module: Module, call: ast.Call) -> bool:
    """Whether what is called takes arrays or tensors of the host only, as far as its name says."""
    name = module.name_of(call.func)
    if name is None:
        function = module.classes.function_meant(call.func)
        if function is not None:
            return not _stays_with_torch(module, function)
        if module.value_of(call.func).kind is Kind.MODULE:
            return False
        on_tensor = isinstance(call.func, ast.Attribute) and module.value_of(call.func.value).is_tensor
        return not on_tensor
    if name.startswith("torch."):
        return "pack_padded" in name
    return name not in NUMPY_REDUCING and name not in ON_HOST_ANYWAY


def _stays_with_torch(module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function of this file does with tensors of any device what it does."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = module.name_of(node.func) or ""
            if name.partition(".")[0] not in {"torch", "", *ON_HOST_ANYWAY} or name == "torch.from_numpy":
                return False
            if isinstance(node.func, ast.Attribute) and node.func.attr in {"numpy", "tolist"}:
                return False
    return True
