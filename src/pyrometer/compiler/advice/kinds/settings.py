"""Breaks that a setting of torch takes away."""

from __future__ import annotations

from pyrometer.advice import Advice
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

SETTINGS = {
    "gb0014": (
        "let recurrent networks in",
        "torch leaves RNN, GRU and LSTM modules out by default, because graphs of long sequences are slow to compile.",
        "allow_rnn",
    ),
    "gb0123": (
        "trace the backward call",
        "Backward calls inside of compiled code are traced by this setting.",
        "trace_autograd_ops",
    ),
    "gb9186": (
        "trace autograd.grad",
        "torch.autograd.grad inside of compiled code is traced by this setting.",
        "trace_autograd_ops",
    ),
}
"""By id: title, reason, and the setting to switch on."""


@advises(*SETTINGS)
def switched_off(site: Site) -> list[Advice]:
    """The setting, where this torch has it."""
    title, why, name = SETTINGS[str(site.found.id)]
    return [
        Advice(
            slug=name.replace("_", "-"),
            title=title,
            why=why,
            rewrite=f"torch._dynamo.config.{name} = True",
            fix_class="tolerance",
        )
    ]
