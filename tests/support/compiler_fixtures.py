"""Each test starts with nothing compiled, and leaves nothing behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def fresh_dynamo(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forget what was compiled, so that limits and automatic dynamic sizes of one test do not reach the next.

    Modules that share a compiled fixture set `keeps_compiled = True`.
    """
    if getattr(request.module, "keeps_compiled", False):
        yield
        return
    _reset()
    yield
    _reset()


def _reset() -> None:
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()
