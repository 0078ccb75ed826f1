"""Debugging settings of the compiler or of autograd are left on.

## What it does

Reports, where a file sets them outside of any condition and of tests: logs and dumps of the compiler (`TORCH_LOGS`,
`TORCH_COMPILE_DEBUG`, `torch._logging.set_logs`, `verbose`, `trace.enabled`, the minifiers), backends that run the graph eagerly
(`backend="eager"`, `"aot_eager"`), switched-off compile caches, a compiler that is switched off in a file that
compiles, and `set_detect_anomaly(True)`. A record of the environment is looked at for the names of such variables only.

## Why it costs

Dumps write files for each graph; minifiers run each graph twice; `backend="eager"` traces and compiles nothing, so that every
guard is paid for no speed; without caches each process compiles anew. Anomaly detection keeps a stack for every node of the
autograd graph and looks for NaN in each gradient.

## Example

```python
import os

import torch

os.environ["TORCH_LOGS"] = "+dynamo,guards"
torch.autograd.set_detect_anomaly(True)
model = torch.compile(model, backend="aot_eager")
```

## Use instead

Set them from outside for the one run that needs them, or behind a flag of the program's own.

```python
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--debug", action="store_true")
args = parser.parse_args()
torch.autograd.set_detect_anomaly(args.debug)
model = torch.compile(model)
```

## Fix safety

Exact for what only logs, dumps or switches caches off: the fix takes the statement out. Tolerance for what switches the compiler
off, and for the backend: digits differ. Semantic for anomaly detection: without it, a NaN in a gradient raises no error.

## References

- PyTorch documentation, torch._logging: https://docs.pytorch.org/docs/stable/logging.html
- PyTorch documentation, anomaly detection: https://docs.pytorch.org/docs/stable/autograd.html
- PyTorch performance tuning guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrometer.advice import FixClass, Gain
from pyrometer.place import Place
from pyrometer.rules.compilation.patterns.compile_calls import CompileCall, compile_calls
from pyrometer.rules.compilation.patterns.debug_settings import (
    BACKENDS,
    CONFIGS,
    OFF_SWITCHES,
    OPTIONS,
    VARIABLES,
    is_behind_flag,
    is_on,
    matters,
    set_variables,
)
from pyrometer.rules.finding import Finding
from pyrometer.rules.match import Fix, Match, Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.edit import delete_statement

RULE = declare(code="PYR408", severity="warning", fix_class="semantic")

SET_LOGS = "torch._logging.set_logs"
QUIET = frozenset({"logging.WARNING", "logging.WARN", "logging.ERROR", "logging.CRITICAL"})
ANOMALY = ("torch.autograd.set_detect_anomaly", "torch.autograd.detect_anomaly")
CHECK_S = (25e-6, 130e-6)
"""What one gradient takes with anomaly detection, about the least and the most of nine networks on two kinds of CPU cores: its check and the
stack of its node, which takes longer where modules are nested more deeply."""

MOST_SHARE = 0.95
"""Of a step: the network's own work stays."""

ADVICE = "Set it for the one run that needs it, from outside or behind a flag of the program's own."


@RULE.in_source
def find(module: Module) -> Matches:
    """Everything that is set outside of conditions."""
    if not module.imports_torch and "TORCH" not in module.text:
        return
    for variable in (
        *_variables(module),
        *_configs(module),
        *_logs(module),
        *_anomaly(module),
        *_compiled(module),
    ):
        node = variable[0]
        if not module.region(node).test and not is_behind_flag(module, node):
            yield _match(module, *variable)


@RULE.in_evidence("environment")
def in_environment(case: Case) -> Findings:
    """Variables whose names a record of the environment holds; their values are nobody's business."""
    record = case.environment
    names = [] if record is None else [name for name in VARIABLES if is_on(record.settings.get(name))]
    for name in names:
        yield RULE.finding(
            message=f"The environment sets {name}, which {VARIABLES[name]}",
            where=Place(),
            links=["/environment/settings"],
            confidence="high",
            advice=f"Unset {name} for runs that are measured or deployed.",
            rewrite=f"unset {name}",
            resource="debugging",
        )


@RULE.in_evidence("program")
def in_program(case: Case) -> Findings:
    """Anomaly detection that was on while the program was looked at."""
    program = case.program
    if program is not None and program.settings.get("anomaly") is True:
        yield _anomaly_finding(case, _written_at(case) or Place(), ["/program/settings/anomaly"])


@RULE.in_evidence("trace")
def in_trace(case: Case) -> Findings:
    """Anomaly detection that the source switches on, and whose checks the trace shows."""
    place = _written_at(case)
    known = case.program is not None and case.program.settings.get("anomaly") is True
    if place is not None and not known and _checks_per_step(case):
        yield _anomaly_finding(case, place, ["/trace/top_ops"])


def _anomaly_finding(case: Case, place: Place, links: list[str]) -> Finding:
    checks = _checks_per_step(case)
    least, most = (
        (checks * each_s / case.step_s if case.step_s else 0.0 for each_s in CHECK_S)
        if checks
        else (0.0, 0.0)
    )
    method = "checks of gradients times what one takes, with the stack of its node, as measured on two cores"
    least, most = min(least, MOST_SHARE), min(most, MOST_SHARE)
    often = f"; {checks:,.0f} gradients are checked{case.per_step}" if checks else ""
    return RULE.finding(
        message=f"Anomaly detection is on: each backward checks every gradient for NaN and keeps a stack for every node{often}",
        where=place,
        evidence={"checks_per_step": checks},
        links=links,
        cost=case.cost_of((least + most) / 2, method) if most else None,
        gain=Gain(ratio_low=1 - most, ratio_high=1 - least, method=method) if most else None,
        confidence="high",
        advice=f"Switch it off. {ADVICE}",
        rewrite="torch.autograd.set_detect_anomaly(False)",
        resource="debugging",
    )


def _written_at(case: Case) -> Place | None:
    """The first line that switches anomaly detection on."""
    lines = ((module.path, node.lineno) for module in case.modules for node, _, _ in _anomaly(module))
    file, line = next(lines, (None, None))
    return None if file is None else Place(file=file, line=line)


def _checks_per_step(case: Case) -> float:
    """How many gradients a step checks for NaN: each compares a tensor with itself and asks for any difference."""
    calls = {} if case.trace is None else {op.name: op.calls for op in case.trace.top_ops}
    return min(calls.get("aten::any", 0), calls.get("aten::ne", 0)) / case.num_traced_steps


Found = tuple[ast.expr | ast.stmt, str, "FixClass | None"]
"""The place, what it does, and the class of taking the statement out; `None` where that is no remedy."""


def _variables(module: Module) -> Iterator[Found]:
    for node, name, is_statement in set_variables(module):
        yield node, f"{name} {VARIABLES[name]}", _taken_out(name) if is_statement else None


def _configs(module: Module) -> Iterator[Found]:
    if "_dynamo" not in module.text and "_inductor" not in module.text:
        return
    for assignment in module.nodes(ast.Assign):
        if len(assignment.targets) != 1 or not isinstance(assignment.targets[0], ast.Attribute):
            continue
        name = module.name_of(assignment.targets[0])
        if name in CONFIGS and is_on(module.literal(assignment.value)) and matters(module, name):
            yield assignment, f"{name} {CONFIGS[name]}", _taken_out(name)


def _logs(module: Module) -> Iterator[Found]:
    for call in module.calls(SET_LOGS):
        nodes = [word.value for word in call.keywords if word.arg is not None]
        if any(
            module.name_of(node) not in QUIET and module.literal(node) not in (False, 0) for node in nodes
        ):
            is_statement = isinstance(module.parent(call), ast.Expr)
            yield call, "set_logs() has the compiler write logs", "exact" if is_statement else None


def _anomaly(module: Module) -> Iterator[Found]:
    for call in module.calls(*ANOMALY):
        mode = call.args[0] if call.args else module.keyword(call, "mode")
        is_setting = module.name_of(call.func) == ANOMALY[0]
        checks = module.keyword(call, "check_nan")
        if module.literal(mode) is True if is_setting else module.literal(checks) is not False:
            is_statement = isinstance(module.parent(call), ast.Expr)
            yield (
                call,
                "Anomaly detection checks every gradient and keeps a stack for every node",
                "semantic" if is_statement else None,
            )


def _compiled(module: Module) -> Iterator[Found]:
    for call in compile_calls(module):
        backend = call.option("backend")
        if isinstance(backend, str) and backend in BACKENDS and _is_kept(call):
            yield call.node, f'backend="{backend}" {BACKENDS[backend]}', None
        options = call.keyword("options")
        if isinstance(options, ast.Dict):
            for key, value in zip(options.keys, options.values, strict=True):
                name = module.literal(key) if key is not None else None
                if name in OPTIONS and is_on(module.literal(value)):
                    yield value, f"The option {name} {OPTIONS[str(name)]}", None


def _taken_out(name: str) -> FixClass:
    """What a program computes without a setting: the same, unless it is compiled from then on."""
    return "tolerance" if name in OFF_SWITCHES else "exact"


def _is_kept(call: CompileCall) -> bool:
    """Whether what is compiled is there to stay: decorated, or given a name; a call on the spot, or a benchmark, tries something."""
    parent = call.module.parent(call.node)
    if "benchmark" in call.module.path.lower():
        return False
    return call.decorated is not None or isinstance(parent, ast.Assign | ast.AnnAssign)


def _match(module: Module, node: ast.expr | ast.stmt, what: str, taken_out: FixClass | None) -> Match:
    fix = None
    if taken_out is not None:
        edits = [delete_statement(module, module.statement_of(node))]
        fix = Fix(fix_class=taken_out, title="Take the setting out", edits=edits)
    return match(node, what, advice=ADVICE, fix=fix)
