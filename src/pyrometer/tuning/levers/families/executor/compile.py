"""`compile`: the model behind `torch.compile`, with constants frozen where that is chosen."""

from __future__ import annotations

import functools
from typing import Any

import torch

from pyrometer.bench.dynamo import graph_counts
from pyrometer.tuning.levers.lever import Lever, Parameters
from pyrometer.tuning.levers.private import inductor_patch, missing_compiler, num_frozen_parameters
from pyrometer.tuning.levers.registry import lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.variant import is_compiled


@lever
class Compile(Lever):
    """Put the model behind `torch.compile`."""

    name = "compile"
    title = "compile the model"
    why = (
        "Inductor fuses elementwise operators and reductions; with frozen parameters it also lays out weights in advance, "
        "which is most of the gain on a CPU. Guards cost some ten microseconds a call: small models become slower."
    )
    stage = "compile"
    place = "executor"
    fix_class = "exact"
    kinds = frozenset({"inference", "training"})
    excludes = frozenset({"executor"})
    prior = 0.7
    minutes = 1.0

    def refuses(self, subject: Subject) -> str | None:
        """What is compiled already, or cannot be compiled on this machine."""
        if any(is_compiled(module) for module in subject.model.modules()):
            return "the model comes compiled"
        return missing_compiler(subject.device)

    def choices(self, subject: Subject) -> list[Parameters]:
        """On a CPU with frozen parameters first; on a GPU with CUDA graphs, too."""
        if subject.is_training:
            return [{"mode": "default"}]
        if subject.device.type == "cuda":
            return [{"mode": "default"}, {"mode": "reduce-overhead"}, {"mode": "max-autotune"}]
        shapes: Parameters = {"dynamic": True} if subject.shapes_vary() else {}
        return [{"mode": "default", "freezing": True, **shapes}, {"mode": "default", **shapes}]

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Wrap the model; nothing is compiled before the first call."""
        if parameters.get("freezing"):
            subject.compile_contexts.append(functools.partial(inductor_patch, freezing=True))
        mode = parameters.get("mode", "default")
        if subject.is_training:
            subject.work = subject.work.variant(mode=mode)
            return
        compiled: Any = torch.compile(subject.model, mode=mode, dynamic=parameters.get("dynamic"))
        subject.model = compiled

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Dynamo captured a graph; with freezing, the weights became constants of it."""
        del subject
        counts = graph_counts()
        if counts is not None and counts.num_graphs == 0:
            return "no graph was captured: the model runs as before"
        if parameters.get("freezing") and not (frozen := num_frozen_parameters()):
            return (
                "no parameter was frozen into a graph"
                if frozen == 0
                else "this torch does not tell whether parameters were frozen"
            )
        return None

    def lines(self, parameters: Parameters) -> list[str]:
        """The call, and the global setting where parameters are frozen."""
        mode = parameters.get("mode", "default")
        chosen = "" if mode == "default" else f", mode={mode!r}"
        chosen += ", dynamic=True" if parameters.get("dynamic") else ""
        frozen = ["torch._inductor.config.freezing = True  # before the first call, under torch.no_grad()"]
        return [*(frozen if parameters.get("freezing") else []), f"model = torch.compile(model{chosen})"]
