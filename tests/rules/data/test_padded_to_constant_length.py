"""PYR317: batches padded to a constant length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def test_padding_to_the_longest_gives_the_same_words(run: Callable[..., dict[str, Any]]) -> None:
    samples = [torch.arange(1, n) for n in (5, 9, 3)]
    fixed, longest = (
        run("PYR317", heading, torch=torch)["collate"](samples) for heading in ("Example", "Use instead")
    )
    assert longest.shape == (3, 8)
    assert torch.equal(fixed[:, :8], longest)
    assert not fixed[:, 8:].any()
