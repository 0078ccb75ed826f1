"""`prune_channels`: whole channels and neurons taken out of the model."""

from __future__ import annotations

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.tuning.pruning.chains import chains_of
from pyrometer.tuning.pruning.channels import ROOM, num_kept, remove_channels


@lever
class PruneChannels(Lever):
    """Take out the channels whose weights are smallest, and what reads them."""

    name = "prune_channels"
    title = "take out the channels with the smallest weights"
    why = (
        "Layers become smaller in fact, with fewer products for any kernel. Without training afterwards a model loses accuracy, "
        "unless it has channels to spare; single weights set to zero would save no time at all."
    )
    stage = "compute"
    place = "quantisation"
    fix_class = "semantic"
    excludes = frozenset({"quantisation"})
    prior = 0.8

    def refuses(self, subject: Subject) -> str | None:
        """A layer has to be followed by one that alone reads it."""
        if any(
            num_kept(_channels(chain.layer), 0.5) < _channels(chain.layer)
            for chain in chains_of(subject.model)
        ):
            return None
        return "no layer's output is seen to be read by one other layer alone"

    def choices(self, subject: Subject) -> list[Parameters]:
        """A quarter, and a half."""
        return [{"share": 0.25}, {"share": 0.5}]

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Cut layer after layer, in the order in which they run."""
        chains = chains_of(subject.model)
        for chain in chains:
            remove_channels(chain, parameters["share"])
        subject.changed[self.name] = [chain.layer for chain in chains]

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Layers hold fewer channels than before."""
        layers = subject.changed.get(self.name, [])
        cut = [layer for layer in layers if _channels(layer) < getattr(layer, ROOM, 0)]
        return None if cut else "no layer holds fewer channels than before"


def _channels(module: object) -> int:
    weight = getattr(module, "weight", None)
    return len(weight) if weight is not None and getattr(weight, "dim", int)() else 0
