"""What `torch.nn.Module.compile` leaves on a module, so that it can be taken off again.

Since torch 2.2 a module that was compiled in place holds its compiled call in `_compiled_call_impl`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import nn

NAME = "_compiled_call_impl"


@contextlib.contextmanager
def compiled_in_place(modules: list[nn.Module], **options: Any) -> Iterator[None]:
    """Hold modules compiled by `Module.compile(**options)` for the length of a block."""
    before = [vars(module).get(NAME) for module in modules]
    try:
        for module in modules:
            module.compile(**options)
        yield
    finally:
        for module, call in zip(modules, before, strict=True):
            setattr(module, NAME, call)


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    found = hasattr(nn.Module, NAME)
    return (
        []
        if found
        else ["compiling modules in place for a while: this torch's modules have no compiled call"]
    )
