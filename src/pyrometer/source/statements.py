"""How statements change what names are: branches, loops, blocks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyrometer.source.annotations import annotated
from pyrometer.source.calling import as_iterable
from pyrometer.source.expressions import DEEPEST, assign, binary, evaluate
from pyrometer.source.frame import Env, Frame, merge
from pyrometer.source.knowledge import INFERENCE, NO_GRAD
from pyrometer.source.value import CONTAINER, NONE, TENSOR, UNKNOWN, Kind, element_of

if TYPE_CHECKING:
    from pyrometer.source.flow import Flow

FILLING = frozenset(["append", "add", "extend", "insert", "appendleft", "update"])


def run(frame: Frame, body: Sequence[ast.stmt]) -> None:
    """Pass over statements in order, up to where the end cannot be reached."""
    if frame.flow.depth > DEEPEST:
        return
    frame.flow.depth += 1
    for statement in body:
        if frame.env is None:
            break
        action = ACTIONS.get(statement.__class__)
        if action is not None:
            action(frame, statement)
    frame.flow.depth -= 1


def do_assign(frame: Frame, statement: ast.Assign) -> None:
    """`a = b = value`."""
    value = evaluate(frame, statement.value)
    for target in statement.targets:
        assign(frame, target, value)


def do_augmented(frame: Frame, statement: ast.AugAssign) -> None:
    """`a += value`."""
    right = evaluate(frame, statement.value)
    target = statement.target
    left = evaluate(frame, target)
    value = CONTAINER if left.kind is Kind.CONTAINER else binary(frame, left, right, statement.op)
    if isinstance(target, ast.Name):
        assign(frame, target, value)


def do_annotated(frame: Frame, statement: ast.AnnAssign) -> None:
    """`a: T = value`; the annotation speaks where the value does not."""
    said = annotated(frame.flow.module, statement.annotation)
    if statement.value is None:
        if isinstance(statement.target, ast.Name) and said.kind is not Kind.UNKNOWN:
            frame.bind(statement.target.id, said, statement.target)
        return
    value = evaluate(frame, statement.value)
    assign(frame, statement.target, said if value.kind is Kind.UNKNOWN else value)


def do_expression(frame: Frame, statement: ast.Expr) -> None:
    """A call for its effect; `list.append(tensor)` is seen here."""
    evaluate(frame, statement.value)
    call = statement.value
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
        return
    if call.func.attr in FILLING:
        put = frame.flow.recorded.get(call.args[-1], UNKNOWN)
        several = call.func.attr in {"extend", "update"}
        frame.fill(call.func.value, element_of(put) if several else put)


def do_return(frame: Frame, statement: ast.Return) -> None:
    """The end of this path."""
    frame.returns.append(evaluate(frame, statement.value) if statement.value is not None else NONE)
    frame.env = None


def do_raise(frame: Frame, statement: ast.Raise) -> None:
    """The end of this path, too."""
    for part in (statement.exc, statement.cause):
        if part is not None:
            evaluate(frame, part)
    frame.env = None


def do_break(frame: Frame, _statement: ast.Break) -> None:
    """Leave the loop with what is known here."""
    if frame.exits and frame.env is not None:
        frame.exits[-1].append(frame.env)
    frame.env = None


def do_continue(frame: Frame, _statement: ast.Continue) -> None:
    """Go on with the next round."""
    if frame.continues and frame.env is not None:
        frame.continues[-1].append(frame.env)
    frame.env = None


def do_if(frame: Frame, statement: ast.If) -> None:
    """Branches; a chain of `elif` is followed in a loop, for there are long ones."""
    ends: list[Env | None] = []
    branch: ast.If | None = statement
    while branch is not None:
        evaluate(frame, branch.test)
        before = frame.fork()
        narrow(frame, branch.test, outcome=True)
        run(frame, branch.body)
        ends.append(frame.env)
        frame.env = before
        narrow(frame, branch.test, outcome=False)
        orelse = branch.orelse
        if len(orelse) == 1 and isinstance(orelse[0], ast.If):
            branch = orelse[0]
        else:
            run(frame, orelse)
            branch = None
    for end in ends:
        frame.env = merge(frame.env, end)


def narrow(frame: Frame, test: ast.expr, *, outcome: bool) -> None:
    """What a test says about a name: `isinstance(x, torch.Tensor)`, `torch.is_tensor(x)`."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, outcome = test.operand, not outcome
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == outcome:
        for part in test.values:
            narrow(frame, part, outcome=outcome)
        return
    if (
        not (isinstance(test, ast.Call) and test.args and isinstance(test.args[0], ast.Name))
        or frame.env is None
    ):
        return
    name = test.args[0].id
    called = frame.flow.module.name_of(test.func)
    if called == "isinstance" and len(test.args) == 2:
        said = annotated(frame.flow.module, test.args[1])
        classes = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else None
        if classes is not None:
            kinds = {annotated(frame.flow.module, part) for part in classes}
            said = kinds.pop() if len(kinds) == 1 else UNKNOWN
    elif called in ("torch.is_tensor", "torch.overrides.is_tensor_like"):
        said = TENSOR
    else:
        return
    known = frame.env.get(name, UNKNOWN)
    if outcome and known.kind is not said.kind:
        frame.env[name] = said
    elif not outcome and known.kind is said.kind:
        frame.env[name] = UNKNOWN


def loop(
    frame: Frame, body: Sequence[ast.stmt], enter: Callable[[], None], orelse: Sequence[ast.stmt]
) -> None:
    """Pass over a loop's body twice, so that what one round leaves is what the next one finds.

    The loop is taken to run: what names are after it is what its body makes of them.
    """
    frame.exits.append([])
    frame.continues.append([])
    head = frame.fork()
    end: Env | None = None
    for _ in range(2):
        frame.env = merge(None if head is None else dict(head), end)
        frame.exits[-1].clear()
        frame.continues[-1].clear()
        enter()
        run(frame, body)
        end = frame.env
        for other in frame.continues[-1]:
            end = merge(end, other)
    frame.continues.pop()
    outs = frame.exits.pop()
    frame.env = dict(end) if end is not None else (head if not outs else None)
    run(frame, orelse)
    for other in outs:
        frame.env = merge(frame.env, other)


def do_for(frame: Frame, statement: ast.For | ast.AsyncFor) -> None:
    """`for target in iterable`."""
    held = as_iterable(frame, statement.iter, evaluate(frame, statement.iter))

    def enter() -> None:
        assign(frame, statement.target, element_of(held))

    loop(frame, statement.body, enter, statement.orelse)


def do_while(frame: Frame, statement: ast.While) -> None:
    """`while test`."""

    def enter() -> None:
        evaluate(frame, statement.test)

    loop(frame, statement.body, enter, statement.orelse)


def do_with(frame: Frame, statement: ast.With | ast.AsyncWith) -> None:
    """`with no_grad():` switches graphs off for its block."""
    off = 0
    for item in statement.items:
        value = evaluate(frame, item.context_expr)
        off += switches_gradients_off(frame.flow, item.context_expr)
        if item.optional_vars is not None:
            assign(frame, item.optional_vars, value if value.kind is not Kind.TENSOR else UNKNOWN)
    frame.grad_off += off
    run(frame, statement.body)
    frame.grad_off -= off


def switches_gradients_off(flow: Flow, expression: ast.expr) -> bool:
    """Whether a context manager or decorator is no_grad, inference_mode or set_grad_enabled(False)."""
    call = expression if isinstance(expression, ast.Call) else None
    name = flow.module.name_of(call.func if call is not None else expression)
    if name in NO_GRAD or name in INFERENCE:
        return not (call is not None and call.args and flow.module.literal(call.args[0]) is False)
    return bool(
        name == "torch.set_grad_enabled"
        and call is not None
        and call.args
        and flow.module.literal(call.args[0]) is False
    )


def do_try(frame: Frame, statement: ast.Try) -> None:
    """Handlers start from anything between the beginning and the end of the block."""
    before = frame.fork()
    run(frame, statement.body)
    after = frame.fork()
    start = merge(before, after)
    if frame.env is not None:
        run(frame, statement.orelse)
    ends = [frame.env]
    for handler in statement.handlers:
        frame.env = dict(start) if start is not None else None
        if handler.name and frame.env is not None:
            frame.env[handler.name] = UNKNOWN
        run(frame, handler.body)
        ends.append(frame.env)
    frame.env = None
    for end in ends:
        frame.env = merge(frame.env, end)
    if frame.env is None and statement.finalbody:
        frame.env = dict(start) if start is not None else None
        run(frame, statement.finalbody)
        frame.env = None
    else:
        run(frame, statement.finalbody)


def do_match(frame: Frame, statement: ast.Match) -> None:
    """Each case from the same beginning; what patterns capture is unknown."""
    evaluate(frame, statement.subject)
    before = frame.fork()
    end = frame.fork()
    for case in statement.cases:
        frame.env = dict(before) if before is not None else None
        for node in ast.walk(case.pattern):
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str) and frame.env is not None:
                frame.env[name] = UNKNOWN
        if case.guard is not None:
            evaluate(frame, case.guard)
        run(frame, case.body)
        end = merge(end, frame.env)
    frame.env = end


def do_function(frame: Frame, statement: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Its decorators and defaults run here; its body does when it is called."""
    for part in (*statement.decorator_list, *statement.args.defaults, *statement.args.kw_defaults):
        if part is not None:
            evaluate(frame, part)
    if frame.env is not None:
        frame.env[statement.name] = UNKNOWN


def do_class(frame: Frame, statement: ast.ClassDef) -> None:
    """A class's body runs here, with names of its own."""
    for part in (
        *statement.decorator_list,
        *statement.bases,
        *(keyword.value for keyword in statement.keywords),
    ):
        evaluate(frame, part)
    before, ever = frame.fork(), dict(frame.ever)
    run(frame, statement.body)
    frame.env, frame.ever = before, ever
    if frame.env is not None:
        frame.env[statement.name] = UNKNOWN


def do_delete(frame: Frame, statement: ast.Delete) -> None:
    """`del name`."""
    for target in statement.targets:
        if isinstance(target, ast.Name):
            if frame.env is not None:
                frame.env.pop(target.id, None)
        else:
            evaluate(frame, target)


def do_assert(frame: Frame, statement: ast.Assert) -> None:
    """What was asserted holds from here on."""
    evaluate(frame, statement.test)
    if statement.msg is not None:
        evaluate(frame, statement.msg)
    narrow(frame, statement.test, outcome=True)


ACTIONS: dict[type[ast.AST], Callable[..., None]] = {
    ast.Assign: do_assign,
    ast.AugAssign: do_augmented,
    ast.AnnAssign: do_annotated,
    ast.Expr: do_expression,
    ast.Return: do_return,
    ast.Raise: do_raise,
    ast.Break: do_break,
    ast.Continue: do_continue,
    ast.If: do_if,
    ast.For: do_for,
    ast.AsyncFor: do_for,
    ast.While: do_while,
    ast.With: do_with,
    ast.AsyncWith: do_with,
    ast.Try: do_try,
    ast.Match: do_match,
    ast.FunctionDef: do_function,
    ast.AsyncFunctionDef: do_function,
    ast.ClassDef: do_class,
    ast.Delete: do_delete,
    ast.Assert: do_assert,
}
if hasattr(ast, "TryStar"):
    ACTIONS[ast.TryStar] = do_try
