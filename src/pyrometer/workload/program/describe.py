"""How a workload is set up: read from its objects, and from one step that is watched."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from pyrometer.errors import PyrometerError
from pyrometer.hardware.torch_flags import denormals_flushed
from pyrometer.workload.failure import user_code
from pyrometer.workload.inference import Inference
from pyrometer.workload.program.inputs import input_tensors
from pyrometer.workload.program.modules import (
    Setting,
    activations_of,
    device_of,
    initialised,
    module_facts,
    num_elements,
    parameter_dtypes,
    place_of_class,
    unwrapped,
    wrappers_of,
)
from pyrometer.workload.program.record import InputTensor, OptimizerFact, Program
from pyrometer.workload.program.seen import GradMode, SeenStep, current_grad_mode, watched
from pyrometer.workload.program.strides import strided_reads
from pyrometer.workload.state import optimizer_tensors, tensor_bytes
from pyrometer.workload.surroundings import TorchSettings
from pyrometer.workload.training import Training
from pyrometer.workload.variant import is_compiled
from pyrometer.workload.workload import Session, Workload

PER_BACKEND = ("cuda.matmul", "cudnn.conv")
"""Whose float32 precision the settings tell, where torch has one for each backend."""

BFLOAT16_INSTRUCTIONS = ("amx_bf16", "avx512_bf16", "bf16")


class _Parts(NamedTuple):
    """The objects that a workload consists of, as a session runs them."""

    model: nn.Module | None
    optimizer: torch.optim.Optimizer | None = None
    loss: Callable[..., Any] | None = None
    scaler: torch.amp.GradScaler | None = None


def describe(work: Workload) -> Program:
    """Say how a workload is set up: modules, dtypes, optimizer, wrappers, settings, inputs, and what a step calls.

    One step is run under observation, with compiled code run as it was written; everything is as before at the end.
    A step or an input that raises is told in the notes, and the rest is read from the objects alone.

    >>> from pyrometer.workload.inference import Inference
    >>> found = describe(Inference(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), torch.zeros(2, 4)))
    >>> found.grad_mode, [one.type_name for one in found.modules], found.inputs[0].shape
    ('inference_mode', ['Linear', 'ReLU'], [2, 4])
    """
    batches: list[Any] = []
    notes: list[str] = []
    with contextlib.ExitStack() as stack:
        session: Session | None = None
        try:
            with user_code(f"{work.name}: preparing a step"):
                session = stack.enter_context(_noting_inputs(work, batches).open())
                session.activate()
        except PyrometerError as error:
            notes.append(f"no step was seen: {error}")
        parts = _parts_of(work if session is None else session)
        before = _before_the_step(parts.model)
        seen = SeenStep() if session is None else _one_step(work, session, notes)
        inputs = input_tensors(batches[0]) if batches else _arguments_of(work)
        return _program(work, parts, seen, inputs=inputs, notes=notes, **before)


def describe_objects(models: Sequence[nn.Module], optimizers: Sequence[torch.optim.Optimizer]) -> Program:
    """Say how a running program is set up, by the objects that its steps used; nothing is run.

    Of several models the one is told whose parameters the optimizer has the most of, of several optimizers the largest.

    >>> model, other = nn.Linear(4, 8), nn.Linear(400, 8)
    >>> found = describe_objects([other, model], [torch.optim.SGD(model.parameters())])
    >>> found.kind, found.modules[0].settings["in_features"], found.optimizer.type_name
    ('training', 4, 'SGD')
    """
    optimizer = max(optimizers, key=_num_trained, default=None)
    trained = set() if optimizer is None else {id(tensor) for tensor in _trained(optimizer)}

    def weight(model: nn.Module) -> tuple[int, int]:
        own = [(id(part) in trained, num_elements(part)) for part in model.parameters()]
        return sum(number for is_trained, number in own if is_trained), sum(number for _, number in own)

    model = max(models, key=weight, default=None)
    kind: Literal["training", "script"] = "script" if optimizer is None else "training"
    return Program(
        kind=kind,
        device="none" if model is None else device_of(model),
        compiled=model is not None and any(is_compiled(part) for part in model.modules()),
        grad_mode=_usual_grad_mode(kind),
        optimizer=None if optimizer is None else _optimizer_fact(optimizer),
        settings=torch_settings(),
        **({} if model is None else _model_fields(unwrapped(model), SeenStep())),
    )


def torch_settings() -> dict[str, Setting]:
    """Torch's global settings that change what a step computes or how fast."""
    now = TorchSettings.current()
    precisions = {f"{name.replace('.', '_')}_precision": _backend_precision(name) for name in PER_BACKEND}
    return {
        "threads": now.threads,
        "interop_threads": torch.get_num_interop_threads(),
        "cudnn_benchmark": now.cudnn_benchmark,
        "cudnn_deterministic": now.cudnn_deterministic,
        "matmul_precision": now.matmul_precision,
        **precisions,
        "deterministic": now.deterministic,
        "anomaly": torch.is_anomaly_enabled(),
        "flush_denormal": denormals_flushed(),
        "cpu_bf16": multiplies_bfloat16(),
        "default_dtype": str(now.default_dtype).removeprefix("torch."),
    }


def multiplies_bfloat16() -> bool | None:
    """Whether the processor has instructions for it; without them oneDNN converts, which is slower than float32."""
    capabilities = getattr(torch.cpu, "get_capabilities", None)
    if capabilities is None:
        return None
    found = capabilities()
    return any(found.get(name, False) for name in BFLOAT16_INSTRUCTIONS)


def _backend_precision(name: str) -> str | None:
    backend: Any = torch.backends
    for part in name.split("."):
        backend = getattr(backend, part, None)
    return getattr(backend, "fp32_precision", None)


def _noting_inputs(work: Workload, batches: list[Any]) -> Workload:
    """The same work, which keeps its first batch as the loader gave it, before it moves to the device."""
    if not isinstance(work, (Inference, Training)):
        return work

    def note(batch: Any) -> float:
        if not batches:
            batches.append(batch)
        return 1.0

    own = copy.copy(work)
    own.per_step, own.mask = note, None
    return own


def _one_step(work: Workload, session: Session, notes: list[str]) -> SeenStep:
    """Run one step; what it raises is noted, and what was seen until then is kept."""
    seen = SeenStep()
    model = _parts_of(session).model
    try:
        with user_code(f"{work.name}: a step"), _uncompiled(work), contextlib.ExitStack() as stack:
            prepared = session.prepare()
            seen = stack.enter_context(watched(None if model is None else unwrapped(model), session.device))
            session.step(prepared)
            stack.close()
            session.prepare()  # counts what the step consumed, which is how the batch is noted
        seen.complete = True
    except PyrometerError as error:
        notes.append(f"the step that was to be seen failed: {error}")
    return seen


@contextlib.contextmanager
def _uncompiled(work: Workload) -> Iterator[None]:
    """Run compiled code as it was written: watching it would make it compile anew."""
    if not _runs_compiled(work):
        yield
        return
    set_stance = getattr(torch.compiler, "set_stance", None)
    if set_stance is None:
        raise PyrometerError(
            "this torch cannot run compiled code uncompiled (torch.compiler.set_stance, 2.6)"
        )
    with set_stance("force_eager"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using `torch.compile.* when there are global hooks")
        yield


def _runs_compiled(work: Workload) -> bool:
    if work.config.mode not in {None, "eager"}:
        return True
    parts = _parts_of(work)
    compiled = parts.model is not None and any(is_compiled(part) for part in parts.model.modules())
    functions = (getattr(work, "function", None), parts.loss)
    return compiled or any(
        hasattr(function, "_torchdynamo_orig_callable") or hasattr(function, "_orig_mod")
        for function in functions
    )


def _parts_of(owner: Any) -> _Parts:
    """The objects of a workload or of its session; of a function the module that it is, or is a method of."""
    parts = getattr(owner, "parts", None)
    if parts is not None:
        return _Parts(parts.model, parts.optimizer, parts.loss, parts.scaler)
    function = getattr(owner, "function", getattr(owner, "_function", None))
    for module in (getattr(owner, "model", None), function, getattr(function, "__self__", None)):
        if isinstance(module, nn.Module):
            return _Parts(module)
    return _Parts(None)


def _arguments_of(work: Workload) -> list[InputTensor]:
    return input_tensors(tuple(getattr(work, "args", ())))


def _before_the_step(model: nn.Module | None) -> dict[str, Any]:
    """What a step may change."""
    return {
        "settings": torch_settings(),
        "initialised": {} if model is None else initialised(model),
    }


def _program(work: Workload, parts: _Parts, seen: SeenStep, **known: Any) -> Program:
    model = next(iter(seen.roots), None) if parts.model is None else parts.model
    kind = _kind(work)
    return Program(
        kind=kind,
        device="none" if model is None else device_of(model),
        compiled=_runs_compiled(work),
        grad_mode=seen.grad_mode or _usual_grad_mode(kind),
        autocast_dtype=seen.autocast_dtype,
        optimizer=None if parts.optimizer is None else _optimizer_fact(parts.optimizer),
        loss=_name(parts.loss),
        scaler_scale=float(parts.scaler.get_scale()) if parts.scaler and parts.scaler.is_enabled() else None,
        calls=dict(seen.calls.most_common()) if seen.complete else {},
        active_dropouts=seen.active_dropouts if seen.complete else None,
        strided_reads=strided_reads(seen.strided) if seen.complete else [],
        observed=seen.complete,
        **known,
        **({} if model is None else _model_fields(unwrapped(model), seen)),
    )


def _model_fields(model: nn.Module, seen: SeenStep) -> dict[str, Any]:
    file, line = place_of_class(type(model))
    return {
        "model_file": file,
        "model_line": line,
        "modules": module_facts(model, seen),
        "parameter_dtypes": parameter_dtypes(model),
        "trainable_parameters": sum(
            num_elements(parameter) for parameter in model.parameters() if parameter.requires_grad
        ),
        "wrappers": wrappers_of(model),
        "activations": activations_of(model),
    }


def _kind(work: Workload) -> Literal["inference", "training", "script"]:
    if isinstance(work, Inference):
        return "inference"
    return "training" if isinstance(work, Training) else "script"


def _usual_grad_mode(kind: str) -> GradMode:
    modes: dict[str, GradMode] = {"inference": "inference_mode", "training": "grad"}
    return modes.get(kind) or current_grad_mode()


def _trained(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def _num_trained(optimizer: torch.optim.Optimizer) -> int:
    return sum(map(num_elements, _trained(optimizer)))


def _optimizer_fact(optimizer: torch.optim.Optimizer) -> OptimizerFact:
    groups = optimizer.param_groups
    return OptimizerFact(
        type_name=type(optimizer).__name__,
        fused=groups[0].get("fused"),
        foreach=groups[0].get("foreach"),
        num_groups=len(groups),
        num_tensors=len(_trained(optimizer)),
        num_parameters=_num_trained(optimizer),
        state_bytes=tensor_bytes(optimizer_tensors(optimizer)) if optimizer.state else None,
        settings={
            name: value
            for name, value in groups[0].items()
            if value is None or isinstance(value, (int, float, str, bool))
        },
    )


def _name(function: Any) -> str | None:
    return None if function is None else getattr(function, "__name__", type(function).__name__)
