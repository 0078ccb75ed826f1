"""Code that runs seldom although what is around it runs often: logging every hundred steps, errors, debugging."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyrometer.source.index import inside_body, last_name
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.source.module import Module

SELDOM_FLAG = re.compile(
    r"(^|_)(debug|debugging|verbose|verbosity|dry_run|profile|profiling|is_first|first_step|first_batch|is_last|last_step|"
    r"last_batch|print_stats|collect_stats|sanity_check)$|^(__debug__|TYPE_CHECKING)$"
    r"|^(is_)?(should|do|need|needs|needs_to|time_to|is_time_to)_(log|print|save|eval|evaluate|checkpoint|validate|plot|report|dump)"
    r"|^(is_)?(log|logging|print|eval|save|checkpoint)(_this|_now)?_(step|iter|iteration|batch)$|^log_this_",
    re.IGNORECASE,
)
"""Names of flags and of functions that are seldom true."""

COUNTER = re.compile(
    r"(^|_)(i|j|k|it|idx|index|i?step|steps|iter|iters|iteration|iterations|batch|batch_idx|batch_i|epoch|count|counter|t|"
    r"num_batches|nb|i_batch|n_iter)$",
    re.IGNORECASE,
)
"""Names of what counts the steps."""

CACHE = re.compile(r"(^|_)(caches?|cached|memo|memoized)$", re.IGNORECASE)
"""Names of what remembers results: that something is not there is seldom."""

CHOSEN_STEPS = re.compile(r"step|iter|check|milestone|save|log|print|interval", re.IGNORECASE)
"""Names of the few steps at which something is done."""

ACCUMULATION = re.compile(r"accum|micro|update_(freq|every|interval)|virtual|world|rank", re.IGNORECASE)
"""In a modulo: every few steps, as gradients are accumulated, or one process of several; neither is seldom."""

SOME_STEPS = re.compile(rf"batch|{ACCUMULATION.pattern}", re.IGNORECASE)
"""In a limit of what is collected: the samples of a batch make a step, not an interval between steps."""

BAD_VALUE = words("isnan isinf is_nan is_inf isneginf isposinf")
CLOCKS = words("time.time time.perf_counter time.monotonic datetime.datetime.now")
WARNING = words("warn warning error critical exception")
"""Functions and methods that say that something is wrong."""

EXITS = words("sys.exit exit quit os._exit")
FIRST_STEPS = 10
"""Comparisons of a counter with less than this hold at the beginning only."""

DEEPEST = 8
"""Conditions within conditions that are looked into."""


def is_rare(module: Module, node: ast.AST) -> bool:
    """Whether a node runs seldom within the loop or function that makes it hot."""
    hot = module.hot(node)
    return is_rare_within(module, node, hot.loop if hot is not None else None)


def is_rare_within(module: Module, node: ast.AST, boundary: ast.AST | None) -> bool:
    """Whether a node runs seldom within a loop, or within its function."""
    if isinstance(node, ast.Raise):
        return True
    child = node
    for above in module.ancestors(node):
        check = PLACES.get(above.__class__)
        if check is not None and check(module, above, child):
            return True
        is_function = isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef) and inside_body(child, above)
        if above is boundary or is_function:
            return False
        child = above
    return False


def in_late_message(_module: Module, above: ast.Lambda, _child: ast.AST) -> bool:
    """`lambda: f"got {loss.item()}"` is a message that is made when a check fails."""
    arguments = above.args
    takes_nothing = not (arguments.args or arguments.posonlyargs or arguments.vararg or arguments.kwonlyargs)
    return takes_nothing and any(isinstance(part, ast.JoinedStr) for part in ast.walk(above.body))


def always(_module: Module, _above: ast.AST, _child: ast.AST) -> bool:
    """An exception is the exception."""
    return True


def in_message(_module: Module, above: ast.Assert, child: ast.AST) -> bool:
    """The message of an assertion is made when it fails."""
    return child is above.msg


def in_rare_branch(module: Module, above: ast.If | ast.IfExp, child: ast.AST) -> bool:
    """A branch that is seldom taken, or only once because it leaves the loop, the call or the program."""
    if child is above.test:
        return False
    if isinstance(above, ast.IfExp):
        return is_seldom(module, above.test, outcome=child is above.body)
    inside = child in above.body
    if inside and fills_once(above):
        return True
    block = above.body if inside else above.orelse
    if is_seldom(module, above.test, outcome=inside) or leaves(module, block, above) or warns(block):
        return True
    return inside and is_collected_interval(module, above)


def fills_once(branch: ast.If) -> bool:
    """`if self.table is None: self.table = …`: what is missing the first time is there afterwards."""
    missing = {
        ast.unparse(test.left)
        for test in ast.walk(branch.test)
        if isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Is)
        and isinstance(test.left, ast.Attribute)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
    }
    return bool(missing) and any(
        ast.unparse(target) in missing
        for statement in branch.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


def is_collected_interval(module: Module, branch: ast.If) -> bool:
    """`if len(losses) == 100: ...; losses.clear()`: what is collected and emptied counts the steps in between."""
    for test in conditions(branch.test):
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq | ast.GtE | ast.Gt):
            continue
        size, limit = test.left, test.comparators[0]
        names = [last_name(node) or "" for node in ast.walk(limit) if isinstance(node, ast.expr)]
        interval = module.literal(limit)
        is_length = isinstance(size, ast.Call) and module.name_of(size.func) == "len" and len(size.args) == 1
        if not is_length or len(test.ops) > 1 or not isinstance(interval, int) or interval < FIRST_STEPS:
            continue
        if not any(SOME_STEPS.search(name) for name in names) and isinstance(size, ast.Call):
            collected = ast.dump(load(size.args[0]))
            if any(empties(statement, collected) for statement in branch.body):
                return True
    return False


def conditions(test: ast.expr) -> Sequence[ast.expr]:
    """What must all hold for a test to hold."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def empties(statement: ast.stmt, collected: str) -> bool:
    """Whether a statement leaves a container empty: `losses.clear()`, `losses = []`, `del losses[:]`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        return isinstance(called, ast.Attribute) and called.attr == "clear" and same(called.value, collected)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return any(same(target, collected) for target in targets) and is_empty(statement.value)
    return isinstance(statement, ast.Delete) and any(
        isinstance(target, ast.Subscript)
        and isinstance(target.slice, ast.Slice)
        and target.slice.lower is None
        and target.slice.upper is None
        and same(target.value, collected)
        for target in statement.targets
    )


def is_empty(value: ast.expr | None) -> bool:
    """Whether a value is a new container without elements."""
    if isinstance(value, ast.List):
        return not value.elts
    return isinstance(value, ast.Call) and not value.args and last_name(value.func) in {"list", "deque"}


def same(expression: ast.expr, dumped: str) -> bool:
    """Whether an expression names what a dump of `load` names."""
    return ast.dump(load(expression)) == dumped


def load(expression: ast.expr) -> ast.expr:
    """A name or attribute as it is when it is read, whether it is read or written here."""
    if isinstance(expression, ast.Name):
        return ast.Name(expression.id, ast.Load())
    if isinstance(expression, ast.Attribute):
        return ast.Attribute(load(expression.value), expression.attr, ast.Load())
    return expression


def leaves(module: Module, block: Sequence[ast.stmt], branch: ast.If) -> bool:
    """Whether a block ends the loop around it, or fails, or ends the program."""
    last = block[-1]
    if isinstance(last, ast.Return):
        return bool(module.loops_around(branch))
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return module.name_of(last.value.func) in EXITS
    return isinstance(last, ast.Raise | ast.Break)


def warns(block: Sequence[ast.stmt]) -> bool:
    """Whether a block says that something is wrong: `warnings.warn(…)`, `logger.error(…)`."""
    calls = (
        statement.value
        for statement in block
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    )
    return any(last_name(call.func) in WARNING for call in calls)


def after_rare_operand(module: Module, above: ast.BoolOp, child: ast.AST) -> bool:
    """`step % 100 == 0 and print(loss)`."""
    for value in above.values:
        if value is child:
            return False
        if is_seldom(module, value, outcome=isinstance(above.op, ast.And)):
            return True
    return False


def in_loop(module: Module, above: ast.For | ast.AsyncFor | ast.While, child: ast.AST) -> bool:
    """What comes after `if step % 100: continue` in a loop's body."""
    return child in above.body and after_common_exit(module, above.body, child, ast.Continue)


def in_function(module: Module, above: ast.FunctionDef | ast.AsyncFunctionDef, child: ast.AST) -> bool:
    """What comes after `if step % 100: return` in a function's body, or in one that tells of trouble whatever happens."""
    if any(isinstance(part, ast.If) and says_trouble(part) for part in above.body):
        return True
    return child in above.body and after_common_exit(module, above.body, child, ast.Return)


def says_trouble(branch: ast.If) -> bool:
    """Whether each branch of an `if` warns, or fails."""
    other = branch.orelse[0] if len(branch.orelse) == 1 else None
    ends = isinstance(other, ast.If) and says_trouble(other)
    return warns_or_fails(branch.body) and (ends or warns_or_fails(branch.orelse))


def warns_or_fails(block: Sequence[ast.stmt]) -> bool:
    """Whether a block warns or raises."""
    return warns(block) or any(isinstance(statement, ast.Raise) for statement in block)


def after_common_exit(
    module: Module, body: Sequence[ast.stmt], child: ast.AST, leaving: type[ast.Continue | ast.Return]
) -> bool:
    """Whether a statement comes after an exit that is mostly taken."""
    for statement in body:
        if statement is child:
            return False
        if isinstance(statement, ast.Try) and isinstance(statement.body[-1], leaving):
            return True  # What follows is reached by an exception.
        exits = (
            isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], leaving)
        )
        if isinstance(statement, ast.If) and exits and is_seldom(module, statement.test, outcome=False):
            return True
    return False


def in_warning(_module: Module, above: ast.Call, child: ast.AST) -> bool:
    """What is given to `warnings.warn` is said once."""
    return last_name(above.func) == "warn" and child is not above.func


PLACES: dict[type[ast.AST], Callable[..., bool]] = {
    ast.ExceptHandler: always,
    ast.Raise: always,
    ast.Assert: in_message,
    ast.Call: in_warning,
    ast.Lambda: in_late_message,
    ast.If: in_rare_branch,
    ast.IfExp: in_rare_branch,
    ast.BoolOp: after_rare_operand,
    ast.For: in_loop,
    ast.AsyncFor: in_loop,
    ast.While: in_loop,
    ast.FunctionDef: in_function,
    ast.AsyncFunctionDef: in_function,
}


def is_seldom(module: Module, test: ast.expr, *, outcome: bool, depth: int = 0) -> bool:
    """Whether a test seldom has this outcome."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, outcome = test.operand, not outcome
    if depth > DEEPEST:
        return False
    if isinstance(test, ast.BoolOp):
        seldoms = [is_seldom(module, value, outcome=outcome, depth=depth + 1) for value in test.values]
        return any(seldoms) if isinstance(test.op, ast.And) == outcome else all(seldoms)
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and seldom_comparison(module, test, outcome=outcome)
    if isinstance(test, ast.BinOp):
        return not outcome and is_interval(test)
    if isinstance(test, ast.Call):
        return seldom_call(module, test, outcome=outcome, depth=depth)
    return outcome and is_flag(test)


def is_flag(expression: ast.expr) -> bool:
    """Whether a name says that it is seldom true."""
    name = last_name(expression)
    return name is not None and SELDOM_FLAG.search(name) is not None


def seldom_call(module: Module, test: ast.Call, *, outcome: bool, depth: int) -> bool:
    """`torch.isnan(loss).any()`, `math.isfinite(x)`, `should_log(step)`, `logger.isEnabledFor(DEBUG)`."""
    name = last_name(test.func)
    if name in BAD_VALUE:
        return outcome
    if name == "isfinite":
        return not outcome
    if name == "isEnabledFor":
        return outcome and any(last_name(argument) in {"DEBUG", "TRACE"} for argument in test.args)
    if name in {"any", "all", "item"} and isinstance(test.func, ast.Attribute):
        return is_seldom(module, test.func.value, outcome=outcome, depth=depth + 1)
    return outcome and is_flag(test.func)


def seldom_comparison(module: Module, test: ast.Compare, *, outcome: bool) -> bool:
    """`step % 100 == 0`, `i == 0`, `step < 3`, `now - last > 10`."""
    left, comparator, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(comparator, ast.Eq | ast.NotEq):
        equal = isinstance(comparator, ast.Eq) == outcome
        return equal and (is_moment(module, left, right) or is_moment(module, right, left))
    if isinstance(comparator, ast.In | ast.NotIn):
        member = isinstance(comparator, ast.In) == outcome
        if CACHE.search(last_name(right) or "") is not None:
            return not member
        return member and is_counter(left) and CHOSEN_STEPS.search(last_name(right) or "") is not None
    if isinstance(comparator, ast.Lt | ast.LtE):
        limit = module.literal(right)
        return outcome and is_counter(left) and isinstance(limit, int) and limit <= FIRST_STEPS
    if (
        isinstance(comparator, ast.Gt | ast.GtE)
        and isinstance(left, ast.BinOp)
        and isinstance(left.op, ast.Sub)
    ):
        clocks = (left.left, left.right)
        return outcome and any(
            isinstance(part, ast.Call) and module.name_of(part.func) in CLOCKS for part in clocks
        )
    return False


def is_moment(module: Module, counter: ast.expr, moment: ast.expr) -> bool:
    """Whether `counter == moment` holds at one step, at the last one, or once in an interval."""
    if is_interval(counter):
        return True
    if not is_counter(counter):
        return False
    is_last = isinstance(moment, ast.BinOp) and isinstance(moment.op, ast.Sub)
    return is_last or isinstance(module.literal(moment), int)


def is_interval(expression: ast.expr) -> bool:
    """Whether it is the remainder of something by an interval of more than a few steps."""
    if not isinstance(expression, ast.BinOp) or not isinstance(expression.op, ast.Mod):
        return False
    if isinstance(expression.left, ast.Constant | ast.JoinedStr):
        return False
    names = [
        last_name(node) for node in ast.walk(expression.right) if isinstance(node, ast.Name | ast.Attribute)
    ]
    if any(name is not None and ACCUMULATION.search(name) for name in names):
        return False
    interval = expression.right.value if isinstance(expression.right, ast.Constant) else None
    return not isinstance(interval, int) or interval >= FIRST_STEPS


def is_counter(expression: ast.expr) -> bool:
    """Whether an expression is named like a count of steps, `step + 1` included."""
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add | ast.Sub):
        expression = expression.left
    if isinstance(expression, ast.Subscript) and isinstance(expression.slice, ast.Constant):
        name = str(expression.slice.value)
    else:
        name = last_name(expression) or ""
    return COUNTER.search(name) is not None
