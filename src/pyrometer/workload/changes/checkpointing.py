"""Putting modules behind `torch.utils.checkpoint`, and taking them out again.

Only the attribute `forward` of the module itself is laid over: the module stays the same object with the same
parameters, names and hooks, and its hooks run once, not again with the recomputation.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from pyrometer.errors import InputError
from pyrometer.workload.changes.policies import Policy, selective_contexts

_LAID_OVER = ("forward", "__getstate__")


class LaidOver:
    """What stands in the place of a module's forward, and calls it."""

    __call__: Callable[..., Any]

    def __init__(self, forward: Callable[..., Any]) -> None:
        functools.update_wrapper(self, forward)  # its signature is looked at by trainers
        self.inner = forward

    def __deepcopy__(self, memo: dict[int, Any]) -> Callable[..., Any]:
        """The copied module's own forward: some classes, such as parametrized ones, copy all attributes as they are."""
        own: Callable[..., Any] = copy.deepcopy(self.inner, memo)
        return own


class CheckpointedForward(LaidOver):
    """A module's forward whose activations are computed again in the backward pass.

    Args:
        module: whose forward it is.
        policy: what is kept inside.
        buffers: names of buffers that the forward writes to, such as running statistics; the recomputation writes to
            copies of them, so that they are updated once.
        preserve_rng: let the recomputation draw the same random numbers, as dropout needs.
    """

    def __init__(
        self,
        module: nn.Module,
        policy: Policy = "full",
        buffers: Sequence[str] = (),
        *,
        preserve_rng: bool = True,
    ) -> None:
        super().__init__(module.forward)
        self.module = module
        self.buffers = tuple(buffers)
        self.preserve_rng = preserve_rng
        self.policy = policy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module; without gradients there is nothing to compute again."""
        if not torch.is_grad_enabled():
            return self.inner(*args, **kwargs)
        # All as positional arguments: only in these does torch look for the devices whose random state it keeps, and
        # keywords such as `debug` would be taken for its own. Each only once: attention takes another way for three
        # equal arguments, which after the unpacking of each by itself would not be the same any longer.
        given = [*args, *kwargs.values()]
        unique = list({id(value): value for value in given}.values())
        place = {id(value): index for index, value in enumerate(unique)}
        return checkpoint(
            _rebuilt(self.inner, [place[id(value)] for value in given], tuple(kwargs)),
            *unique,
            use_reentrant=False,
            preserve_rng_state=self.preserve_rng,
            **self._contexts(),
        )

    def _contexts(self) -> dict[str, Any]:
        if self.policy == "full" and not self.buffers:
            return {}
        return {"context_fn": self.contexts}

    def contexts(
        self,
    ) -> tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]:
        """Under which the forward runs at first, and under which it is computed again."""
        first, again = selective_contexts(self.policy)
        return first, _under(written_to_copies(self.module, self.buffers), again)


def _rebuilt(
    forward: Callable[..., Any], places: Sequence[int], names: tuple[str, ...]
) -> Callable[..., Any]:
    """The forward as a function of its distinct arguments; `places` says which go where, the last ones by `names`."""
    if not names and list(places) == list(range(len(places))):
        return forward

    def run(*unique: Any) -> Any:
        given = [unique[place] for place in places]
        split = len(given) - len(names)
        return forward(*given[:split], **dict(zip(names, given[split:], strict=True)))

    return run


@contextlib.contextmanager
def _under(*contexts: contextlib.AbstractContextManager[Any]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


@contextlib.contextmanager
def written_to_copies(module: nn.Module, names: Sequence[str]) -> Iterator[None]:
    """Put copies in the place of some buffers, so that what is written to them is lost at the end."""
    places = [_owner(module, name) for name in names]
    kept = [(owner, leaf, getattr(owner, leaf)) for owner, leaf in places]
    for owner, leaf, buffer in kept:
        setattr(owner, leaf, buffer.clone())
    try:
        yield
    finally:
        for owner, leaf, buffer in kept:
            setattr(owner, leaf, buffer)


class _OwnState:
    """What copies and pickles of a module are made of while its forward is laid over: its state without that.

    `copy` and `pickle` ask the module for `__getstate__`, and find this among its attributes.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._own = vars(module).get("forward")

    def __call__(self) -> Any:
        """The state, as the class of the module gives it."""
        given = getattr(type(self._module), "__getstate__", None)  # every class has it from Python 3.11 on
        state = given(self._module) if given else vars(self._module)
        if not isinstance(state, dict):
            return state
        own = {} if self._own is None or "forward" not in state else {"forward": self._own}
        return {key: value for key, value in state.items() if key not in {"forward", "__getstate__"}} | own


class Applied:
    """Forwards that are laid over those of modules; a context manager, or `remove()` when done.

    Copies of the modules that are made meanwhile have their own forwards, as if nothing had been laid over.

    >>> block = nn.Linear(2, 2)
    >>> with Applied([(block, CheckpointedForward(block))]):
    ...     isinstance(block.forward, CheckpointedForward)
    True
    >>> "forward" in vars(block)
    False
    """

    def __init__(self, forwards: Sequence[tuple[nn.Module, Callable[..., Any]]]) -> None:
        self._before = [
            (module, {name: vars(module)[name] for name in _LAID_OVER if name in vars(module)})
            for module, _ in forwards
        ]
        for module, forward in forwards:
            vars(module).setdefault("__getstate__", _OwnState(module))
            vars(module)["forward"] = forward

    def remove(self) -> None:
        """Give every module its own forward back; nothing happens the second time."""
        while self._before:
            module, own = self._before.pop()
            for name in _LAID_OVER:
                vars(module).pop(name, None)
            vars(module).update(own)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def checkpointed(
    model: nn.Module,
    policies: Mapping[str, Policy],
    buffers: Mapping[str, Sequence[str]] | None = None,
    *,
    preserve_rng: bool = True,
) -> Applied:
    """Put modules of a model behind checkpointing until the result is removed.

    Args:
        model: also behind `torch.compile` or `DistributedDataParallel`.
        policies: by module path.
        buffers: by module path, the buffers inside that the forward writes to.
        preserve_rng: let recomputations draw the same random numbers.

    Raises:
        InputError: no such module, or it is behind checkpointing already.
    """
    forwards: list[tuple[nn.Module, Callable[..., Any]]] = []
    for path, policy in policies.items():
        module = module_at(model, path)
        if isinstance(vars(module).get("forward"), CheckpointedForward):
            raise InputError(f"{path}: is checkpointed already; remove the earlier plan from the model first")
        written = (buffers or {}).get(path, ())
        forwards.append((module, CheckpointedForward(module, policy, written, preserve_rng=preserve_rng)))
    return Applied(forwards)


def plain_model(model: nn.Module) -> nn.Module:
    """The model inside of `torch.compile` and `DistributedDataParallel`, whose paths plans are written in."""
    inner = getattr(model, "_orig_mod", model)
    if isinstance(inner, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
        return plain_model(inner.module)
    return inner


def module_at(model: nn.Module, path: str) -> nn.Module:
    """The module with a path.

    Raises:
        InputError: there is none.
    """
    try:
        return plain_model(model).get_submodule(path)
    except AttributeError as error:
        parts = [name for name, _ in plain_model(model).named_children()]
        known = f"its parts are {', '.join(parts)}" if parts else "it has no parts"
        raise InputError(f"{path}: no such module in the model; {known}") from error


def _owner(module: nn.Module, name: str) -> tuple[nn.Module, str]:
    path, _, leaf = name.rpartition(".")
    return module.get_submodule(path), leaf
