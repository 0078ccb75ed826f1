"""What a step is made of: calls of operators, and arithmetic in products of matrices and convolutions."""

from __future__ import annotations

import time
from typing import Annotated, Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.workload.inference import InferenceSession

CONVOLUTION = "convolution"
FUSED = "transformer"
"""In the names of operators that run layers of torch's own encoder at once, whose products are not counted."""

NUM_ROUNDS, NUM_CALLS = 7, 50


class Composition(Record, frozen=True, kw_only=True):
    """What a step of an inference is made of; compiled code is one call."""

    num_calls: Annotated[int, doc("operators that compute, without views")] = 0
    num_products: Annotated[int, doc("of them, matrix products and convolutions")] = 0
    convolution_share: Annotated[float, doc("of the arithmetic, that convolutions do")] = 0.0
    call_s: Annotated[Seconds, doc("what calling a module with one operator takes here, on one number")] = 0.0


class _Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operators that compute, and those of them that are products."""

    num = num_products = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.num += not func.is_view
        self.num_products += func.overloadpacket in flop_registry or FUSED in str(func)
        return func(*args, **(kwargs or {}))


def composition_of(session: InferenceSession) -> Composition:
    """Run a step and count.

    >>> from pyrometer.workload.inference import Inference
    >>> model = nn.Sequential(nn.Conv1d(2, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    >>> with Inference(model, torch.zeros(1, 2, 4)).open() as session:
    ...     found = composition_of(session)
    >>> found.num_calls, found.num_products, round(found.convolution_share, 2)
    (3, 2, 0.4)
    """
    prepared = session.prepare()
    calls = _Calls()  # type: ignore[no-untyped-call]
    with calls, FlopCounterMode(display=False) as counter:
        session.step(prepared)
    flops = counter.get_flop_counts().get("Global", {})
    of_convolutions = sum(flop for packet, flop in flops.items() if CONVOLUTION in str(packet))
    return Composition(
        num_calls=calls.num,
        num_products=calls.num_products,
        convolution_share=of_convolutions / max(sum(flops.values()), 1),
        call_s=_call_s(),
    )


def _call_s() -> Seconds:
    module, number = nn.ReLU(), torch.zeros(1)
    rounds = []
    with torch.inference_mode():
        for _ in range(NUM_ROUNDS):
            begin = time.perf_counter()
            for _ in range(NUM_CALLS):
                module(number)
            rounds.append((time.perf_counter() - begin) / NUM_CALLS)
    return min(rounds)
