"""`compile`: the model behind `torch.compile`, with constants frozen where that is chosen."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn

from pyrometer.bench.dynamo import graph_counts
from pyrometer.tuning.levers.attention import written_out
from pyrometer.tuning.levers.lever import Executor, Parameters, lever
from pyrometer.tuning.levers.private import (
    inductor_patch,
    missing_compiler,
    num_cpp_wrappers,
    num_frozen_parameters,
)
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.variant import is_compiled


def uncompilable(subject: Subject) -> str | None:
    """Why a model is not compiled: it comes so, or this machine cannot."""
    if any(is_compiled(module) for module in subject.model.modules()):
        return "the model comes compiled"
    return missing_compiler(subject.device)


SWITCHES = ("freezing", "cpp_wrapper")
"""Parameters that are settings of Inductor of the same name."""

AUTOTUNE = "max-autotune-no-cudagraphs"


@lever
class Compile(Executor):
    """Put the model behind `torch.compile`."""

    name = "compile"
    title = "compile the model"
    why = (
        "Inductor fuses elementwise operators and reductions; with frozen parameters it also lays out weights in advance, "
        "which is most of the gain on a CPU. Guards cost some ten microseconds a call: small models become slower."
    )
    stage = "compile"
    kinds = frozenset({"inference", "training"})
    prior = 0.7
    minutes = 1.0

    def refuses(self, subject: Subject) -> str | None:
        """What is compiled already, or cannot be compiled on this machine."""
        return uncompilable(subject)

    def choices(self, subject: Subject) -> list[Parameters]:
        """On a CPU with frozen parameters first, then with what takes longer to compile; on a GPU with CUDA graphs, too.

        Attention of `torch.nn` is written out for the compiler, which would take its fused call as it is.
        """
        if subject.is_training:
            return [{"mode": "default"}]
        if subject.device.type == "cuda":
            return [{"mode": "default"}, {"mode": "reduce-overhead"}, {"mode": "max-autotune"}]
        shapes: Parameters = {"dynamic": True} if subject.shapes_vary() else {}
        if subject.has(nn.TransformerEncoderLayer, nn.MultiheadAttention):
            shapes = {**shapes, "fastpath": False}
        frozen: dict[str, Any] = {"mode": "default", "freezing": True}
        variants = [frozen, {"mode": "default"}, frozen | {"cpp_wrapper": True}, frozen | {"mode": AUTOTUNE}]
        return [{**variant, **shapes} for variant in variants]

    def minutes_with(self, parameters: Parameters) -> float:
        """Kernels that are chosen by trial are all compiled: two to three times as long."""
        return self.minutes * (2.5 if parameters.get("mode") == AUTOTUNE else 1.0)

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Wrap the model; nothing is compiled before the first call."""
        switched = {name: True for name in SWITCHES if parameters.get(name)}
        if switched:
            subject.compile_contexts.append(functools.partial(inductor_patch, **switched))
        if parameters.get("fastpath") is False:
            subject.contexts.append(written_out)
        mode = parameters.get("mode", "default")
        if subject.is_training:
            subject.work = subject.work.variant(mode=mode)
            return
        compiled: Any = torch.compile(subject.model, mode=mode, dynamic=parameters.get("dynamic"))
        subject.model = compiled

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Dynamo captured a graph; with freezing, the weights became constants of it."""
        counts = graph_counts()
        if counts is not None and counts.num_graphs == 0:
            return "no graph was captured: the model runs as before"
        if parameters.get("freezing") and not (frozen := num_frozen_parameters()):
            if frozen == 0:
                return "no parameter was frozen into a graph"
            return "this torch does not tell whether parameters were frozen"
        if parameters.get("cpp_wrapper") and not num_cpp_wrappers():
            return "no generated code is seen that calls its kernels from C++"
        return None

    def lines(self, parameters: Parameters) -> list[str]:
        """The call, and the global setting where parameters are frozen."""
        mode = parameters.get("mode", "default")
        chosen = "" if mode == "default" else f", mode={mode!r}"
        chosen += ", dynamic=True" if parameters.get("dynamic") else ""
        switched = [name for name in SWITCHES if parameters.get(name)]
        lines = [
            f"torch._inductor.config.{name} = True  # before the first call, under torch.no_grad()"
            for name in switched
        ]
        if parameters.get("fastpath") is False:
            lines.append("torch.backends.mha.set_fastpath_enabled(False)  # for as long as the model runs")
        return [*lines, f"model = torch.compile(model{chosen})"]
