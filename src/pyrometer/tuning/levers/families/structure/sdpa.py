"""`sdpa`: attention that is written out, as `scaled_dot_product_attention`."""

from __future__ import annotations

import contextlib
from typing import Any

from torch import nn

from pyrometer.tuning.levers.adjacent import replace_modules
from pyrometer.tuning.levers.attention import constants_of, fused
from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.state import inference_mode

_IMPLEMENTATION = "_attn_implementation"


@lever
class Sdpa(Lever):
    """Compute attention that is written out by one fused operator."""

    name = "sdpa"
    title = "compute attention by scaled_dot_product_attention"
    why = (
        "Written out, the matrix of weights (heads × length × length) goes through memory at every step on the way; the fused operator "
        "works on blocks that stay in a cache. The gain grows with the length."
    )
    stage = "compute"
    place = "structure"
    fix_class = "tolerance"
    prior = 0.8
    pasted = (
        "# models of transformers: model.set_attn_implementation('sdpa'); in code of your own:",
        "# torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
    )

    def refuses(self, subject: Subject) -> str | None:
        """A model of transformers says how it computes attention; of others the code is looked at."""
        if _chooses(subject.model):
            now = getattr(subject.model.config, _IMPLEMENTATION)
            return None if now == "eager" else f"the model computes attention by {now} already"
        if _rewritten(subject):
            return None
        return "no module of the model writes attention out in a way that is understood"

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Ask the model for it, or put rewritten modules in the places of those that write it out."""
        if _chooses(subject.model):
            model: Any = subject.model
            model.set_attn_implementation("sdpa")
        else:
            replace_modules(subject, _rewritten(subject))

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """None is left that is written out."""
        if _chooses(subject.model):
            now = getattr(subject.model.config, _IMPLEMENTATION)
            return None if now == "sdpa" else f"the model computes attention by {now}"
        left = len(_rewritten(subject))
        return f"{left} modules still write attention out" if left else None


def _chooses(model: Any) -> bool:
    return hasattr(model, "set_attn_implementation") and hasattr(
        getattr(model, "config", None), _IMPLEMENTATION
    )


def _rewritten(subject: Subject) -> dict[nn.Module, nn.Module]:
    """Modules with what is to take their places."""
    called = _calls(subject)
    pairs = (
        (module, fused(module, constants)) for module, constants in called.items() if constants is not None
    )
    return {module: other for module, other in pairs if other is not None}


def _calls(subject: Subject) -> dict[nn.Module, dict[str, Any] | None]:
    """What modules that are none of torch.nn are called with that is no tensor; `None` where calls differ."""
    seen: dict[nn.Module, dict[str, Any] | None] = {}

    def see(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        constants = constants_of(module, args, kwargs)
        seen[module] = constants if seen.get(module, constants) == constants else None

    with contextlib.ExitStack() as stack:
        for module in subject.model.modules():
            if not type(module).__module__.startswith("torch.nn."):
                stack.enter_context(module.register_forward_pre_hook(see, with_kwargs=True))
        stack.enter_context(inference_mode(True))
        arguments = subject.example()
        subject.model(*arguments.args, **arguments.kwargs)
    return seen
