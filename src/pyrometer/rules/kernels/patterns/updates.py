"""What an update of parameters in one piece saves."""

from __future__ import annotations

SAVED = {"Adam": (0.9, 0.59), "AdamW": (0.9, 0.59), "SGD": (0.74, 0.25), "Adagrad": (0.7, 0.45)}
"""Best and worst share of the optimizer's time that fusing saved on one core; of SGD with momentum."""
