"""`accumulate`: each batch in parts whose gradients are added up."""

from __future__ import annotations

from collections.abc import Iterator

from torch.nn.modules.batchnorm import _BatchNorm

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.changes.micro_batches import Parts, in_parts

_PARTS = (2, 4, 8)


@lever
class Accumulate(Lever):
    """Split each batch, and add up the gradients of its parts."""

    name = "accumulate"
    title = "split each batch and accumulate gradients"
    why = (
        "Activations of one part at a time, for as many updates as before. The gradients are the same for a loss that is a mean over "
        "samples, which the comparison of losses shows; smaller operators use the device less well."
    )
    stage = "memory"
    place = "settings"
    fix_class = "tolerance"
    kinds = frozenset({"training"})
    for_memory = True
    prior = 1.1
    pasted = (
        "for x, y in zip(inputs.chunk($num_parts), targets.chunk($num_parts)):",
        "    (loss(model(x), y) / $num_parts).backward()",
        "optimizer.step()",
    )

    def refuses(self, subject: Subject) -> str | None:
        """Samples must not see each other, and batches have to be started anew."""
        work = subject.training
        if isinstance(work.batches, Iterator):
            return "the batches are an iterator, which the comparison would use up"
        if isinstance(work.batches, Parts):
            return "the batches come in parts already"
        norms = [module for module in subject.model.modules() if isinstance(module, _BatchNorm)]
        return "batch norm sees the whole batch: smaller parts train another model" if norms else None

    def choices(self, subject: Subject) -> list[Parameters]:
        """Two parts, four and eight."""
        return [{"num_parts": parts} for parts in _PARTS]

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Split; the loss of each part is weighted by its share."""
        subject.work = in_parts(subject.training, parameters["num_parts"])

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """The batches come in so many parts."""
        batches = subject.training.batches
        wanted = parameters.get("num_parts", _PARTS[0])
        if isinstance(batches, Parts) and batches.num_parts == wanted:
            return None
        return f"the batches do not come in {wanted} parts"
