"""What a step is made of: calls of operators, and arithmetic in products of matrices and convolutions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.tuning.levers.attention import written_out
from pyrometer.workload.inference import InferenceSession

CONVOLUTION = "convolution"
NUM_ROUNDS, NUM_CALLS = 20, 50
LONGEST_S: Seconds = 1.0
LARGE = 512
_TABLES = (nn.Embedding, nn.EmbeddingBag)


class Composition(Record, frozen=True, kw_only=True):
    """What a step of an inference is made of; compiled code is one call."""

    num_calls: Annotated[int, doc("operators that compute, without views")] = 0
    num_products: Annotated[int, doc("of them, matrix products and convolutions")] = 0
    convolution_share: Annotated[float, doc("of the arithmetic, that convolutions do")] = 0.0
    least_share: Annotated[
        float,
        doc(
            "of a step, that its arithmetic would take at the rate of a large product: as much at least is spent in products"
        ),
    ] = 0.0
    step_s: Annotated[Seconds, doc("of the shortest of some steps; others may use the machine, too")] = 0.0
    weights_s: Annotated[
        Seconds, doc("to convert the weights of products to bfloat16 once, as autocast does in each step")
    ] = 0.0
    call_s: Annotated[Seconds, doc("of the shortest call of a module with one operator, on one number")] = 0.0


class _Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operators that compute, and those of them that are products."""

    num = num_products = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.num += not func.is_view
        self.num_products += func.overloadpacket in flop_registry
        return func(*args, **(kwargs or {}))


def composition_of(session: InferenceSession) -> Composition:
    """Run a step twice and count: operators as they are called, then as they are decomposed, which shows their products.

    >>> from pyrometer.workload.inference import Inference
    >>> model = nn.Sequential(nn.Conv1d(2, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    >>> with Inference(model, torch.zeros(1, 2, 4)).open() as session:
    ...     found = composition_of(session)
    >>> found.num_calls, found.num_products, round(found.convolution_share, 2)
    (3, 2, 0.4)
    """
    prepared = session.prepare()
    called, decomposed = _Calls(), _Calls()  # type: ignore[no-untyped-call]
    with called:
        session.step(prepared)
    with written_out(), decomposed, FlopCounterMode(display=False) as counter:
        session.step(prepared)
    flops = counter.get_flop_counts().get("Global", {})
    of_convolutions = sum(flop for packet, flop in flops.items() if CONVOLUTION in str(packet))
    step_s, total = _shortest_s(lambda: session.step(prepared), 1), sum(flops.values())
    return Composition(
        num_calls=called.num,
        num_products=decomposed.num_products,
        convolution_share=of_convolutions / max(total, 1),
        least_share=min(total / _flop_per_s() / step_s, 1.0),
        step_s=step_s,
        weights_s=_shortest_s(lambda: _convert_all(session.model), 1),
        call_s=_call_s(),
    )


def _convert_all(model: nn.Module) -> None:
    """But for tables, of which a step reads a few rows."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, _TABLES)}
    for parameter in model.parameters():
        if id(parameter) not in tables:
            parameter.detach().to(torch.bfloat16)


def _flop_per_s() -> float:
    matrix = torch.ones(LARGE, LARGE)
    with torch.inference_mode():
        return 2 * LARGE**3 / _shortest_s(lambda: matrix @ matrix, 1)


def _call_s() -> Seconds:
    module, number = nn.ReLU(), torch.zeros(1)
    with torch.inference_mode():
        return _shortest_s(lambda: module(number), NUM_CALLS)


def _shortest_s(call: Callable[[], object], num_calls: int) -> Seconds:
    """The shortest round of some, as long as there is time; per call."""
    rounds: list[Seconds] = []
    began = time.perf_counter()
    while len(rounds) < NUM_ROUNDS and (not rounds or time.perf_counter() - began < LONGEST_S):
        begin = time.perf_counter()
        for _ in range(num_calls):
            call()
        rounds.append((time.perf_counter() - begin) / num_calls)
    return min(rounds)
