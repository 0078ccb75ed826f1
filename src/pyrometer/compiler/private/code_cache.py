"""Forgetting what was compiled for one code object; what `torch._dynamo.reset` does to all of them.

Compiled graphs hang on the code object that they replace, and hold it in turn, so that neither goes away by itself.
`torch._dynamo.eval_frame.reset_code` exists since torch 2.0.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any


def forget(code: CodeType) -> None:
    """Let go of everything compiled for a code object; nothing where this torch cannot, or nothing was compiled."""
    reset_code: Any = getattr(sys.modules.get("torch._dynamo.eval_frame"), "reset_code", None)
    if reset_code is not None:
        reset_code(code)
