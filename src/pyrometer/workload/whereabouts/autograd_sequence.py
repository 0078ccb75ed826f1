"""Which forward operator a backward node belongs to, as torch keeps it to itself.

Autograd numbers its nodes as they are made, before the operator itself runs; in the backward pass the node that is
being evaluated tells its number. So what happens there can be ascribed to the line and module of the forward pass.
"""

from __future__ import annotations

import torch


def missing() -> list[str]:
    """What this torch lacks.

    >>> missing()
    []
    """
    if hasattr(torch._C, "_current_autograd_node") and hasattr(torch._C._autograd, "_get_sequence_nr"):  # noqa: SLF001
        return []
    return ["numbers of autograd nodes: the backward pass is not ascribed to lines of the forward pass"]


def last_number() -> int | None:
    """The number of the last autograd node that this thread made; `None` without one, or where torch does not tell."""
    get = getattr(torch._C._autograd, "_get_sequence_nr", None)  # noqa: SLF001
    following = 0 if get is None else int(get())
    return following - 1 if following else None


def current_node() -> tuple[int, str] | None:
    """Number and name of the node that is being evaluated; `None` outside of a backward pass."""
    get = getattr(torch._C, "_current_autograd_node", None)  # noqa: SLF001
    node = None if get is None else get()
    return None if node is None else (int(node._sequence_nr()), node.name())  # noqa: SLF001
