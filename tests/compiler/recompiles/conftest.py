"""Compile something under a collector, and read what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.log import CompileLog

Call = Callable[[Any], object]


@pytest.fixture
def log_of() -> Callable[..., CompileLog]:
    """Compile a function or module, make the calls, and return the log."""

    def run(target: Any, calls: Sequence[Call], **options: Any) -> CompileLog:
        compiled = torch.compile(target, backend="eager", **options)
        with collect() as collector:
            for call in calls:
                call(compiled)
        return collector.log()

    return run


@pytest.fixture
def setting() -> Callable[..., Any]:
    """Set an attribute for a while."""

    @contextmanager
    def setting(owner: Any, name: str, value: object) -> Iterator[None]:
        before = getattr(owner, name)
        setattr(owner, name, value)
        try:
            yield
        finally:
            setattr(owner, name, before)

    return setting
