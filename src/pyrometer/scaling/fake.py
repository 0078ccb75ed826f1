"""Process groups that send nothing, of any number of ranks: torch's own, private to its tests."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from pyrometer.errors import InputError


def join_fake_world(ranks: int) -> None:
    """Make this process rank 0 of so many that are not there.

    Raises:
        InputError: this torch has no fake process group.
    """
    store = _fakes().FakeStore()
    dist.init_process_group("fake", rank=0, world_size=ranks, store=store)


def fake_group() -> dist.ProcessGroup:
    """A group of all ranks beside the real one, in which each answers itself.

    Raises:
        InputError: this torch has no fake process group.
    """
    _fakes()
    group: dist.ProcessGroup = dist.new_group(backend="fake")
    return group


def _fakes() -> Any:
    """The module, which makes the backend known."""
    try:
        from torch.testing._internal.distributed import fake_pg  # the one place that has it
    except ImportError as error:
        raise InputError(
            f"torch {torch.__version__} has no fake process group; scale needs torch 2.13 or later"
        ) from error
    return fake_pg
