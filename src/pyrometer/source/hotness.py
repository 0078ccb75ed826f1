"""Code that runs once per step, batch or request, and why."""

from __future__ import annotations

import ast
import dataclasses
from typing import TYPE_CHECKING, Literal

from pyrometer.source.index import FunctionNode, Loop, last_name
from pyrometer.source.rare import is_rare_within
from pyrometer.source.step_loops import BATCH_SIZE, StepLoops, iterables, range_limit
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.source.module import Module

Per = Literal["step", "round", "batch-element", "layer", "request"]

DEEPEST_CALLS = 4
"""Calls that hot code is followed through."""

MODULE_STEPS = words(
    "training_step validation_step test_step predict_step compute_loss on_train_batch_start on_train_batch_end"
    " on_validation_batch_start on_validation_batch_end"
)
TRAINING_STEPS = words("training_step on_train_batch_start on_train_batch_end")
"""Of these, those in which every wait holds up training: what evaluates, or is a part of a step, needs some of them."""

TRAINER_STEPS = words("training_step prediction_step compute_loss")
HANDLER_STEPS = words("handle preprocess inference postprocess")
ROUTES = words("get post put patch websocket route api endpoint")
"""Decorators of web frameworks that make a function the handler of requests."""

PASSED_TO = words("checkpoint step vmap grad value_and_grad jvp vjp cond while_loop")
"""What calls the functions that it is given at once: gradient checkpointing, closures of optimizers, transforms."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hot:
    """Why a place runs often."""

    why: str
    """As in "the loop over loader in line 12"."""
    loop: Loop | None = None
    """The loop whose rounds are the steps, where it is in the same function."""
    function: FunctionNode | None = None
    """The function around the place; None at the top level."""
    per: Per = "step"
    within: Per = "step"
    """What the code around runs once for, loops over elements left out; a "round" is one of a loop that neither trains nor loads."""

    @property
    def during(self) -> str:
        """Why, as the end of a sentence: " in the loop …", or ", called from the loop …"."""
        return f", {self.why}" if self.why.startswith("called") else f" in {self.why}"


class Heat:
    """Which places of one file run often."""

    __slots__ = ("callers", "functions", "loops", "module", "natures", "taking")

    def __init__(self, module: Module) -> None:
        self.module = module
        self.loops = StepLoops(module)
        self.functions: dict[FunctionNode, Hot | None] = {}
        self.natures: dict[FunctionNode, Hot | None] = {}
        self.callers: dict[FunctionNode, tuple[ast.Call, ...]] = {}
        self.taking: dict[str, list[ast.Call]] | None = None

    def hot(self, node: ast.AST) -> Hot | None:
        """Why a node runs often: by a loop around it, by the function that it is in, or by who calls that."""
        function = self.module.function_of(node)
        found = self.by_itself(node)
        if found is None and function is not None:
            if function not in self.functions:
                self.functions[function] = self.by_callers(function)
            found = self.functions[function]
        if found is None or self.module.regions.is_test(function):
            return None
        elements = self.elements_around(node, found.loop)
        if elements is None:
            return found
        why = f"the loop over the elements of a batch in line {elements.lineno}"
        return Hot(why, found.loop, function, "batch-element", found.within)

    def by_itself(self, node: ast.AST) -> Hot | None:
        """Why a node runs often, without looking at who calls its function."""
        function = self.module.function_of(node)
        by_nature = None if function is None else self.step_function(function)
        if by_nature is not None:
            return by_nature  # Its loops are of layers, levels or samples: parts of one step.
        for loop in self.module.loops_around(node):
            why = self.loops.why(loop)
            if why is not None:
                return Hot(why, loop, function, within="step" if self.loops.is_sure(loop) else "round")
        return None

    def elements_around(self, node: ast.AST, step: Loop | None) -> Loop | None:
        """The innermost loop around a node, within its step, that goes over the elements of a batch."""
        for loop in self.module.loops_around(node):
            if loop is step:
                return None
            if not isinstance(loop, ast.While) and self.over_elements(loop):
                return loop
        return None

    def over_elements(self, loop: ast.For | ast.AsyncFor) -> bool:
        """Whether a loop goes over a tensor's first dimension."""
        if any(self.module.value_of(part).is_tensor for part in iterables(self.module, loop.iter)):
            return True
        limit = range_limit(self.module, loop.iter)
        return limit is not None and any(self.is_batch_size(node) for node in ast.walk(limit))

    def is_batch_size(self, node: ast.AST) -> bool:
        """`batch_size`, `x.shape`, `x.size`, `len(x)`."""
        if isinstance(node, ast.Name):
            return BATCH_SIZE.search(node.id) is not None
        if isinstance(node, ast.Attribute):
            return node.attr in {"shape", "size"} and self.module.value_of(node.value).is_tensor
        is_length = isinstance(node, ast.Call) and bool(node.args) and self.module.name_of(node.func) == "len"
        return is_length and isinstance(node, ast.Call) and self.module.value_of(node.args[0]).is_tensor

    def step_function(self, function: FunctionNode) -> Hot | None:
        """Why a function is by its nature run for every batch or request."""
        if function not in self.natures:
            self.natures[function] = self.nature_of(function)
        return self.natures[function]

    def nature_of(self, function: FunctionNode) -> Hot | None:
        """Tell by its class, its name and its decorators."""
        owner = self.module.classes.class_of_method(function)
        if owner is not None:
            per = self.method_runs(owner, function.name)
            within: Per = "layer" if per == "step" and function.name not in TRAINING_STEPS else per or "step"
            if per:
                return Hot(f"the {function.name} of class {owner.name}", None, function, per, within)
            return None
        if any(self.is_route(decorator) for decorator in function.decorator_list) and self.runs_model(
            function
        ):
            return Hot(f"the request handler {function.name}", None, function, "request", "request")
        return None

    def method_runs(self, owner: ast.ClassDef, name: str) -> Per | None:
        """What a method of this name runs once for."""
        classes = self.module.classes
        if name in {"forward", "backward"}:
            is_function = classes.derives_from(owner, "Function")
            is_layer = is_function or (name == "forward" and classes.is_module(owner))
            return "layer" if is_layer else None
        if name in MODULE_STEPS and classes.is_module(owner):
            return "step"
        if name in TRAINER_STEPS and classes.derives_from(owner, "Trainer"):
            return "step"
        return "request" if name in HANDLER_STEPS and classes.derives_from(owner, "Handler") else None

    def is_route(self, decorator: ast.expr) -> bool:
        """`@app.post("/predict")`."""
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        return isinstance(target, ast.Attribute) and target.attr in ROUTES

    def runs_model(self, function: FunctionNode) -> bool:
        """Whether a function calls a model, by itself or in a function of this file."""
        return any(self.module.flow.is_module_call(call) for call in self.loops.calls_in(function.body))

    def by_callers(self, function: FunctionNode) -> Hot | None:
        """The nearest hot place from which a function is called, and not seldom."""
        level, seen = [function], {function}
        for _ in range(DEEPEST_CALLS):
            following: list[FunctionNode] = []
            for call in (call for one in level for call in self.calls_of(one)):
                hot = self.by_itself(call)
                if is_rare_within(self.module, call, hot.loop if hot else None):
                    continue
                if hot is not None:
                    within: Per = "layer" if hot.within == "step" and hot.loop is None else hot.within
                    return Hot(f"called from {hot.why}", None, function, hot.per, within)
                caller = self.module.function_of(call)
                if caller is not None and caller not in seen:
                    seen.add(caller)
                    following.append(caller)
            level = following
        return None

    def calls_of(self, function: FunctionNode) -> tuple[ast.Call, ...]:
        """The calls of this file that run a function, itself or by passing it to what calls it at once."""
        if function not in self.callers:
            classes, index = self.module.classes, self.module.index
            calls = [
                call
                for call in index.calls_ending_in(function.name)
                if classes.called_function(call) is function
            ]
            calls += [call for call in self.takers().get(function.name, ()) if self.is_passed(function, call)]
            self.callers[function] = tuple(calls)
        return self.callers[function]

    def takers(self) -> dict[str, list[ast.Call]]:
        """The calls of PASSED_TO by the last names of their arguments."""
        if self.taking is None:
            self.taking = {}
            for call in (
                call for taker in sorted(PASSED_TO) for call in self.module.index.calls_ending_in(taker)
            ):
                for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
                    self.taking.setdefault(last_name(argument) or "", []).append(call)
        return self.taking

    def is_passed(self, function: FunctionNode, call: ast.Call) -> bool:
        """Whether a function is an argument of a call."""
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        nodes = [argument for argument in arguments if last_name(argument) == function.name]
        return any(self.module.classes.function_meant(argument) is function for argument in nodes)
