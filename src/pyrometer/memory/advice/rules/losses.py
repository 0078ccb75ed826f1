"""What a loss keeps: the scores of all classes, and storages behind single numbers."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.advice import Advice
from pyrometer.memory.advice.case import WORTH, Case, measured
from pyrometer.memory.advice.lives import Life
from pyrometer.memory.advice.observing import Observed, Use
from pyrometer.memory.advice.trying import ClonedLosses
from pyrometer.memory.recording.allocator import record_allocator
from pyrometer.memory.recording.steps import STEPS
from pyrometer.quantity import Bytes, format_bytes

CHUNKS = 8

SCALAR_BYTES = 16
"""Results up to here are single numbers."""


def scalar_with_storage(case: Case) -> Iterator[Advice]:
    """A mean whose storage is as large as what it is the mean of: `mse_loss` and others on the CPU."""
    observed, lives = case.observed, case.lives
    if observed is None or lives is None:
        return
    scalars = [
        use.results[0]
        for use in observed.uses
        if not use.backward
        and len(use.results) == 1
        and use.results[0] not in use.arguments
        and use.shown_bytes <= SCALAR_BYTES < case.allocation(use.results[0]).nbytes // 64
    ]
    if case.relived({index: [lives.until(index, lives[index].born + 1)] for index in scalars}) is None:
        return
    # Reducing takes scratch memory that operators do not show, so this one is measured.
    with ClonedLosses():
        saved = case.peak_bytes - record_allocator(case.work, steps=STEPS).peak_bytes
    if saved < WORTH * case.peak_bytes:
        return
    at_peak = [index for index in scalars if case.allocation(index).alive_after(observed.log.peak_event)]
    yield Advice(
        slug="clone-scalar-loss",
        fix_class="exact",
        title="clone the loss, so that its large storage goes",
        why=f"{case.where}; a single number holds the storage of all unreduced values until the loss is let go: "
        f"{case.lines(at_peak)}",
        sketch="loss = F.mse_loss(output, target).clone()",
        effect="the same value and gradients; torch reduces this loss in the storage of its unreduced values, and detach() would keep it",
        gain=measured(saved),
        where=case.main_line(at_peak),
    )


def logits_in_chunks(case: Case) -> Iterator[Advice]:
    """The head and its cross-entropy on a part of the positions at a time."""
    observed, lives = case.observed, case.lives
    if observed is None or lives is None or not observed.backward:
        return
    changed: dict[int, list[Life]] = {}
    involved: list[int] = []
    for softmax in (use for use in observed.uses if use.operator == "aten._log_softmax.default"):
        scores, weight = _scores(observed, softmax)
        if weight is None:
            continue
        gradients = _gradients(observed, softmax.results[0], lives[softmax.results[0]].nbytes)
        for index in (*scores, softmax.results[0], *gradients):
            changed[index] = [lives[index]._replace(nbytes=-(-lives[index].nbytes // CHUNKS))]
            involved.append(index)
        for index in gradients:
            # Each part's gradient of the weight is made beside the sum of those before.
            changed[-1 - index] = [lives[index]._replace(nbytes=weight)]
    saving = case.relived(changed)
    if saving is None:
        return
    at_peak = [index for index in involved if case.allocation(index).alive_after(observed.log.peak_event)]
    nbytes = sum(lives[index].nbytes for index in at_peak)
    yield Advice(
        slug="chunked-cross-entropy",
        fix_class="tolerance",
        title="compute the head and its cross-entropy in chunks",
        why=f"{case.where}, where scores of all classes, their log-softmax and their gradient hold {format_bytes(nbytes)}: "
        f"{case.lines(at_peak)}",
        sketch="from torch.nn.functional import cross_entropy\n"
        "from torch.utils.checkpoint import checkpoint\n"
        "\n"
        "def summed(hidden, target):\n"
        '    return cross_entropy(head(hidden), target, reduction="sum")\n'
        "\n"
        "hidden, target = hidden.flatten(0, -2), target.flatten()  # what the head gets, [positions, width]\n"
        f"parts = zip(hidden.chunk({CHUNKS}), target.chunk({CHUNKS}))\n"
        "loss = sum(checkpoint(summed, h, t, use_reentrant=False) for h, t in parts) / target.numel()",
        effect="the same loss and gradients to rounding; the head runs twice. With ignored targets divide by the number of the others",
        gain=saving.gain,
        where=case.main_line(at_peak),
    )


def _scores(observed: Observed, softmax: Use) -> tuple[list[int], Bytes | None]:
    """The scores that a log-softmax reads, also before a cast, and the bytes of the weight that made them."""
    scores: list[int] = []
    wanted = softmax.arguments[:1]
    before = observed.uses[: observed.uses.index(softmax)]
    for use in reversed(before):
        new = [index for index in use.results if index not in use.arguments]
        if not wanted or wanted[0] not in new:
            continue
        scores.append(wanted[0])
        if use.operator.startswith(("aten._to_copy", "aten.clone")):
            wanted = use.arguments[:1]
            continue
        weights = [
            observed.log.allocations[index].nbytes
            for index in use.arguments
            if observed.log.allocations[index].category == "parameters"
        ]
        products = ("aten.mm.", "aten.addmm.", "aten.linear.", "aten.bmm.")
        return scores, max(weights) if weights and use.operator.startswith(products) else None
    return scores, None


def _gradients(observed: Observed, softmax: int, nbytes: Bytes) -> list[int]:
    """What the backward pass makes of a log-softmax: gradients as large as it."""
    found: list[int] = []
    chain = {softmax}
    for use in observed.uses:
        if use.backward and chain.intersection(use.arguments):
            new = [
                index
                for index in use.results
                if index not in use.arguments and observed.log.allocations[index].nbytes == nbytes
            ]
            found += new
            if use.operator.startswith("aten._log_softmax_backward"):
                chain.update(new)
    return list(dict.fromkeys(found))
