"""The parts of samples and batches: their paths, bytes, and fingerprints by which two are told apart."""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from pyrometer.quantity import Bytes

Leaf: TypeAlias = tuple[str, Any]


def leaves_of(value: Any, path: str = "") -> Iterator[Leaf]:
    """The parts of a nested value that are no containers, with their paths.

    >>> [path for path, _ in leaves_of({"x": (1, 2), "y": "text"})]
    ["['x'][0]", "['x'][1]", "['y']"]
    """
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves_of(part, f"{path}[{key!r}]")
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, part in zip(value._fields, value, strict=True):
            yield from leaves_of(part, f"{path}.{name}")
    elif isinstance(value, (tuple, list)):
        for place, part in enumerate(value):
            yield from leaves_of(part, f"{path}[{place}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if hasattr(value, field.name):
                yield from leaves_of(getattr(value, field.name), f"{path}.{field.name}")
    else:
        yield path, value


def tensor_leaves(value: Any) -> list[tuple[str, torch.Tensor]]:
    """Tensors and numeric arrays with one block of memory, the latter as tensors; with their paths."""
    found: list[tuple[str, torch.Tensor]] = []
    for path, leaf in leaves_of(value):
        if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and not leaf.is_nested:
            found.append((path, leaf.detach()))
        elif isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fiub":
            try:
                found.append((path, torch.from_numpy(np.ascontiguousarray(leaf).copy())))
            except TypeError:  # a dtype that torch has not, such as float128
                continue
    return found


def num_bytes_of(value: Any) -> Bytes:
    """Bytes that a value takes when it is stored: tensors, arrays, images, texts, and 8 for any number.

    >>> num_bytes_of([torch.zeros(3), "ab", 1])
    22
    """
    return sum(_leaf_bytes(leaf) for _, leaf in leaves_of(value))


def fingerprint(value: Any) -> bytes | None:
    """Equal for values that are equal byte by byte; `None` where that cannot be told.

    >>> fingerprint([torch.zeros(2)]) == fingerprint([torch.zeros(2)])
    True
    >>> fingerprint([torch.zeros(2)]) == fingerprint([torch.zeros(2, 1)])
    False
    """
    made = hashlib.blake2b(digest_size=16)
    for path, leaf in leaves_of(value):
        raw = _leaf_raw(leaf)
        if raw is None:
            return None
        made.update(f"{path}:{type(leaf).__name__}:".encode())
        made.update(raw)
    return made.digest()


def _leaf_bytes(leaf: Any) -> Bytes:
    if isinstance(leaf, torch.Tensor):
        return leaf.numel() * leaf.element_size()
    if isinstance(leaf, np.ndarray):
        return leaf.nbytes
    if isinstance(leaf, (str, bytes, bytearray)):
        return len(leaf)
    if _is_image(leaf):
        return len(leaf.tobytes())
    return 8


def _leaf_raw(leaf: Any) -> bytes | None:
    if isinstance(leaf, torch.Tensor):
        return _tensor_raw(leaf)
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind != "O":
        return f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes()
    if _is_image(leaf):
        return f"{leaf.mode}{leaf.size}".encode() + bytes(leaf.tobytes())
    if leaf is None or isinstance(leaf, (str, bytes, int, float, complex, np.generic)):
        return repr(leaf).encode()
    try:
        return pickle.dumps(leaf)
    except Exception:  # noqa: BLE001 - whatever a user's object raises: then it cannot be told
        return None


def _tensor_raw(tensor: torch.Tensor) -> bytes | None:
    if tensor.layout != torch.strided or tensor.is_nested:
        return None
    whole = tensor.detach().cpu().contiguous()
    return (
        f"{whole.dtype}{tuple(whole.shape)}".encode() + whole.reshape(-1).view(torch.uint8).numpy().tobytes()
    )


def _is_image(leaf: Any) -> bool:
    """Whether it looks like an image of PIL."""
    return hasattr(leaf, "mode") and hasattr(leaf, "size") and callable(getattr(leaf, "tobytes", None))
