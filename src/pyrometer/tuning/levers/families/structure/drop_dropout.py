"""`drop_dropout`: dropout that does nothing at inference, taken out."""

from __future__ import annotations

from torch import nn

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.parts import submodules_of

_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


@lever
class DropDropout(Lever):
    """Put `nn.Identity` in the place of dropout."""

    name = "drop_dropout"
    title = "take out dropout, which does nothing in eval mode"
    why = "Each dropout is a call of a module that returns its input; in small models the calls add up."
    stage = "basic"
    place = "structure"
    prior = 0.98
    executors = frozenset({"eager"})
    pasted = (
        "for parent in list(model.modules()):",
        "    for name, child in list(parent.named_children()):",
        "        if isinstance(child, torch.nn.modules.dropout._DropoutNd):",
        "            setattr(parent, name, torch.nn.Identity())",
    )

    def refuses(self, subject: Subject) -> str | None:
        """There has to be dropout in a module of its own."""
        return None if subject.has(*_DROPOUTS) else "the model has no module for dropout"

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Replace each, wherever it is held."""
        if isinstance(subject.model, _DROPOUTS):
            subject.model = nn.Identity()
        for parent, name, module in submodules_of(subject.model):
            if isinstance(module, _DROPOUTS):
                setattr(parent, name, nn.Identity())

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """None is left."""
        return (
            f"{subject.count(*_DROPOUTS)} modules for dropout are left" if subject.has(*_DROPOUTS) else None
        )
