"""Torch's own wrapper around a compiled module of `torch.nn`, which its log names instead of the module."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from pyrometer.compiler.breaks.record import SkippedFrame
from pyrometer.compiler.costs.record import Compilation
from pyrometer.compiler.recompiles.record import LimitReached, Recompile

Named = TypeVar("Named", Compilation, Recompile, SkippedFrame, LimitReached)

WRAPPER_FILE = "torch/_dynamo/external_utils.py"
WRAPPER = "inner"
MEANT = "forward of a torch.nn module"


def with_plain_names(records: list[Named]) -> list[Named]:
    """The same, where torch's wrapper is called what it stands for; torch does not tell which module it was.

    >>> inner = Recompile(compile_id="0/1", function="inner", file=WRAPPER_FILE, line=67, causes=[], changed_inputs=[])
    >>> with_plain_names([inner])[0].function
    'forward of a torch.nn module'
    """
    return [
        msgspec.structs.replace(record, function=MEANT)
        if record.function == WRAPPER and record.file.replace("\\", "/").endswith(WRAPPER_FILE)
        else record
        for record in records
    ]
