"""`openvino`, `openvino_bf16`: the exported model, converted and compiled by OpenVINO."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, ClassVar

import torch

from pyrometer.tuning.levers.lever import Parameters, lever
from pyrometer.tuning.levers.runtimes.exported import ExportedRuntime
from pyrometer.tuning.levers.runtimes.exporting import EXPORTER, Exported, library
from pyrometer.tuning.levers.runtimes.form import Run, runtime_of
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.program.describe import multiplies_bfloat16


@lever
class OpenVino(ExportedRuntime):
    """Convert the exported model for OpenVINO, and let it compute in float32.

    Attributes:
        precision: of products, as OpenVINO names it. Without it, bfloat16 is chosen in silence where the CPU has it.
    """

    precision: ClassVar[str] = "f32"

    name = "openvino"
    title = "run the model in OpenVINO"
    why = (
        "Operators are fused and laid out for the CPU when the model is loaded, much of it by oneDNN. Each call costs "
        "some tens of microseconds: good for convolutions and encoders, and slower for very small models."
    )
    dtypes = (torch.float32,)
    converters = frozenset({EXPORTER, "OpenVINO"})
    extra = "openvino"
    modules = ("openvino",)
    prior = 0.65
    minutes = 0.7
    pasted: ClassVar[tuple[str, ...]] = (
        "exported = torch.export.export(model, inputs)",
        'hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}',
        'model = openvino.compile_model(openvino.convert_model(exported), "CPU", hints)',
    )

    def made_with(self) -> str:
        """What converts."""
        return f"torch {torch.__version__}, openvino {_openvino().__version__}"

    def write(self, exported: Exported, folder: Path, parameters: Parameters) -> list[Path]:
        """Convert, with weights as they are."""
        runtime, path = _openvino(), folder / "model.xml"
        with library("OpenVINO"):
            runtime.save_model(runtime.convert_model(exported.program), path, compress_to_fp16=False)
        return [path, path.with_suffix(".bin")]

    def opened(self, path: Path) -> tuple[Run, Any]:
        """Compiled for this machine, with as many threads as torch has now."""
        hints = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
            "INFERENCE_PRECISION_HINT": self.precision,
        }
        with library("OpenVINO's compiler"):
            compiled = _openvino().Core().compile_model(str(path), "CPU", hints)
            request = compiled.create_infer_request()
        ports = list(compiled.outputs)

        def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            # Inputs are shared; outputs are copied, since the next call writes into the same memory.
            results = request.infer([tensor.numpy() for tensor in tensors], share_inputs=True)
            return [torch.from_numpy(results[port]) for port in ports]

        return run, compiled

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """A compiled model is what computes, on the CPU and in the precision that was asked for."""
        compiled = runtime_of(subject.model)
        if compiled is None:
            return "no model has been compiled by OpenVINO"
        devices = list(compiled.get_property("EXECUTION_DEVICES"))
        if devices != ["CPU"]:
            return f"the compiled model runs on {', '.join(devices)}"
        precision = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        return None if precision == self.precision else f"the compiled model computes in {precision}"


@lever
class OpenVinoBf16(OpenVino):
    """The same, with products in bfloat16."""

    name = "openvino_bf16"
    title = "run the model in OpenVINO, in bfloat16"
    why = (
        "What `openvino` does, with products and convolutions in bfloat16 and all that lies between them fused: fast where "
        "the CPU has instructions for it, such as AMX. Inputs, outputs and files stay in float32."
    )
    fix_class = "tolerance"
    precision = "bf16"
    prior = 0.5
    pasted = tuple(line.replace('"f32"', '"bf16"') for line in OpenVino.pasted)

    def refuses(self, subject: Subject) -> str | None:
        """As for float32; and the CPU has to multiply bfloat16 itself."""
        without = None if multiplies_bfloat16() else "this CPU has no instructions for bfloat16"
        return super().refuses(subject) or without


def _openvino() -> Any:
    return importlib.import_module("openvino")
