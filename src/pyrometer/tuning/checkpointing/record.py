"""What a checkpoint plan is: the modules to compute again, with the figures that speak for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.errors import UsageError
from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.record import Record, doc

if TYPE_CHECKING:
    from torch import nn

    from pyrometer.workload.changes.checkpointing import Applied


class StepFigures(Record, frozen=True, kw_only=True):
    """Memory and time of a step, measured."""

    peak_bytes: Annotated[Bytes, doc("most that was alive at one instant")]
    predicted_peak_bytes: Annotated[Bytes | None, doc("of the same, by the model")] = None
    step_s: Annotated[Seconds | None, doc("median of paired blocks; null where times were not compared")] = (
        None
    )
    step_s_ci: Annotated[list[Seconds], doc("interval of step_s: low, high")] = []


class ModuleCost(Record, frozen=True, kw_only=True):
    """One candidate: what it keeps, and what recomputing it costs."""

    module: Annotated[str, doc("path in the model")]
    policy: Annotated[str, doc("full, keep-matmul or keep-attention")] = "full"
    saved_bytes: Annotated[Bytes, doc("made inside and kept for the backward pass")]
    input_bytes: Annotated[Bytes, doc("arguments of this step that checkpointing would keep")]
    burst_bytes: Annotated[Bytes, doc("at the height of its recomputation")]
    forward_s: Annotated[
        Seconds,
        doc("of its forward as it is, all calls of a step; median of the faster half of the readings"),
    ]
    cost_s: Annotated[
        Seconds, doc("what checkpointing it adds to a step; from medians of the faster half of the readings")
    ]
    cost_s_quartiles: Annotated[list[Seconds], doc("of the recomputation itself: low, high")] = []
    num_calls: Annotated[int, doc("in one step")] = 1


class PlanPoint(Record, frozen=True, kw_only=True):
    """One choice of modules with the figures that the model gives it."""

    modules: list[str]
    policies: Annotated[dict[str, str], doc("by module")] = {}
    peak_bytes: Bytes
    recompute_s: Annotated[Seconds, doc("what it adds to a step")]
    step_s: Annotated[Seconds, doc("of a whole step")]
    k: Annotated[int | None, doc("where it is every k-th block; null otherwise")] = None


class ExcludedModule(Record, frozen=True, kw_only=True):
    """A module that is no candidate."""

    module: str
    why: str


class GradientMatch(Record, frozen=True, kw_only=True):
    """Whether planned steps compute the same as steps as written, from the same random state."""

    bitwise: Annotated[bool, doc("gradients and buffers of two steps are equal to the last bit")]
    max_error: Annotated[float, doc("largest difference over the largest magnitude of the same tensor")] = 0.0
    worst: Annotated[str | None, doc("the tensor with that difference")] = None
    baseline_error: Annotated[
        float, doc("the same between two runs as written: what the program itself varies")
    ] = 0.0
    equal: Annotated[
        bool, doc("bitwise, or no further apart than the program from itself, or than rounding")
    ] = True


class CheckpointPlan(Record, frozen=True, kw_only=True):
    """Modules to compute again in the backward pass, so that a step fits into memory.

    `apply(model)` puts them behind `torch.utils.checkpoint` until the result is removed.
    """

    name: str
    strategy: Annotated[str, doc("optimal, every-k, adaptive or activation-budget")]
    sentence: str
    modules: Annotated[list[str], doc("paths, in the order in which they run")]
    policy: Annotated[dict[str, str], doc("by module: full, keep-matmul or keep-attention")] = {}
    written: Annotated[
        dict[str, list[str]],
        doc(
            "by module, of the plan and of the blocks: buffers inside that the forward writes to; updated once all the same"
        ),
    ] = {}
    preserve_rng: Annotated[bool, doc("recomputations draw the same random numbers")] = True
    budget_bytes: Annotated[Bytes | None, doc("as asked for")] = None
    max_slowdown: Annotated[Ratio | None, doc("as asked for: planned over baseline step time")] = None
    fits: Annotated[bool | None, doc("whether the measured peak is within the budget; null without one")] = (
        None
    )
    least_peak_bytes: Annotated[
        Bytes | None, doc("the least that any choice of candidates reaches, by the model")
    ] = None
    baseline: StepFigures
    planned: StepFigures
    recompute_s: Annotated[Seconds, doc("what the plan adds to a step, by the costs of its modules")] = 0.0
    proven: Annotated[bool, doc("whether nothing cheaper exists under the model")] = True
    verdict: Annotated[Verdict | None, doc("paired times of planned against baseline steps")] = None
    equal: GradientMatch | None = None
    frontier: Annotated[
        list[PlanPoint], doc("no choice beats these in both memory and time; by rising time")
    ] = []
    every_k: Annotated[list[PlanPoint], doc("every k-th block, for comparison")] = []
    order: Annotated[
        list[str], doc("blocks by the bytes that a second of recomputation frees, the best first")
    ] = []
    costs: list[ModuleCost] = []
    excluded: list[ExcludedModule] = []
    activation_budget: Annotated[
        float | None, doc("torch's activation_memory_budget, for compiled models; null otherwise")
    ] = None
    notes: list[str] = []

    def apply(self, model: nn.Module) -> Applied:
        """Put the plan's modules behind checkpointing until the result is removed; it is a context manager too.

        Parameters, names, hooks and the modules themselves stay; without gradients nothing is computed again.

        Raises:
            InputError: the model lacks one of the modules, or it is checkpointed already.
            UsageError: the plan is a memory budget of the compiler.
        """
        if self.activation_budget is not None:
            raise UsageError(
                "plan: it is for a compiled model and wraps no modules; set torch._functorch.config."
                f"activation_memory_budget = {self.activation_budget:g} before the model is compiled"
            )
        from pyrometer.workload.changes.checkpointing import checkpointed

        policies: Any = {module: self.policy[module] for module in self.modules}
        return checkpointed(model, policies, self.written, preserve_rng=self.preserve_rng)
