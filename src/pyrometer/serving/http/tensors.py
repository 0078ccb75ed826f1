"""Tensors in requests and answers of the Open Inference Protocol, version 2: as JSON, or as bytes behind it.

What a request says of itself is held against what the model takes before a single value is read. In JSON `null` is NaN, both ways.
"""

from __future__ import annotations

import math
from array import array as numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch

from pyrometer.errors import InputError
from pyrometer.serving.running.signature import VARYING, TensorSpec

MOST_DIMS = 16
MOST_IN_JSON = 4096
"""Values of a request that a client writes as text."""
Array = np.ndarray[Any, Any]
Parameters = dict[str, Any]


class RequestInput(msgspec.Struct):
    """An input as the client sends it."""

    name: str
    shape: list[int]
    datatype: str
    parameters: Parameters = {}
    data: Any = None


class RequestedOutput(msgspec.Struct):
    """An output that the client asks for."""

    name: str
    parameters: Parameters = {}


class InferRequest(msgspec.Struct):
    """The JSON of a request."""

    inputs: list[RequestInput]
    id: str = ""
    outputs: list[RequestedOutput] = []
    parameters: Parameters = {}


class Decoded(NamedTuple):
    """A request that fits the model.

    Attributes:
        arrays: in the order of the model's inputs.
        rows: of the batch.
        request: the rest of what it says.
    """

    arrays: list[Array]
    rows: int
    request: InferRequest


_decoder = msgspec.json.Decoder(InferRequest)


def decode_request(body: bytes | bytearray, json_length: int | None, specs: Sequence[TensorSpec]) -> Decoded:
    """Read a request.

    Args:
        body: all of it.
        json_length: of its JSON, where bytes follow.
        specs: what the model takes.

    Raises:
        InputError: it says what is wrong, and what is legal.
    """
    whole = memoryview(body)
    if json_length is not None and json_length > len(whole):
        raise InputError(
            f"Inference-Header-Content-Length: got {json_length}; the body has {len(whole)} bytes in all"
        )
    try:
        request = _decoder.decode(whole[:json_length])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"request: no legal JSON of an inference request: {error}") from error
    inputs = _in_order(request.inputs, specs)
    blobs = _blobs(request, whole[len(whole) if json_length is None else json_length :])
    arrays = [_array(one, blobs.get(spec.name), spec) for one, spec in zip(inputs, specs, strict=True)]
    rows = len(arrays[0])
    if len(arrays) > 1 and any(len(array) != rows for array in arrays):
        told = ", ".join(f"{spec.name} {len(array)}" for spec, array in zip(specs, arrays, strict=True))
        raise InputError(
            f"inputs: the first size is that of the batch and must be the same in all; got {told}"
        )
    return Decoded(arrays, rows, request)


def _in_order(given: list[RequestInput], specs: Sequence[TensorSpec]) -> list[RequestInput]:
    """The inputs as the model has them; clients nearly always send them so."""
    if len(given) == len(specs) == 1 and given[0].name == specs[0].name:
        return given
    names, legal = [one.name for one in given], [spec.name for spec in specs]
    if names == legal:
        return given
    if sorted(names) != sorted(legal):
        told = ", ".join(names[:MOST_DIMS])
        raise InputError(
            f"inputs: got {told[:200] or 'none'}; the model takes each of {', '.join(legal)} once"
        )
    return [given[names.index(name)] for name in legal]


def _blobs(request: InferRequest, tail: memoryview) -> dict[str, memoryview]:
    """The bytes of each input that has some, in the order of the request."""
    found: dict[str, memoryview] = {}
    at = 0
    for one in request.inputs:
        if not one.parameters:
            continue
        size = one.parameters.get("binary_data_size")
        if size is None:
            continue
        if type(size) is not int or size < 0 or at + size > len(tail):
            raise InputError(
                f"{one.name}: binary_data_size {size!r} goes beyond the {len(tail)} bytes behind the JSON"
            )
        found[one.name] = tail[at : at + size]
        at += size
    if at != len(tail):
        raise InputError(
            f"request: {len(tail) - at} bytes behind the JSON belong to no input; send Inference-Header-Content-Length "
            "and a binary_data_size per input"
        )
    return found


def _array(given: RequestInput, blob: memoryview | None, spec: TensorSpec) -> Array:
    if given.datatype != spec.datatype:
        raise InputError(f"{spec.name}: got datatype {given.datatype[:40]}; the model takes {spec.datatype}")
    _require_shape(given.shape, spec)
    if blob is not None:
        expected = math.prod(given.shape) * spec.carrier.itemsize
        if len(blob) != expected:
            raise InputError(
                f"{spec.name}: got {len(blob)} bytes; {given.shape} of {spec.datatype} are {expected} bytes"
            )
        return np.frombuffer(blob, spec.carrier).reshape(given.shape)
    return _from_json(given, spec)


def _require_shape(shape: Sequence[int], spec: TensorSpec) -> None:
    if len(shape) == len(spec.dims):
        for size, own in zip(shape, spec.dims, strict=True):
            if size < 1 or own not in (VARYING, size):
                break
        else:
            return
    got = f"shape {list(shape)}" if len(shape) == len(spec.dims) else f"{len(shape)} dimensions"
    legal = ", ".join("any" if size == VARYING else str(size) for size in spec.dims)
    raise InputError(f"{spec.name}: got {got}; legal is [{legal}]")


def _from_json(given: RequestInput, spec: TensorSpec) -> Array:
    if not isinstance(given.data, list):
        raise InputError(f"{spec.name}: has no data; send a list of values, or bytes with binary_data_size")
    values = _plain_numbers(given.data, spec.datatype)
    if values is None:
        values = _converted(_any_values(given, spec), spec)
    if values.size != math.prod(given.shape):
        raise InputError(
            f"{spec.name}: got {values.size} values; {list(given.shape)} needs {math.prod(given.shape)}"
        )
    return values.reshape(given.shape)


_CODES = {"FP32": "f", "FP64": "d"}


def _plain_numbers(data: list[Any], datatype: str) -> Array | None:
    """A flat list of numbers, in a fifth of the time that numpy takes to find out what else a list might hold; None for what is none."""
    code = _CODES.get(datatype)
    if code is None or not data or type(data[0]) not in (float, int):
        return None
    try:
        return np.frombuffer(numbers(code, data), code)
    except (TypeError, OverflowError):
        return None


def _any_values(given: RequestInput, spec: TensorSpec) -> Array:
    try:
        values = np.array(given.data)
        if values.dtype == object or not values.size:  # a null among numbers; or ragged, which raises here
            values = np.array(given.data, np.float64)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"{spec.name}: data holds what is no number, or lists of unlike length") from error
    return values


_LEGAL_KINDS = {"BOOL": "b"} | dict.fromkeys(("FP16", "BF16", "FP32", "FP64"), "iuf")
"""Kinds of numpy that JSON may hold for a datatype; whole numbers for all others."""


def _converted(values: Array, spec: TensorSpec) -> Array:
    legal = _LEGAL_KINDS.get(spec.datatype, "iu")
    if values.dtype.kind not in legal:
        kind = {"b": "true and false", "iu": "whole numbers"}.get(legal, "numbers")
        raise InputError(
            f"{spec.name}: {spec.datatype} takes {kind}; got {values.ravel()[0].item()!r} or the like"
        )
    if spec.dtype is torch.bfloat16:
        return torch.from_numpy(values.astype(np.float32)).to(torch.bfloat16).view(torch.uint16).numpy()
    if legal == "iu":
        bounds = np.iinfo(spec.carrier)
        if values.min() < bounds.min or values.max() > bounds.max:
            raise InputError(
                f"{spec.name}: holds {values.min()} to {values.max()}; {spec.datatype} holds {bounds.min} to {bounds.max}"
            )
    with np.errstate(over="ignore"):
        return values.astype(spec.carrier)


class Encoded(NamedTuple):
    """A body; `json_length` is given where bytes follow the JSON."""

    body: bytes
    json_length: int | None


def require_outputs(specs: Sequence[TensorSpec], request: InferRequest) -> None:
    """Refuse a request for outputs that the model does not give, before it costs anything.

    Raises:
        InputError: it says which there are.
    """
    if not request.outputs:
        return
    known = [spec.name for spec in specs]
    unknown = next((one.name for one in request.outputs if one.name not in known), None)
    if unknown is not None:
        raise InputError(f"outputs: got {unknown[:80]}; legal are {', '.join(known)}")


def encode_answer(
    head: Mapping[str, Any],
    outputs: Iterable[tuple[TensorSpec, Array]],
    request: InferRequest,
) -> Encoded:
    """Write an answer with the outputs that were asked for, all by default."""
    asked = {one.name: one for one in request.outputs}
    in_bytes = bool(request.parameters.get("binary_data_output", False))
    blobs: list[bytes] = []
    told: list[dict[str, Any]] = []
    for spec, array in outputs:
        if asked and spec.name not in asked:
            continue
        as_bytes = asked[spec.name].parameters.get("binary_data", in_bytes) if asked else in_bytes
        told.append(_told(spec, array, blobs if as_bytes else None))
    return _joined({**head, "outputs": told}, blobs)


def encode_request(inputs: Sequence[tuple[TensorSpec, Array]]) -> Encoded:
    """Write a request as clients do: small ones in JSON, large ones as bytes."""
    blobs: list[bytes] = []
    is_small = sum(array.size for _, array in inputs) <= MOST_IN_JSON
    told = [_told(spec, array, None if is_small else blobs) for spec, array in inputs]
    return _joined({"inputs": told}, blobs)


def _told(spec: TensorSpec, array: Array, blobs: list[bytes] | None) -> dict[str, Any]:
    """A tensor in JSON, whose values go to the blobs where there are some."""
    told: dict[str, Any] = {"name": spec.name, "datatype": spec.datatype, "shape": array.shape}
    if blobs is None:
        told["data"] = _plain(array, spec)
    else:
        blobs.append(array.tobytes())
        told["parameters"] = {"binary_data_size": len(blobs[-1])}
    return told


def _joined(document: dict[str, Any], blobs: list[bytes]) -> Encoded:
    raw = msgspec.json.encode(document)
    return Encoded(b"".join([raw, *blobs]), len(raw)) if blobs else Encoded(raw, None)


def _plain(array: Array, spec: TensorSpec) -> list[Any]:
    values = spec.to_torch(array).float().numpy() if spec.dtype is torch.bfloat16 else array
    return values.ravel().tolist()
