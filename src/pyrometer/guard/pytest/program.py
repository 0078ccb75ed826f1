"""What a test hands to a contract: whether it can be run, does run, and where it stands."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.bench.genuine import unfinished
from pyrometer.errors import InputError
from pyrometer.guard.pytest.result import ContractResult
from pyrometer.memory.private.dispatch import DispatchMode, storage_key, storages
from pyrometer.text import shown_path
from pyrometer.workload.call import Call
from pyrometer.workload.failure import user_code
from pyrometer.workload.whereabouts.lines import CodePoint
from pyrometer.workload.whereabouts.nearest import is_users, nearest_point
from pyrometer.workload.workload import Session, Workload

PROBED_STEPS = 3
DO_THE_WORK = "let each step do its work and wait for it, as in list(…), asyncio.run(…) or future.result()"


def workload_of_test(given: Any) -> Workload:
    """The workload itself, or a function that runs one step as one.

    Raises:
        InputError: it is neither.

    >>> workload_of_test(sorted).name
    'sorted'
    """
    if isinstance(given, Workload):
        return given
    if isinstance(given, nn.Module):
        raise InputError(
            f"work: got the model {type(given).__name__} without inputs; pass pm.Inference(model, inputs)"
        )
    if not callable(given) or isinstance(given, torch.Tensor):
        raise InputError(
            f"work: got {type(given).__name__}; pass pm.Inference(model, inputs), pm.Training(model, loss, optimizer, batches), "
            "or a function without arguments that runs one step"
        )
    return Call(given)


def running(given: Any, verb: str) -> Workload:
    """The workload, which does its work when it is run.

    Raises:
        InputError: it is none, or its steps are no work.
        UserProgramError: a step raised.
    """
    work = workload_of_test(given)
    if (reason := why_not_run(work, needs_operators=False)) is not None:
        raise InputError(f"{verb}: {reason}; {DO_THE_WORK}")
    return work


class Operators(DispatchMode):
    """Counts the operators of steps, and remembers which line made a storage."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0
        self.points: dict[int, CodePoint | None] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.count += 1
        self.saw(func, args, kwargs or {}, result)
        return result

    def saw(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:  # noqa: ARG002 - some want to know which
        """An operator has run; what only looks at a storage in another way did not make it."""
        point, given = nearest_point(), _keys((args, kwargs))
        self.points.update((key, point) for key in _keys(result) - given)


def _keys(values: Any) -> set[int]:
    """Of the storages behind all tensors in a nesting."""
    tensors = (leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor))
    return {storage_key(storage) for tensor in tensors for storage, _ in storages(tensor)}


def why_not_run(work: Workload, *, needs_operators: bool) -> str | None:
    """Why the steps of a workload are no work; `None` where they are.

    Args:
        work: a few of its steps are run.
        needs_operators: whether a step without any operator of torch says nothing, too.

    Raises:
        UserProgramError: a step raised.

    >>> why_not_run(Call(lambda: (number for number in range(3))), needs_operators=False)
    'a step returns a generator: its work has not run when it returns'
    """
    counts = []
    with opened(work) as session:
        for _ in range(PROBED_STEPS):
            with Operators() as seen, user_code("the step"):
                output = session.step(session.prepare())
            counts.append(seen.count)
            kind = unfinished(output)
            if kind is not None:
                for leaf in filter(inspect.iscoroutine, pytree.tree_leaves(output)):
                    leaf.close()  # or Python complains that nobody awaited it
                return f"a step returns {kind}: its work has not run when it returns"
    if counts[0] and not any(counts[1:]):
        return f"the first step runs {counts[0]} operators of torch and later ones none: its answer is kept"
    if needs_operators and not any(counts):
        return "its steps run no operator of torch: there is nothing to see"
    return None


@contextlib.contextmanager
def opened(work: Workload) -> Iterator[Session]:
    """A session whose settings are in force."""
    with work.open() as session:
        session.activate()
        yield session


def judged(
    contract: str, given: Any, judge: Callable[[Workload], ContractResult], *, needs_operators: bool
) -> ContractResult:
    """What a contract says of work that runs; of other work, that nothing can be said.

    Raises:
        InputError: what is given is no workload, or a limit is not legal.
        UserProgramError: a step raised.
    """
    work = workload_of_test(given)
    reason = why_not_run(work, needs_operators=needs_operators)
    if reason is None:
        return judge(work)
    return ContractResult(
        contract=contract,
        workload=work.name,
        outcome="refused",
        promised="a step that does its work",
        measured="nothing",
        reason=reason,
        where=place_of(work),
        advice=DO_THE_WORK,
    )


def place_of(work: Workload) -> list[str]:
    """Where the work is written, as `file:line in name`; empty where Python does not tell.

    >>> place_of(Call(sorted))
    []
    """
    model = getattr(getattr(work, "parts", work), "model", None)
    found: Any = getattr(work, "function", None)
    if isinstance(model, nn.Module):
        kind: Any = type(getattr(model, "_orig_mod", model))
        found = kind.forward
    code = getattr(inspect.unwrap(found), "__code__", None) if callable(found) else None
    if code is None or not is_users(code):
        return []
    return [
        f"{shown_path(code.co_filename)}:{code.co_firstlineno} in {getattr(code, 'co_qualname', code.co_name)}"
    ]
