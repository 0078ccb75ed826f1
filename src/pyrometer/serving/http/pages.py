"""What the server says of itself: an OpenAPI document, and a page that people read."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import msgspec

from pyrometer.serving.running.signature import VARYING, Signature, TensorSpec
from pyrometer.version import __version__

_STYLE = "body{font:16px/1.5 system-ui;max-width:50rem;margin:2rem auto;padding:0 1rem}pre{background:#8882;padding:1rem;overflow:auto}td,th{text-align:left;padding:0 1rem 0 0}"


def told(spec: TensorSpec) -> dict[str, Any]:
    """An input or output as the protocol describes it."""
    return {"name": spec.name, "datatype": spec.datatype, "shape": list(spec.dims)}


def example(signature: Signature) -> dict[str, Any]:
    """A small request that the model takes."""
    inputs = []
    for spec in signature.inputs:
        shape = [1 if size == VARYING else size for size in spec.dims]
        zero: Any = False if spec.datatype == "BOOL" else 0.0 if spec.dtype.is_floating_point else 0
        inputs.append(
            {"name": spec.name, "shape": shape, "datatype": spec.datatype, "data": [zero] * math.prod(shape)}
        )
    return {"inputs": inputs}


def curl(name: str, url: str, signature: Signature) -> str:
    """A line to paste; of a large input the values are made by the shell."""
    raw = msgspec.json.encode(example(signature)).decode()
    if len(raw) <= 400:
        return f"curl -s {url}/v2/models/{name}/infer -d '{raw}'"
    return f"curl -s {url}/v2/models/{name}        # its inputs; {url}/docs has an example"


def openapi(name: str, signature: Signature) -> dict[str, Any]:
    """The OpenAPI 3.1 document of the paths that clients use."""
    paths: dict[str, Any] = {}
    for path, summary in _PATHS.items():
        paths[path.format(name=name)] = {"get": _operation(summary, "200")}
    infer = _operation("Run the model", "200")
    infer["requestBody"] = {
        "required": True,
        "content": {
            "application/json": {"schema": _request_schema(signature), "example": example(signature)}
        },
    }
    infer["responses"] |= {
        status: {"description": text, "content": _ERROR} for status, text in _REFUSALS.items()
    }
    paths[f"/v2/models/{name}/infer"] = {"post": infer}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"{name}: Open Inference Protocol v2", "version": __version__},
        "paths": paths,
    }


_PATHS = {
    "/v2": "What this server is",
    "/v2/health/live": "Whether the process can answer",
    "/v2/health/ready": "Whether requests are accepted; 503 while the server ends",
    "/v2/models/{name}": "Inputs, outputs and versions",
    "/v2/models/{name}/ready": "Whether requests for the model are accepted",
    "/v2/models/{name}/stats": "Counts since the start, and latency of recent requests",
    "/v2/models/{name}/prediction": "The same, and beside it what the batching policy should do to recent requests; takes a second",
    "/metrics": "Metrics for Prometheus",
}
_REFUSALS = {
    "400": "The request does not fit the model; says what is legal",
    "413": "The body is too large",
    "429": "The queue is full; Retry-After says when there may be room",
    "500": "The model failed",
    "503": "The server ends or is not ready",
    "504": "The deadline of the request passed, or the model hangs",
}
_ERROR = {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}}}


def _operation(summary: str, status: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {status: {"description": summary}}}


def _request_schema(signature: Signature) -> dict[str, Any]:
    tensor = {
        "type": "object",
        "required": ["name", "shape", "datatype", "data"],
        "properties": {
            "name": {"enum": [spec.name for spec in signature.inputs]},
            "shape": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "datatype": {"enum": sorted({spec.datatype for spec in signature.inputs})},
            "data": {"type": "array"},
            "parameters": {"type": "object"},
        },
    }
    parameters = {
        "timeout": {
            "type": "integer",
            "minimum": 0,
            "description": "microseconds until the answer is worth nothing",
        },
        "priority": {"enum": [0, 1, 2, 3], "description": "1 goes first, 0 is the usual one"},
        "binary_data_output": {"type": "boolean"},
    }
    return {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": {"type": "string"},
            "inputs": {"type": "array", "items": tensor},
            "outputs": {"type": "array", "items": {"type": "object"}},
            "parameters": {"type": "object", "properties": parameters},
        },
    }


def page(name: str, signature: Signature) -> str:
    """The page: what the model takes and gives, a request to try, and all paths."""
    raw = msgspec.json.encode(example(signature)).decode()
    body = raw if len(raw) <= 2000 else raw[:2000] + "…"
    rows = "".join(
        f"<tr><td>{kind}<td>{escape(spec.name)}<td>{spec.datatype}<td>{escape(str(list(spec.dims)))}"
        for kind, specs in (("input", signature.inputs), ("output", signature.outputs))
        for spec in specs
    )
    paths = "".join(
        f"<tr><td>GET<td><a href='{escape(path.format(name=name))}'>{escape(path.format(name=name))}</a><td>{text}"
        for path, text in {**_PATHS, "/openapi.json": "The OpenAPI document of this server"}.items()
    )
    shown = escape(name)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{shown}</title><style>{_STYLE}</style>"
        f"<h1>{shown}</h1><p>Open Inference Protocol, version 2. A size of -1 may differ from request to request; the first is the batch."
        f"<table><tr><th>What<th>Name<th>Datatype<th>Shape{rows}</table>"
        f"<h2>Ask</h2><pre>POST /v2/models/{shown}/infer\n\n{escape(body)}</pre>"
        f"<h2>Paths</h2><table>{paths}</table></html>"
    )
