"""`cuda_graphs`: the kernels of a call, recorded once and launched together."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from pyrometer.tuning.levers.lever import Executor, Parameters, lever
from pyrometer.tuning.levers.runtimes.exporting import form_of, library
from pyrometer.tuning.levers.runtimes.form import CallForm, Run, RuntimeModel, runtime_of
from pyrometer.tuning.levers.runtimes.shapes import Shapes, TensorShape
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.variant import is_compiled

_WARM_UP = 3


@lever
class CudaGraphs(Executor):
    """Record the kernels of one call, and replay them."""

    name = "cuda_graphs"
    title = "replay the kernels of a call as a CUDA graph"
    why = (
        "Launching a kernel costs the host some microseconds; a graph launches all of them at once. It pays where the GPU "
        "waits for the host. Shapes are fixed, and inputs and outputs are copied."
    )
    stage = "device"
    prior = 0.7
    minutes = 0.2

    def refuses(self, subject: Subject) -> str | None:
        """Work on a CUDA device, that is not compiled: `reduce-overhead` records graphs itself."""
        if subject.device.type != "cuda":
            return f"the work is on {subject.device.type}; CUDA graphs need a CUDA device"
        if any(is_compiled(module) for module in subject.model.modules()):
            return "the model comes compiled"
        elsewhere = {t.device.type for t in subject.example().tensors()} - {"cuda"}
        return f"an input is on {min(elsewhere)}" if elsewhere else None

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Warm up on a stream of its own, and record."""
        form = form_of(subject)
        shapes = Shapes([TensorShape.of(t, varies=False, contiguous=False) for t in form.tensors])
        run, graph = _recorded(subject, form)
        subject.model = RuntimeModel(form, shapes, lambda: (run, graph))
        subject.fixed_shapes = True

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """A recorded graph is what computes."""
        recorded = isinstance(runtime_of(subject.model), torch.cuda.CUDAGraph)
        return None if recorded else "no graph is replayed"


def _recorded(subject: Subject, form: CallForm) -> tuple[Run, Any]:
    inputs = [tensor.clone() for tensor in form.tensors]
    args, kwargs = form.arguments(inputs)
    model = subject.model
    stream = torch.cuda.Stream(subject.device)  # type: ignore[no-untyped-call]
    graph = torch.cuda.CUDAGraph()
    with contextlib.ExitStack() as stack:
        for context in subject.contexts:
            stack.enter_context(context())
        stack.enter_context(library("a CUDA graph"))
        stream.wait_stream(torch.cuda.current_stream(subject.device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                model(*args, **kwargs)
        torch.cuda.current_stream(subject.device).wait_stream(stream)
        with torch.cuda.graph(graph, stream=stream):
            outputs = form.distinct(model(*args, **kwargs))

    def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        for place, tensor in zip(inputs, tensors, strict=True):
            place.copy_(tensor)
        graph.replay()
        return [output.clone() for output in outputs]

    # The weights and the memory of the graph live as long as what replays it.
    run.model = model  # type: ignore[attr-defined]
    return run, graph
