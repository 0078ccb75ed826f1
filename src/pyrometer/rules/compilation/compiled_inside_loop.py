"""A model is compiled or traced again in every step.

## What it does

Reports calls of torch.compile, torch.jit.trace, torch.jit.script and torch.export.export that run in each step: in the loop over
batches, in the `forward` of a module, in a request handler, or in any loop through which nothing changes that they are given.
Compiling the blocks of a model in a loop over them is not reported, nor is compiling behind `if self.compiled is None`.

## Why it costs

Tracing runs the model each time. torch.compile finds the code that it compiled before and makes a wrapper around it: on two
CPU cores a linear layer with ReLU took 0.2 ms per step that way against 0.02 ms called through one wrapper, and
`torch.jit.trace` of it 8 ms. Where the function closes over another value or the backend is a new function each time, all of it is compiled again
in every step, up to the limit of eight, and then runs eagerly.

## Example

```python
import torch

for batch in loader:
    loss = torch.compile(model)(batch).mean()
    loss.backward()
```

## Use instead

Compile once, before the loop.

```python
import torch

compiled = torch.compile(model)
for batch in loader:
    loss = compiled(batch).mean()
    loss.backward()
```

## Fix safety

Exact where the model is the same in each step. A function that closes over a value of the step has to take it as an argument.

## References

- PyTorch documentation, torch.compile: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- PyTorch recipe, regional compilation: https://docs.pytorch.org/tutorials/recipes/regional_compilation.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.compilation.patterns.compile_calls import COMPILE, TRACERS, CompileCall, compile_calls
from pyrometer.rules.compilation.patterns.repeating import is_guarded, is_invariant
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR411", severity="warning", fix_class="semantic")

RESETS = ("torch._dynamo.reset", "torch.compiler.reset")


@RULE.in_source
def find(module: Module) -> Matches:
    """Compilers that are called in each step."""
    for call in compile_calls(module, COMPILE, *TRACERS):
        if module.region(call.node).test or is_guarded(module, call.runs) or module.is_rare(call.runs):
            continue
        hot = module.hot(call.runs)
        why = hot.why if hot is not None else _in_vain(module, call)
        if why is None:
            continue
        during = f" in {why}" if hot is None else hot.during
        new = _is_new_function(call)
        what = f"{call.name} of a new function" if new else call.name
        yield match(
            call.node,
            f"{what} is called anew each time{during}",
            advice=f"Call {call.name} once before, and keep what it returns"
            + (
                "; what the function closes over has to become an argument, or it is compiled again for each value."
                if new
                else "."
            ),
            hot=why,
        )


def _in_vain(module: Module, call: CompileCall) -> str | None:
    """A loop that repeats the call with the same arguments, and does not take compiled code away on purpose."""
    if not isinstance(call.node, ast.Call) or not call.node.args:
        return None
    given = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
    for loop in module.loops_around(call.runs):
        if any(reset in set(ast.walk(loop)) for reset in module.calls(*RESETS)):
            return None
        if is_invariant(module, given, loop):
            return f"the loop in line {loop.lineno}, with the same arguments"
    return None


def _is_new_function(call: CompileCall) -> bool:
    """Whether the function itself is made anew: a lambda, or one that is defined there."""
    return call.decorated is not None or isinstance(call.target, ast.Lambda)
