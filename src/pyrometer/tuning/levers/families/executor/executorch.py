"""`executorch`: the model in a file that ExecuTorch runs, on phones and other small machines as on this one."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from pyrometer.tuning.levers.lever import Parameters, lever
from pyrometer.tuning.levers.runtimes.exported import ExportedRuntime
from pyrometer.tuning.levers.runtimes.exporting import Exported, library
from pyrometer.tuning.levers.runtimes.form import Run, runtime_of
from pyrometer.tuning.levers.subject import Subject

_BACKEND = "XnnpackBackend"


@lever
class ExecuTorch(ExportedRuntime):
    """Export the model for ExecuTorch, with all that XNNPACK computes left to it."""

    name = "executorch"
    title = "run the model in ExecuTorch, as phones do"
    why = (
        "One file that is run without Python and without torch, in a library of a megabyte or two: what is deployed on phones and small "
        "boards. XNNPACK computes products and convolutions; the rest is computed by portable kernels, which are slow."
    )
    dtypes = (torch.float32,)
    any_batch = False  # memory is planned for the sizes that were exported
    extra = "mobile"
    modules = ("executorch",)
    prior = 0.9
    minutes = 1.0
    pasted = (
        "exported = torch.export.export(model, inputs)",
        "lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])  # of executorch.exir",
        'open("model.pte", "wb").write(lowered.to_executorch().buffer)',
        'method = Runtime.get().load_program("model.pte").load_method("forward")  # of executorch.runtime',
        "model = lambda *xs: method.execute(list(xs))",
    )

    def made_with(self) -> str:
        """What lowers the exported program."""
        return f"torch {torch.__version__}, executorch {_module('executorch.version').__version__}"

    def write(self, exported: Exported, folder: Path, parameters: Parameters) -> list[Path]:
        """Lower the exported program, with what XNNPACK takes handed to it."""
        path = folder / "model.pte"
        partitioner = _module(
            "executorch.backends.xnnpack.partition.xnnpack_partitioner"
        ).XnnpackPartitioner()
        with library("ExecuTorch"):
            lowered = _module("executorch.exir").to_edge_transform_and_lower(
                exported.program, partitioner=[partitioner]
            )
            path.write_bytes(lowered.to_executorch().buffer)
        return [path]

    def opened(self, path: Path) -> tuple[Run, Any]:
        """The method of the file, loaded."""
        with library("ExecuTorch's runtime"):
            method = _module("executorch.runtime").Runtime.get().load_program(path).load_method("forward")

        def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            # The next call writes into the same memory.
            return [result.clone() for result in method.execute(tensors)]

        return run, method

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """A method of the file is what computes."""
        return None if runtime_of(subject.model) is not None else "no program has been loaded by ExecuTorch"


def _module(name: str) -> Any:
    return importlib.import_module(name)
