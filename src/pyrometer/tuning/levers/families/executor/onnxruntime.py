"""`onnxruntime`: the model exported to ONNX, and computed by ONNX Runtime."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pyrometer.tuning.levers.lever import Parameters, lever
from pyrometer.tuning.levers.runtimes.exported import ExportedRuntime
from pyrometer.tuning.levers.runtimes.exporting import Exported, library
from pyrometer.tuning.levers.runtimes.form import Run, runtime_of
from pyrometer.tuning.levers.subject import Subject

_PROVIDER = "CPUExecutionProvider"


@lever
class OnnxRuntime(ExportedRuntime):
    """Export the model to ONNX and let ONNX Runtime compute it."""

    name = "onnxruntime"
    title = "run the model in ONNX Runtime"
    why = (
        "A graph that is optimised ahead of time and run without Python: small models lose nearly all of their overhead, "
        "and convolutions get a layout of their own. Whoever loads it needs ONNX Runtime, and no source of the model."
    )
    dtypes = (torch.float32, torch.float64)
    extra = "onnx"
    modules = ("onnx", "onnxruntime", "onnxscript")
    prior = 0.65
    minutes = 1.0
    pasted = (
        'torch.onnx.export(model, inputs, "model.onnx", dynamo=True)',
        f'session = onnxruntime.InferenceSession("model.onnx", providers=["{_PROVIDER}"])',
        "names = [each.name for each in session.get_inputs()]",
        "model = lambda *xs: session.run(None, {name: x.numpy() for name, x in zip(names, xs)})",
    )

    def refuses(self, subject: Subject) -> str | None:
        """As of other runtimes; summed tables have no operator in ONNX."""
        if any(isinstance(module, nn.EmbeddingBag) for module in subject.model.modules()):
            return "ONNX has no embedding bag: torch exports a loop over the bags, which takes several times as long"
        return super().refuses(subject)

    def made_with(self) -> str:
        """What translates operators to those of ONNX."""
        return f"torch {torch.__version__}, onnxscript {_module('onnxscript').__version__}"

    def write(self, exported: Exported, folder: Path, parameters: Parameters) -> list[Path]:
        """Translate the exported program; large weights lie in a file of their own."""
        path = folder / "model.onnx"
        with library("torch.onnx.export"):
            made: Any = torch.onnx.export(exported.program, dynamo=True, verbose=False)
            made.save(path)
        data = path.with_name(f"{path.name}.data")
        return [path, data] if data.exists() else [path]

    def opened(self, path: Path) -> tuple[Run, Any]:
        """A session with as many threads as torch has now."""
        runtime = _module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3  # errors; warnings are about its own optimisations
        with library("ONNX Runtime"):
            session = runtime.InferenceSession(str(path), options, providers=[_PROVIDER])
        names = [each.name for each in session.get_inputs()]

        def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            # Both ways share memory: no tensor is copied.
            feed = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
            return [torch.from_numpy(array) for array in session.run(None, feed)]

        return run, session

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """A session is what computes, and its provider is the one that was asked for."""
        session = runtime_of(subject.model)
        if session is None:
            return "no session of ONNX Runtime has been opened"
        providers = session.get_providers()
        return None if providers[:1] == [_PROVIDER] else f"the session runs on {', '.join(providers)}"


def _module(name: str) -> Any:
    return importlib.import_module(name)
