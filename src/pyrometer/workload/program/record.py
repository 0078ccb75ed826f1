"""How a program is set up, as far as it can be read without running it."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class InputTensor(Record, frozen=True, kw_only=True):
    """One tensor that a step is given."""

    name: Annotated[str, doc("where it stands in the inputs or the batch, such as 0, x or batch.labels")]
    shape: list[int]
    dtype: str
    device: str
    num_bytes: Bytes
    pinned: bool = False
    contiguous: bool = True
    channels_last: bool = False


class ModuleFact(Record, frozen=True, kw_only=True):
    """One submodule without children, or one that stands for its children (attention, a recurrent layer)."""

    path: Annotated[str, doc("such as encoder.layers.0.linear1; empty for the model itself")]
    type_name: Annotated[str, doc("class, such as Conv2d; with its module where it is not of torch.nn")]
    training: bool
    num_parameters: int
    dtype: str | None = None
    file: Annotated[str | None, doc("where its class is defined, for classes of the user's own")] = None
    line: int | None = None
    settings: Annotated[
        dict[str, int | float | str | bool | None], doc("what its constructor was given, such as in_features")
    ] = {}
    channels_last: Annotated[bool, doc("its weight, of four dimensions, lies in channels_last")] = False
    calls: Annotated[int | None, doc("in one step; null where no step was seen")] = None
    follows: Annotated[
        str | None,
        doc("module whose output it was given as it was, where nothing else read that in the step"),
    ] = None


class OptimizerFact(Record, frozen=True, kw_only=True):
    """The optimizer of a training."""

    type_name: str
    fused: bool | None = None
    foreach: bool | None = None
    num_groups: int
    num_tensors: int
    num_parameters: int
    state_bytes: Annotated[Bytes | None, doc("null before the first step")] = None
    settings: Annotated[
        dict[str, int | float | str | bool | None], doc("of its first group, such as lr and momentum")
    ] = {}


class StridedRead(Record, frozen=True, kw_only=True):
    """A function that read a large tensor across its memory: neighbours in its result are far apart in the operand."""

    function: str
    shape: list[int]
    strides: Annotated[list[int], doc("in elements, of the operand")]
    calls: Annotated[int, doc("in one step")]
    file: Annotated[str | None, doc("the user's line that called it")] = None
    line: int | None = None


class Wrapper(Record, frozen=True, kw_only=True):
    """A wrapper for several ranks around a module: DistributedDataParallel, FullyShardedDataParallel, DataParallel."""

    path: str
    type_name: str
    settings: dict[str, int | float | str | bool | None] = {}


class Program(Record, frozen=True, kw_only=True):
    """One workload's set-up."""

    kind: Literal["inference", "training", "script"]
    device: Annotated[str, doc("on which the parameters lie: cpu, cuda, mixed, or none without parameters")]
    compiled: Annotated[bool, doc("the model or the step was passed to torch.compile")]
    grad_mode: Annotated[
        Literal["grad", "no_grad", "inference_mode"], doc("in which the step of an inference runs the model")
    ]
    autocast_dtype: Annotated[str | None, doc("null where no autocast was seen around the model's call")] = (
        None
    )
    model_file: Annotated[str | None, doc("where the model's class is defined")] = None
    model_line: int | None = None
    modules: list[ModuleFact] = []
    parameter_dtypes: Annotated[dict[str, int], doc("number of elements by dtype")] = {}
    trainable_parameters: int = 0
    inputs: list[InputTensor] = []
    optimizer: OptimizerFact | None = None
    loss: Annotated[str | None, doc("name of the loss function or module")] = None
    scaler_scale: Annotated[float | None, doc("of a GradScaler")] = None
    wrappers: list[Wrapper] = []
    settings: Annotated[
        dict[str, int | float | str | bool | None],
        doc(
            "torch's own: threads, interop_threads, cudnn_benchmark, matmul_precision, deterministic, anomaly, flush_denormal, cpu_bf16 (the processor multiplies bfloat16)"
        ),
    ] = {}
    activations: Annotated[dict[str, int], doc("activation modules by type")] = {}
    initialised: Annotated[
        dict[str, str],
        doc("how weights of linear and convolution layers look: default, zero, constant, or other"),
    ] = {}
    calls: Annotated[
        dict[str, int], doc("functional calls seen in one step, by name; empty if no step was run")
    ] = {}
    strided_reads: Annotated[list[StridedRead], doc("in one step, the largest first")] = []
    active_dropouts: Annotated[
        int | None, doc("functional dropouts in one step that set elements to zero; null if no step was seen")
    ] = None
    observed: Annotated[bool, doc("one step was run and seen")] = False
    notes: list[str] = []
