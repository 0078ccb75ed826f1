"""The repeated blocks of a model, such as the layers of a transformer."""

from __future__ import annotations

import re

from torch import nn

from pyrometer.errors import InputError


def every(model: nn.Module, text: str) -> list[str]:
    """Paths of every so many of a model's repeated blocks.

    Args:
        model: its blocks are the longest row of modules of one class side by side.
        text: such as "every 2"; "every 1" or "every" for all.

    Raises:
        InputError: the text is none, or the model has no repeated blocks.

    >>> every(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)), "every 2")
    ['0', '2']
    """
    match = re.fullmatch(r"every(?:\s+(\d+))?", text.strip())
    if match is None or match.group(1) == "0":
        raise InputError(
            f"checkpoint: got {text!r}; legal are 'every', 'every 2', … and lists of module paths"
        )
    rows: dict[tuple[str, type], list[str]] = {}
    for path, module in model.named_modules():
        if (
            next(module.children(), None) is not None
            or next(module.parameters(recurse=False), None) is not None
        ):
            rows.setdefault((path.rpartition(".")[0], type(module)), []).append(path)
    # Blocks that hold others come first among rows of one length.
    blocks = max((row for row in rows.values() if row != [""]), key=len, default=[])
    if len(blocks) < 2:
        raise InputError(
            "checkpoint: the model has no repeated blocks; give the paths of the modules to recompute"
        )
    return blocks[:: int(match.group(1) or 1)]
