"""Records of plans for varying sizes, of what buckets did, and of what is recommended."""

from __future__ import annotations

from typing import Annotated

from pyrometer.advice import Advice
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc


class ParetoPoint(Record, frozen=True, kw_only=True):
    """The best that so many graphs can do."""

    num_graphs: int
    edges: Annotated[list[int], doc("sizes that are compiled, rising; a size runs at the nearest edge above")]
    step_cost: Annotated[float, doc("expected cost of a call, padding included, in the unit of the cost")]
    total_cost: Annotated[float, doc("the same with compiling spread over the expected calls")]
    tail_share: Annotated[
        float, doc("of calls beyond the last edge; always 0, since all sizes are covered")
    ] = 0.0


class EdgePlan(Record, frozen=True, kw_only=True):
    """Edges of one dimension: the choice, and what other numbers of graphs would give."""

    edges: list[int]
    step_cost: Annotated[float, doc("expected cost of a call with these edges, in the unit of the cost")]
    ideal_cost: Annotated[float, doc("expected cost of a call without any padding")]
    padding_share: Annotated[float, doc("expected share of padding in the length that is computed")]
    pareto: Annotated[list[ParetoPoint], doc("one point per number of graphs, fewest first")] = []


class AxisPlan(Record, frozen=True, kw_only=True):
    """Edges of one named size that several inputs may share."""

    name: str
    edges: list[int]


class CropRule(Record, frozen=True, kw_only=True):
    """How a dimension of an output follows a size of the inputs: size · factor + offset, or size divided by divisor."""

    leaf: Annotated[int, doc("number of the tensor among the leaves of the output")]
    dim: int
    axis: str
    factor: int = 1
    divisor: Annotated[int, doc("1, or what the size is divided by")] = 1
    rounding: Annotated[str, doc("floor or ceil, where it is divided")] = "floor"
    offset: int = 0

    def size(self, given: int) -> int:
        """The dimension of the output for a size of the input.

        >>> CropRule(leaf=0, dim=1, axis="length", divisor=2, rounding="ceil").size(7)
        4
        """
        scaled = given * self.factor
        if self.rounding == "ceil":
            return -(-scaled // self.divisor) + self.offset
        return scaled // self.divisor + self.offset


class BucketPlan(Record, frozen=True, kw_only=True):
    """What is learned once and kept: the edges of every size."""

    axes: list[AxisPlan]
    cells: Annotated[
        list[list[int]], doc("combinations of edges that the sample used, in the order of the axes")
    ] = []
    num_samples: Annotated[int, doc("calls that the plan rests on")] = 0
    padding_share: Annotated[float | None, doc("expected share of padding; null for edges given by hand")] = (
        None
    )

    def edges(self, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
        """The nearest edges at or above some sizes; `None` where a size is beyond the last.

        >>> plan = BucketPlan(axes=[AxisPlan(name="length", edges=[64, 128])])
        >>> plan.edges((65,)), plan.edges((129,))
        ((128,), None)
        """
        found = []
        for axis, size in zip(self.axes, sizes, strict=True):
            edge = next((edge for edge in axis.edges if edge >= size), None)
            if edge is None:
                return None
            found.append(edge)
        return tuple(found)


class BucketUse(Record, frozen=True, kw_only=True):
    """One compiled graph that is held."""

    edges: dict[str, int]
    calls: int
    compile_s: Annotated[Seconds, doc("first call, compilation included")]
    step_s: Annotated[Seconds | None, doc("median of a few timed calls; null before any")]
    held_bytes: Annotated[Bytes, doc("growth of memory over the first call")]
    max_error: Annotated[float | None, doc("largest relative error that a check found; null when unchecked")]


class WayCost(Record, frozen=True, kw_only=True):
    """What a mean step takes in one way to run a model whose sizes vary."""

    name: Annotated[str, doc("buckets, dynamic, one_size or eager")]
    step_s: Annotated[
        Seconds | None, doc("over the sizes of the sample, nothing compiled; null when it failed")
    ] = None
    failure: str | None = None


class BucketStatistics(Record, frozen=True, kw_only=True):
    """What buckets did so far."""

    calls: int
    hits: Annotated[int, doc("calls that found their graph compiled")]
    misses: Annotated[int, doc("calls that had to compile a bucket's graph")]
    warmup_calls: Annotated[int, doc("calls before there was a plan")]
    fallback_calls: Annotated[
        int, doc("calls left to the dynamic graph, or to the model itself where nothing compiles")
    ]
    cropped_calls: Annotated[int, doc("calls whose inputs were cut to the last edge")]
    evictions: int
    num_graphs: Annotated[int, doc("graphs held now, the dynamic one not counted")]
    precompiled: Annotated[int, doc("graphs that were compiled before traffic")]
    distinct_sizes: Annotated[int, doc("different sizes seen: graphs that a static compilation would need")]
    recompiles_avoided: Annotated[int, doc("distinct_sizes less the graphs that buckets compiled")]
    padding_share: Annotated[float, doc("padding in what buckets computed, by number of elements")]
    lost_s: Annotated[
        Seconds | None, doc("computing on padding: step time times the share of its cost; null if untimed")
    ]
    copying_s: Annotated[Seconds, doc("padding inputs and cropping outputs, on the host")]
    compile_s: Annotated[Seconds, doc("first calls of all graphs")]
    checks: Annotated[int, doc("calls whose result was compared with the unpadded one")]
    max_error: Annotated[float | None, doc("largest relative error of all checks")]
    held_bytes: Bytes
    refusals: Annotated[
        list[str], doc("why padding was refused, where calls go on by the dynamic graph")
    ] = []
    notes: list[str] = []
    buckets: list[BucketUse] = []
    ways: Annotated[
        list[WayCost],
        doc("buckets against the other ways, measured by precompile; empty where it was not called"),
    ] = []
    recommended: Annotated[
        str | None, doc("the fastest of these ways; of nearly equal ones the simplest")
    ] = None

    @property
    def hit_rate(self) -> float:
        """Hits among all calls once there was a plan."""
        planned = self.hits + self.misses + self.fallback_calls
        return self.hits / planned if planned else 0.0


class StrategyResult(Record, frozen=True, kw_only=True):
    """One way to compile for varying sizes, measured over the sample's sizes."""

    name: Annotated[str, doc("eager, static, buckets, one_size, dynamic or mark_dynamic")]
    num_graphs: Annotated[int | None, doc("graphs for the whole sample; null when it failed")] = None
    compile_s: Annotated[Seconds | None, doc("all compilations that the sample needs")] = None
    compile_estimated: Annotated[
        bool, doc("whether compile_s is extrapolated from the graphs that were compiled")
    ] = False
    step_s: Annotated[Seconds | None, doc("mean step over the sample's sizes, nothing compiled")] = None
    padding_share: float = 0.0
    total_s: Annotated[Seconds | None, doc("compile_s and all expected calls")] = None
    verdict: Annotated[Verdict | None, doc("against eager, in interleaved blocks; null of eager itself")] = (
        None
    )
    failure: Annotated[str | None, doc("why it cannot be used")] = None
    note: str = ""


class ShapeStrategies(Record, frozen=True, kw_only=True):
    """How to compile a model whose sizes vary."""

    strategies: list[StrategyResult]
    recommended: str
    advice: Annotated[Advice, doc("the recommendation with its figures")]
    expected_calls: int
    num_sizes: Annotated[int, doc("distinct sizes in the sample")]
    num_samples: int
    compiled_how: Annotated[str, doc("in which state of torch's caches compile_s was measured")] = ""
    measured_sizes: Annotated[list[dict[str, list[int]]], doc("shapes that a measured pass consists of")] = []
    plan: Annotated[BucketPlan | None, doc("edges for ShapeBuckets; null where padding was refused")] = None
    pareto: Annotated[list[ParetoPoint], doc("of the only varying size; empty for several")] = []


class Padding(Record, frozen=True, kw_only=True):
    """Share of padding before and after."""

    num_sequences: int
    padding_before: float
    padding_after: float

    @property
    def effective_gain(self) -> float:
        """Effective tokens per computed token, after over before: at equal throughput, effective tokens/s by so much."""
        return (1 - self.padding_after) / (1 - self.padding_before) if self.padding_before < 1 else 1.0


class PackingReport(Padding, frozen=True, kw_only=True):
    """What packing sequences into rows of one length changes; before, each is padded to its batch's longest."""

    num_rows: int
    capacity: Annotated[int, doc("length of a row")]
    num_tokens: int
    batch_size: Annotated[int, doc("sequences per batch before; rows hold as many tokens after")]
    lower_bound_rows: Annotated[int, doc("no packing needs fewer rows")]


class SamplingReport(Padding, frozen=True, kw_only=True):
    """What batching sequences of like length changes; before, batches of the same size are drawn at random."""

    num_batches: int
