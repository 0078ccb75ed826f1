"""What is entered in this thread: dispatch modes, saved-tensor hooks and transforms, which torch keeps on stacks.

Whoever leaves something that is not on top takes somebody else's away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def missing() -> list[str]:
    """What this torch lacks.

    >>> missing()
    []
    """
    lacking = []
    if not hasattr(torch._C, "_get_dispatch_stack_at"):  # noqa: SLF001
        lacking.append(
            "a look at the stack of dispatch modes: scripts that enter one of their own are not recorded"
        )
    if not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"):  # noqa: SLF001
        lacking.append(
            "a look at the stack of saved-tensor hooks: what autograd saves in scripts is not followed"
        )
    return lacking


def top_dispatch_mode() -> Any | None:
    """The innermost dispatch mode of this thread.

    >>> top_dispatch_mode() is None
    True
    """
    depth = torch._C._len_torch_dispatch_stack()  # noqa: SLF001
    return torch._C._get_dispatch_stack_at(depth - 1) if depth else None  # noqa: SLF001


def top_pack_hook() -> Callable[[torch.Tensor], Any] | None:
    """The innermost function that packs what autograd saves in this thread.

    >>> with torch.autograd.graph.saved_tensors_hooks(torch.detach, torch.detach):
    ...     top_pack_hook()
    <built-in method detach of type object at ...>
    """
    hooks: Any = torch._C._autograd._top_saved_tensors_default_hooks(False)  # noqa: SLF001
    return hooks[0] if hooks else None


def in_transform() -> bool:
    """Whether a transform of `torch.func` runs in this thread; tensors inside have no storage.

    >>> in_transform(), torch.func.vmap(lambda x: x * in_transform())(torch.ones(2))
    (False, tensor([1., 1.]))
    """
    functorch = getattr(torch._C, "_functorch", None)  # noqa: SLF001
    peek = getattr(functorch, "peek_interpreter_stack", None)
    return peek is not None and peek() is not None


def is_clear() -> bool:
    """Whether nothing is entered in this thread, so that what is entered now is left by nobody else.

    >>> is_clear()
    True
    """
    return top_dispatch_mode() is None and top_pack_hook() is None and not in_transform()
