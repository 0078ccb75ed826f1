"""Which forward operator a backward node belongs to.

Autograd numbers its nodes as they are made, before the operator itself runs; in the backward pass the node that is
being evaluated tells its number. So what is allocated there can be ascribed to the line and module of the forward pass.
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
    return [
        "numbers of autograd nodes: memory of the backward pass is not ascribed to lines of the forward pass"
    ]


def next_number() -> int | None:
    """The number that the next autograd node of this thread will get; `None` where torch does not tell."""
    get = getattr(torch._C._autograd, "_get_sequence_nr", None)  # noqa: SLF001
    return None if get is None else int(get())


def current_node() -> tuple[int, str] | None:
    """Number and name of the node that is being evaluated; `None` outside of a backward pass."""
    get = getattr(torch._C, "_current_autograd_node", None)  # noqa: SLF001
    node = None if get is None else get()
    return None if node is None else (int(node._sequence_nr()), node.name())  # noqa: SLF001
