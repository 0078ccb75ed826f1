"""Why Inductor leaves two groups apart, in plain words.

The text that it gives is for its own developers and has no contract; it is matched by its beginning, and what is not
known is passed on as it is.
"""

from __future__ import annotations

from typing import NamedTuple


class Explanation(NamedTuple):
    """A reason in plain words."""

    meaning: str
    advice: str
    """What may be done; empty when there is nothing to do."""


_SHAPES = "Give both the same shape and order of dimensions where the model allows it."

REASONS: tuple[tuple[str, Explanation], ...] = (
    (
        "no shared data due to indexing mismatch",
        Explanation(
            "Both touch the same buffer, but walk through it in a different order.",
            "One kernel can do both where they go through it in the same order, such as by the same dimension.",
        ),
    ),
    (
        "no shared data",
        Explanation("They read or write nothing in common that would be moved once instead of twice.", ""),
    ),
    (
        "score_fusion_memory_threshold",
        Explanation(
            "They share too few bytes for a common kernel to pay.",
            "torch._inductor.config.score_fusion_memory_threshold sets how many it takes.",
        ),
    ),
    (
        "intermediate nodes between node1 & node2",
        Explanation(
            "The second needs a result that something else must compute between them, such as a matrix product.",
            "",
        ),
    ),
    (
        "memory deps did not match",
        Explanation(
            "The second reads other elements of the first's result than those that are at hand when it is computed.",
            "Shifts, transposes and gathers between the two force the result through memory. " + _SHAPES,
        ),
    ),
    (
        "node1 is extern",
        Explanation(
            "The first is a ready-made kernel, such as a library's matrix product, that nothing can be fused into.",
            "mode='max-autotune' lets Inductor write matrix products and convolutions itself, and fuse what follows.",
        ),
    ),
    (
        "node2 is extern or nop",
        Explanation(
            "The second is a ready-made kernel, such as a library's matrix product, that nothing can be fused into.",
            "mode='max-autotune' lets Inductor write matrix products and convolutions itself.",
        ),
    ),
    ("node1 is nop", Explanation("The first computes nothing: it only names memory.", "")),
    (
        "node1's triton kernel doesn't support epilogue fusion",
        Explanation(
            "The first is a Triton kernel of the user's that cannot take more operations at its end.", ""
        ),
    ),
    (
        "epilogue reads from buffers other than the mutated output",
        Explanation("What follows the user's Triton kernel reads more than that kernel's result.", ""),
    ),
    (
        "node1 and node2 uses different buf layouts",
        Explanation("Both use the buffer with different strides.", "Keep one memory format along the chain."),
    ),
    (
        "node1 must go before node2",
        Explanation("The order in which they were tried is not the order in which they run.", ""),
    ),
    ("will create cycle", Explanation("Fused, each would have to run before the other one.", "")),
    (
        "device mismatch",
        Explanation("They run on different devices.", "Move what they share to one device before."),
    ),
    (
        "exceeds max fusion",
        Explanation(
            "The kernel would hold more operations than the limit.",
            "torch._inductor.config.max_fusion_size sets the limit; larger kernels take longer to compile.",
        ),
    ),
    (
        "fusion_prevent_too_many_reads_and_writes",
        Explanation(
            "The kernel would use more buffers at once than the limit.",
            "torch._inductor.config.max_fusion_unique_io_buffers sets the limit.",
        ),
    ),
    (
        "Fusion will increase peak memory",
        Explanation("Results would have to be kept for longer, at the price of more memory.", ""),
    ),
    (
        "Nodes are too far away",
        Explanation(
            "They do not depend on each other and run far apart; running them together may need more memory.",
            "Moving the two lines next to each other can help.",
        ),
    ),
    (
        "numel/rnumel mismatch",
        Explanation("They run over different numbers of elements.", _SHAPES),
    ),
    ("nodes numel", Explanation("They run over different numbers of elements.", _SHAPES)),
    (
        "tiling mismatch",
        Explanation("They would cut the work into different blocks.", _SHAPES),
    ),
    (
        "invalid tiling for reduction",
        Explanation("The reduction cannot be cut into the blocks that the other one needs.", ""),
    ),
    ("invalid loop order", Explanation("The matrix product needs its loops in another order.", "")),
    (
        "Split scan cannot fuse with reductions",
        Explanation("A cumulative sum that is split over blocks takes no reduction in.", ""),
    ),
    ("fusion for buffer explicit disabled", Explanation("Inductor was told not to fuse this buffer.", "")),
    (
        "grouped node must not be fused",
        Explanation("Inductor keeps the nodes of a group, such as communication, together.", ""),
    ),
    (
        "template epilogue not satisfied",
        Explanation("The matrix product takes only element-wise operations at its end.", ""),
    ),
    ("multi-output template epilogue", Explanation("The matrix product has several results.", "")),
    (
        "prologue fusion turned off",
        Explanation(
            "Computing inputs inside of a matrix product is switched off.",
            "torch._inductor.config.prologue_fusion = True switches it on.",
        ),
    ),
    (
        "prologue fusion",
        Explanation(
            "Computing the input inside of the matrix product would not pay, or is not possible.", ""
        ),
    ),
    ("template", Explanation("The matrix product cannot compute this input itself.", "")),
    (
        "register spilling",
        Explanation("The kernel would need more registers than a thread has.", ""),
    ),
    (
        "foreach do not have same length",
        Explanation("Two lists of tensors of different length are worked on.", ""),
    ),
    (
        "candidate ",
        Explanation("Operations on lists of tensors fuse only one by one, and not with reductions.", ""),
    ),
)
"""The beginning of Inductor's text, and what it says; the first that fits."""


def explain_reason(reason: str) -> Explanation:
    """A reason of Inductor's in plain words; its own text, and no advice, when it is not a known one.

    >>> explain_reason("device mismatch (cpu vs cuda:0)").meaning
    'They run on different devices.'
    >>> explain_reason("a reason of next year").meaning
    'a reason of next year'
    """
    return next(
        (known for beginning, known in REASONS if reason.startswith(beginning)), Explanation(reason, "")
    )
