"""Settings that are for looking for errors in what is compiled: variables, torch's own settings, options, backends."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrometer.rules.compilation.patterns.compile_calls import compile_calls
from pyrometer.rules.rule import Module

VARIABLES = {
    "TORCH_LOGS": "has the compiler write logs",
    "TORCH_TRACE": "has the compiler write a structured log of every compilation",
    "TORCH_COMPILE_DEBUG": "dumps every graph and kernel into files",
    "TORCH_COMPILE_DISABLE": "switches torch.compile off",
    "TORCHDYNAMO_DISABLE": "switches torch.compile off",
    "TORCHDYNAMO_VERBOSE": "prints the compiler's own stacks",
    "TORCHDYNAMO_REPRO_AFTER": "runs the minifier on every graph",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "has every process compile anew",
    "TORCHINDUCTOR_BENCHMARK_KERNEL": "adds a benchmark to every generated kernel",
}
"""Environment variables, with what each does."""

CONFIGS = {
    "torch._dynamo.config.verbose": "prints the compiler's own stacks",
    "torch._dynamo.config.repro_after": "runs the minifier on every graph",
    "torch._dynamo.config.disable": "switches torch.compile off",
    "torch._inductor.config.debug": "checks and dumps what is generated",
    "torch._inductor.config.trace.enabled": "dumps every graph and kernel into files",
    "torch._inductor.config.verbose_progress": "prints progress of every compilation",
    "torch._inductor.config.force_disable_caches": "has every process compile anew",
    "torch._inductor.config.benchmark_kernel": "adds a benchmark to every generated kernel",
    "torch._inductor.config.profile_bandwidth": "benchmarks every kernel when it is first run",
}
"""Settings of torch's, with what each does when it is on."""

OPTIONS = {
    name.removeprefix("torch._inductor.config."): what
    for name, what in CONFIGS.items()
    if name.startswith("torch._inductor.config.")
}
"""The same as options of torch.compile."""

BACKENDS = {
    "eager": "runs the graph as eager code: nothing is fused",
    "eager_noexcept": "runs the graph as eager code: nothing is fused",
    "eager_debug": "runs the graph as eager code with checks",
    "aot_eager": "runs forward and backward graphs as eager code: nothing is fused",
    "aot_eager_decomp_partition": "runs decomposed graphs as eager code: nothing is fused",
    "dynamo_minifier_backend": "looks for a smaller failing graph",
    "dynamo_accuracy_minifier_backend": "looks for a smaller graph with wrong results",
}
"""Backends that are there to find errors, with what each does."""

OFF_SWITCHES = frozenset({"TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "torch._dynamo.config.disable"})
"""Those that switch torch.compile off: deliberate, unless the same file compiles."""

QUIET_LEVELS = frozenset({"warning", "error", "critical"})

OFF = ("", "0", "false", "no", "off", "none")


def is_on(value: object) -> bool:
    """Whether a value switches something on; what is not a constant does not count, nor do logs that are made quieter.

    >>> is_on("1"), is_on("+dynamo"), is_on("0"), is_on("-dynamo,-inductor"), is_on(False), is_on(object())
    (True, True, False, False, False, False)
    """
    if isinstance(value, str):
        words = [word.strip().lower() for word in value.split(",")]
        return any(
            word not in OFF and word not in QUIET_LEVELS and not word.startswith("-") for word in words
        )
    return isinstance(value, bool | int) and bool(value)


def set_variables(module: Module) -> Iterator[tuple[ast.expr | ast.stmt, str, bool]]:
    """Places that set such a variable: where, which, and whether that is a statement of its own.

    A file that names a variable more than once reads it too, or sets it back, and knows what it does.
    """
    told_once = {name for name in VARIABLES if module.text.count(name) == 1 and matters(module, name)}
    if not told_once:
        return
    for assignment in module.nodes(ast.Assign):
        for target in assignment.targets:
            if isinstance(target, ast.Subscript) and module.name_of(target.value) == "os.environ":
                name = module.literal(target.slice)
                if name in told_once and is_on(module.literal(assignment.value)):
                    yield assignment, str(name), len(assignment.targets) == 1
    for call in module.calls("os.environ.setdefault", "os.putenv"):
        name = module.literal(call.args[0]) if call.args else None
        if name in told_once and len(call.args) > 1 and is_on(module.literal(call.args[1])):
            yield call, str(name), isinstance(module.parent(call), ast.Expr)


def matters(module: Module, name: str) -> bool:
    """Whether a setting is at odds with the rest of a file: one that switches the compiler off, where the file compiles."""
    return name not in OFF_SWITCHES or next(compile_calls(module), None) is not None


def is_behind_flag(module: Module, node: ast.AST) -> bool:
    """Whether a test decides about a setting, other than the one that asks if the file is run; or it is made for debugging."""
    child = node
    for above in module.ancestors(node):
        if isinstance(above, ast.BoolOp | ast.ExceptHandler):
            return True
        if isinstance(above, ast.If | ast.IfExp) and child is not above.test:
            if "__name__" not in module.source(above.test):
                return True
        elif isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            "debug" in above.name.lower()
        ):
            return True
        child = above
    return False
