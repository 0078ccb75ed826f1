"""Loops whose body runs once per step or batch: over loaders, over counts of steps, and endless ones that train."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyrometer.source.index import Loop, last_name
from pyrometer.source.knowledge import LOADER_NAME, may_name_loaders
from pyrometer.source.names import MISSING
from pyrometer.source.rounds import Round, round_of
from pyrometer.source.torch_names import OPERATIONS
from pyrometer.source.value import Kind, element_of
from pyrometer.source.words import words
from pyrometer.text import shortened

if TYPE_CHECKING:
    from pyrometer.source.module import Module

FEW_ROUNDS = 10
"""A loop over a constant range up to this is a warm-up."""

DEEPEST_CALLS = 2
"""Calls of the file's own functions in which a loop's work is looked for."""

WRAPPERS = words(
    "enumerate zip iter reversed map itertools.islice itertools.cycle itertools.chain tqdm.tqdm tqdm.auto.tqdm"
    " tqdm.notebook.tqdm rich.progress.track"
)
PROGRESS_BARS = words("tqdm track progress_bar")
"""Calls around an iterable that leave what it yields, imported or not."""

DRAWS = words("multinomial bernoulli poisson")
RANGES = words("range tqdm.trange tqdm.auto.trange")
BATCH_SOURCE = re.compile(
    r"(^|_)(batches|minibatches|mini_batches|batch_iter|data_iter|train_iter|val_iter|dataiter)$",
    re.IGNORECASE,
)
COUNT_NAME = re.compile(
    r"(^|_)(steps?|iters?|iterations?|updates?|timesteps?|batches|tokens|episodes?|frames)($|_)",
    re.IGNORECASE,
)
UPDATE_COUNT = re.compile(r"(^|_)(updates|epochs)($|_)", re.IGNORECASE)
"""What the inner loops of reinforcement learning are counted by."""

STEP_TARGET = re.compile(
    r"^(global_)?(step|iteration|iter|it|update|batch|batch_idx|iter_num|timestep|frame_idx)$", re.IGNORECASE
)
ONCE_NAME = re.compile(
    r"epoch|fold|seed|trial|run|config|cfg|lr|layer|block|depth|stage|head|module|param|name|file|path|worker|rank|device"
    r"|warm",
    re.IGNORECASE,
)
"""What loops that run a few times go over or count."""

ONCE_TARGET = re.compile(r"optim|model|(^|_)(net|test|case|group|variant|node|graph)$", re.IGNORECASE)
TAKING = words(
    "get get_nowait read recv receive poll pop popleft step next grab capture fetch dequeue wait accept"
)
"""Functions and methods that take in what a control loop works on."""

BATCH_SIZE = re.compile(r"(^|_)(batch_?size|bsz|bs)$")
OPTIMIZER_NAME = re.compile(r"optim|(^|_)opt$", re.IGNORECASE)


class StepLoops:
    """Which loops of one file are loops of steps."""

    __slots__ = ("may_load", "module", "rounds", "training", "whys")

    def __init__(self, module: Module) -> None:
        self.module = module
        self.may_load = may_name_loaders(module.text)
        self.training: bool | None = None
        self.whys: dict[Loop, str | None] = {}
        self.rounds: dict[tuple[ast.stmt, int], Round] = {}

    def why(self, loop: Loop) -> str | None:
        """As in "the loop over loader in line 12"; None for other loops."""
        if loop not in self.whys:
            self.whys[loop] = None
            found = self.of_while(loop) if isinstance(loop, ast.While) else self.of_for(loop)
            self.whys[loop] = f"{found} in line {loop.lineno}" if found else None
        return self.whys[loop]

    def is_sure(self, loop: Loop) -> bool:
        """Whether a loop of steps trains, or works on what comes in: a loader, data in strides, a queue, an environment.

        What else counts steps or runs a module may be a search, or decoding, whose next round needs what this one gave.
        """
        if self.trains(loop) or self.has_inner_steps(loop):
            return True
        if isinstance(loop, ast.While):
            return self.runs_module(loop) and self.takes_in(loop)
        if self.loader_of(loop) is not None:
            return True
        counts = range_limit(self.module, loop.iter) is not None and not has_stride(self.module, loop.iter)
        return not counts and self.runs_module(loop)

    def of_while(self, loop: ast.While) -> str | None:
        """What makes a `while` loop one of steps: it trains, runs a model, counts steps, or takes in something to work on."""
        condition = self.module.literal(loop.test)
        if condition is not MISSING and not condition:
            return None
        if self.trains(loop):
            return "the while loop"
        if self.has_inner_steps(loop):
            return None
        goes_on = self.runs_module(loop) or (
            self.works(loop) and (counts_by_name(loop.test) or self.takes_in(loop))
        )
        return "the while loop" if goes_on else None

    def of_for(self, loop: ast.For | ast.AsyncFor) -> str | None:
        """What makes a `for` loop one of steps."""
        loader = self.loader_of(loop)
        if loader is not None:
            return f"the loop over {loader}"
        limit = range_limit(self.module, loop.iter)
        rounds = self.module.literal(limit)
        if isinstance(rounds, int) and rounds <= FEW_ROUNDS:
            return None
        if self.has_inner_steps(loop):
            counts = self.trains(loop)
        else:
            counts = self.counts_steps(loop, limit) if limit is not None else self.goes_over_data(loop)
        text = " ".join(self.module.source(loop.iter).split())
        return f"the loop over {shortened(text, 40)}" if counts else None

    def loader_of(self, loop: ast.For | ast.AsyncFor) -> str | None:
        """What the loader that a loop goes over is called."""
        for part in iterables(self.module, loop.iter):
            name = last_name(part)
            named = self.module.imports_torch and name is not None
            if self.may_load and (
                (named and LOADER_NAME.search(name or "")) or self.module.value_of(part).kind is Kind.LOADER
            ):
                return name or "a DataLoader"
            if named and BATCH_SOURCE.search(name or "") and self.works(loop):
                return name
        return None

    def counts_steps(self, loop: ast.For | ast.AsyncFor, limit: ast.expr) -> bool:
        """Whether a loop over a range counts steps: by its names, and by what its body does."""
        if any(BATCH_SIZE.search(name) or name in {"shape", "size"} for name in names_in(limit)):
            return False
        if self.trains(loop) or ((counts_by_name(loop.target) or counts_by_name(limit)) and self.works(loop)):
            return True
        once = any(ONCE_NAME.search(name) for name in [*names_in(loop.target), *names_in(limit)])
        return not once and self.runs_module(loop)

    def goes_over_data(self, loop: ast.For | ast.AsyncFor) -> bool:
        """Whether a loop goes over something other than a written list, modules or settings, and runs a model on it."""
        if isinstance(loop.iter, ast.Tuple | ast.List | ast.Set | ast.Dict):
            return False
        if isinstance(loop.iter, ast.Call) and self.module.name_of(loop.iter.func) == "itertools.product":
            return False
        target = loop.target.id if isinstance(loop.target, ast.Name) else ""
        if ONCE_NAME.search(target) or ONCE_TARGET.search(target):
            return False
        if not (self.trains(loop) or self.runs_module(loop)):
            return False
        elements = {element_of(self.module.value_of(part)).kind for part in iterables(self.module, loop.iter)}
        return Kind.MODULE not in elements

    def has_inner_steps(self, loop: Loop) -> bool:
        """Whether a loop holds one of steps itself, as that over epochs does."""
        return any(
            self.why(inner) is not None or self.updates(inner) for inner in self.round_of(loop.body).loops
        )

    def updates(self, loop: Loop) -> bool:
        """Whether a loop counts updates or epochs by its name and calls what this file does not show: a compiled step."""
        limit = None if isinstance(loop, ast.While) else range_limit(self.module, loop.iter)
        if limit is None or not any(UPDATE_COUNT.search(name) for name in names_in(limit)):
            return False
        rounds = self.module.literal(limit)
        return not (isinstance(rounds, int) and rounds <= FEW_ROUNDS)

    def trains(self, loop: Loop) -> bool:
        """Whether each round goes backward or steps an optimizer, other than in the loops of steps within."""
        return any(self.is_training_call(call) for call in self.calls_in(loop.body))

    def in_training_file(self) -> bool:
        """Whether the file trains anything."""
        if self.training is None:
            self.training = any(map(self.is_training_call, self.module.nodes(ast.Call)))
        return self.training

    def is_training_call(self, call: ast.Call) -> bool:
        """`loss.backward()`, `optimizer.step()`, `optimizer.zero_grad()`."""
        if not isinstance(call.func, ast.Attribute) or not self.module.imports_torch:
            return False
        if call.func.attr not in {"step", "zero_grad"}:
            return call.func.attr == "backward"
        if OPTIMIZER_NAME.search(last_name(call.func.value) or ""):
            return True
        return self.module.value_of(call.func.value).kind in {Kind.OPTIMIZER, Kind.SCALER}

    def runs_module(self, loop: Loop) -> bool:
        """Whether each round calls the same module; one that changes with the round is a loop over layers."""
        bound = self.round_of(loop.body).stored.union(names_in(loop))
        return any(
            self.module.flow.is_module_call(call)
            for call in self.calls_in(loop.body)
            if not isinstance(call.func, ast.Subscript) and getattr(call.func, "id", None) not in bound
        )

    def takes_in(self, loop: Loop) -> bool:
        """Whether each round takes something from a queue, a socket, a camera, an environment or an iterator."""
        return any(
            last_name(call.func) in TAKING and not by_key(call) and not self.drains(loop, call)
            for call in self.own_calls(loop.body)
        )

    def drains(self, loop: Loop, call: ast.Call) -> bool:
        """Whether a call takes from what the loop empties: `while len(stack) > 0: stack.pop()`."""
        if not isinstance(loop, ast.While) or not isinstance(call.func, ast.Attribute):
            return False
        emptied = self.module.source(call.func.value)
        return call.func.attr == "pop" and emptied in self.module.source(loop.test)

    def works(self, loop: Loop) -> bool:
        """Whether each round computes with tensors at all."""
        return self.module.imports_torch and any(self.computes(call) for call in self.calls_in(loop.body))

    def computes(self, call: ast.Call) -> bool:
        """Whether a call trains, runs a module or computes with tensors; drawing a random number is none of it."""
        if self.is_training_call(call) or self.module.flow.is_module_call(call):
            return True
        operation = (last_name(call.func) or "").removesuffix("_")
        if operation not in OPERATIONS or operation in DRAWS or not self.module.value_of(call).is_tensor:
            return False
        name = self.module.name_of(call.func)
        return name is None or name.startswith("torch.")

    def calls_in(self, body: Sequence[ast.stmt]) -> Iterator[ast.Call]:
        """The calls that these statements run once, those of the file's own functions included."""
        seen: set[ast.AST] = set()
        bodies = [body]
        for _ in range(DEEPEST_CALLS + 1):
            following: list[Sequence[ast.stmt]] = []
            for call in (call for statements in bodies for call in self.own_calls(statements)):
                yield call
                function = self.module.classes.called_function(call)
                if function is not None and function not in seen:
                    seen.add(function)
                    following.append(function.body)
            bodies = following

    def own_calls(self, body: Sequence[ast.stmt]) -> Iterator[ast.Call]:
        """The calls in these statements, but for those in loops of steps."""
        return (
            call
            for call, loops in self.round_of(body).calls
            if not any(self.why(loop) is not None for loop in loops)
        )

    def round_of(self, body: Sequence[ast.stmt]) -> Round:
        """What these statements hold; remembered."""
        key = body[0], len(body)
        if key not in self.rounds:
            self.rounds[key] = round_of(body)
        return self.rounds[key]


def by_key(call: ast.Call) -> bool:
    """Whether a call asks a dict: `options.get("data")`."""
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Constant) and isinstance(first.value, str)


def names_in(node: ast.AST) -> list[str]:
    """The last names of all that an expression mentions; of a loop, those of its target."""
    if isinstance(node, ast.For | ast.AsyncFor):
        node = node.target
    if not isinstance(node, ast.expr):
        return []
    return [last_name(part) or "" for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)]


def counts_by_name(node: ast.expr) -> bool:
    """Whether an expression mentions steps, iterations, batches or a loader."""
    return any(
        pattern.search(name) for name in names_in(node) for pattern in (COUNT_NAME, STEP_TARGET, LOADER_NAME)
    )


def iterables(module: Module, expression: ast.expr, depth: int = 5) -> Iterator[ast.expr]:
    """What a loop really goes over, within enumerate, zip, tqdm and the like."""
    if isinstance(expression, ast.Call) and depth and expression.args:
        wraps = module.name_of(expression.func) in WRAPPERS or last_name(expression.func) in PROGRESS_BARS
        if wraps:
            for argument in expression.args:
                yield from iterables(module, argument, depth - 1)
            return
    yield expression


def has_stride(module: Module, expression: ast.expr) -> bool:
    """Whether a loop goes over a range in strides, as over data in batches."""
    return any(isinstance(part, ast.Call) and len(part.args) == 3 for part in iterables(module, expression))


def range_limit(module: Module, expression: ast.expr) -> ast.expr | None:
    """The end of the range that a loop goes over, within tqdm and the like."""
    for part in iterables(module, expression):
        if not isinstance(part, ast.Call):
            continue
        name = module.name_of(part.func)
        if part.args and (name in RANGES or last_name(part.func) == "trange"):
            return part.args[1] if len(part.args) > 1 else part.args[0]
        if name == "itertools.count":
            return part
    return None
