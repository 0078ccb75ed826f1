"""How a trace names the updates of torch's optimizers, and which of these have an update in one piece."""

from __future__ import annotations

import re

FUSED = frozenset({"Adam", "AdamW", "SGD", "Adagrad"})
"""Optimizers of torch with an update in one piece. For Adafactor neither `foreach` nor compiling was faster on a CPU core."""

MARK = re.compile(r"^Optimizer\.step#(\w+)\.step$")
"""How a trace marks the update."""
