"""`int8_static`: convolutions and linear layers in int8, with ranges of activations that were calibrated."""

from __future__ import annotations

import functools
import platform
from typing import Any

import torch
from torch import nn

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.private import inductor_passes_kept, inductor_patch, num_int8_kernels
from pyrometer.tuning.levers.subject import Subject
from pyrometer.tuning.trials.cases import refreshed
from pyrometer.workload.inputs import Arguments

_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
NUM_CALIBRATIONS = 8
SEED = 0


@lever
class Int8Static(Lever):
    """Export, calibrate on several inputs, quantise, and let Inductor choose int8 kernels."""

    name = "int8_static"
    reads_inputs = True
    title = "run convolutions and linear layers in int8, with calibrated ranges"
    why = (
        "With ranges that are known beforehand a layer hands int8 to the next one. It pays only compiled with frozen parameters. "
        "What is beyond the calibrated range is clipped: inputs have to be like those of the workload."
    )
    stage = "compute"
    place = "quantisation"
    fix_class = "semantic"
    excludes = frozenset({"quantisation", "precision"})
    needs = frozenset({"compile"})
    executors = frozenset({"compile"})
    extra = "quant"
    modules = ("torchao",)
    prior = 0.4
    minutes = 2.0

    def refuses(self, subject: Subject) -> str | None:
        """The kernels are those of x86, for float32."""
        if subject.device.type != "cpu" or platform.machine().lower() not in {"x86_64", "amd64"}:
            return "its kernels are for x86 processors"
        if not subject.has(*_LAYERS):
            return "the model has neither linear layers nor convolutions"
        dtypes = {p.dtype for p in subject.model.parameters() if p.is_floating_point()}
        return None if dtypes == {torch.float32} else "the model is not in float32 alone"

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Put the quantised graph in the place of the model; parameters are frozen when it is compiled."""
        with inductor_passes_kept():
            from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

        subject.model = _Exported(_quantised(subject))
        subject.fixed_shapes = True
        settings = {"freezing": True, "pre_grad_custom_pass": x86.quant_lift_up}
        subject.compile_contexts.append(functools.partial(inductor_patch, **settings))

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """The graph quantises, and the generated code calls int8 kernels."""
        if not any(_quantises(module) for module in subject.model.modules()):
            return "no operator of the graph quantises"
        kernels = num_int8_kernels()
        if kernels is None:
            return "this torch does not tell which kernels were generated"
        return None if kernels else "the generated code calls no int8 kernel"


class _Exported(nn.Module):
    """An exported graph, which knows no other mode than the one it was exported in."""

    def __init__(self, graph: nn.Module) -> None:
        super().__init__()
        self.graph = graph
        self.training = False

    def train(self, mode: bool = True) -> _Exported:  # exported graphs raise
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.graph(*args, **kwargs)


def _quantised(subject: Subject) -> nn.Module:
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    inputs = calibration_inputs(subject)
    exported = torch.export.export(subject.model, inputs[0].args, inputs[0].kwargs).module()
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    observed = prepare_pt2e(exported, quantizer)
    for arguments in inputs:
        observed(*arguments.args, **arguments.kwargs)
    graph: nn.Module = convert_pt2e(observed)
    move_exported_model_to_eval(graph)
    return graph


def calibration_inputs(subject: Subject) -> list[Arguments]:
    """The workload's own inputs: as many as it makes by itself, else those given, and others of the same mean and spread."""
    given = [subject.example() for _ in range(NUM_CALIBRATIONS)]
    if any(not torch.equal(a, b) for a, b in zip(given[0].tensors(), given[-1].tensors(), strict=True)):
        return given
    generator = torch.Generator().manual_seed(SEED)
    return [given[0], *(each.mapped(lambda tensor: refreshed(tensor, generator)) for each in given[1:])]


def _quantises(module: nn.Module) -> bool:
    return isinstance(module, torch.fx.GraphModule) and any(
        "quantized_decomposed" in str(node.target) for node in module.graph.nodes
    )
