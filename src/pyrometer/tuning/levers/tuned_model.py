"""The model with what levers laid around it: changed inputs, contexts, changed outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.utils import _pytree as pytree

ContextFactory: TypeAlias = Callable[[], contextlib.AbstractContextManager[Any]]
TensorChange: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
_SEEN_AT_MOST = 4096


class TunedModel(nn.Module):
    """Calls a model with changed inputs, within contexts, and changes its outputs.

    Each call costs what its contexts cost, and less than a microsecond where there are none. Contexts of compilers are
    entered only for shapes and dtypes that were not seen before.
    """

    def __init__(
        self,
        inner: nn.Module,
        inputs_changed: Sequence[TensorChange],
        outputs_changed: Sequence[TensorChange],
        contexts: Sequence[ContextFactory],
        compile_contexts: Sequence[ContextFactory],
    ) -> None:
        super().__init__()
        self.inner = inner
        self._inputs_changed = tuple(inputs_changed)
        self._outputs_changed = tuple(outputs_changed)
        self._contexts = tuple(contexts)
        self._compile_contexts = tuple(compile_contexts)
        self._seen: set[Any] = set()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model."""
        for change in self._inputs_changed:
            args, kwargs = _mapped(change, args), _mapped(change, kwargs) if kwargs else kwargs
        if self._compile_contexts and not self._was_seen(args, kwargs):
            with _entered((*self._compile_contexts, *self._contexts)):
                output = self.inner(*args, **kwargs)
        elif self._contexts:
            with _entered(self._contexts):
                output = self.inner(*args, **kwargs)
        else:
            output = self.inner(*args, **kwargs)
        for change in self._outputs_changed:
            output = _mapped(change, output)
        return output

    def _was_seen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        leaves = args if not kwargs else (*args, *kwargs.values())
        key = tuple(
            (leaf.shape, leaf.dtype, leaf.requires_grad) if isinstance(leaf, torch.Tensor) else _nested(leaf)
            for leaf in leaves
        )
        if key in self._seen:
            return True
        if len(self._seen) < _SEEN_AT_MOST:
            self._seen.add(key)
        return False


def _nested(value: Any) -> Any:
    """What tells values apart that are no tensors, where a compiler may look at them."""
    leaves = pytree.tree_leaves(value)
    return tuple(
        (leaf.shape, leaf.dtype)
        if isinstance(leaf, torch.Tensor)
        else leaf
        if isinstance(leaf, (int, float, bool, str, type(None)))
        else type(leaf)
        for leaf in leaves
    )


def _mapped(change: TensorChange, value: Any) -> Any:
    """Plain tuples of tensors, the common case, without a walk through the tree."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) is tuple:
        return tuple(_mapped(change, part) for part in value)
    return pytree.tree_map_only(torch.Tensor, change, value)


@contextlib.contextmanager
def _entered(factories: Sequence[ContextFactory]) -> Any:
    with contextlib.ExitStack() as stack:
        for factory in factories:
            stack.enter_context(factory())
        yield
