"""What profiling a dataset and its collate function finds."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.advice import Advice
from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.record import Record, doc

Bound = Literal["cpu", "io", "mixed"]


class SlowSample(Record, frozen=True, kw_only=True):
    """A sample that took long."""

    index: Annotated[int, doc("in the dataset; its place in the stream for an iterable one")]
    time_s: Seconds


class Trend(Record, frozen=True, kw_only=True):
    """How the time of a sample changes with its index."""

    rank_correlation: Annotated[float, doc("Spearman's, of index and time; -1 to 1")]
    p_value: Annotated[float, doc("chance of such a correlation without a trend")]
    last_over_first: Annotated[
        Ratio, doc("median time of the last fifth of the indices over the first fifth")
    ]


class SampleTimes(Record, frozen=True, kw_only=True):
    """Times of single samples, spread evenly over the dataset."""

    num_samples: int
    mean_s: Seconds
    median_s: Seconds
    p90_s: Seconds
    p99_s: Seconds
    max_s: Seconds
    cpu_share: Annotated[float, doc("CPU time of the calling thread over wall time")]
    bound: Annotated[Bound, doc("cpu from a share of 0.8, io below 0.5: then more workers than cores help")]
    start_s: Annotated[
        Seconds | None, doc("until the first sample of an iterable dataset; not among the times")
    ] = None
    slowest: Annotated[list[SlowSample], doc("slowest first")] = []
    trend: Annotated[Trend | None, doc("null with fewer than 20 samples, and for iterable datasets")] = None


class LineShare(Record, frozen=True, kw_only=True):
    """A line of the user's code, and how much of the time passes at it or in what it calls."""

    place: Annotated[str, doc("file:line")]
    function: str
    source: Annotated[str, doc("the line's text")]
    stage: Annotated[str, doc("dataset or collate")]
    share: Annotated[float, doc("of the time that batches took")]


class BatchTimes(Record, frozen=True, kw_only=True):
    """Times of whole batches, made as the loader makes them but in this process."""

    num_batches: int
    batch_size: Annotated[float, doc("mean number of samples; smaller than the loader's where time ran out")]
    fetch_s: Annotated[Seconds, doc("median time for the samples of a batch")]
    collate_s: Annotated[Seconds, doc("median time to put them together")]
    collate_share: Annotated[float, doc("collate_s over the sum of both")]
    collate: Annotated[str, doc("name of the collate function")]
    default_s: Annotated[
        Seconds | None,
        doc("the same by default_collate, where that gives an equal batch and is not what is used"),
    ] = None
    copy_s: Annotated[Seconds, doc("copying the batch's bytes once, for comparison")] = 0.0
    lines: Annotated[list[LineShare], doc("largest share first")] = []
    line_sampling_share: Annotated[
        float, doc("CPU time of the thread that looks at the lines, over the time of the batches")
    ] = 0.0


class NarrowerType(Record, frozen=True, kw_only=True):
    """A tensor of a batch whose values fit a smaller dtype."""

    path: Annotated[str, doc("where in the batch, such as [0] or ['image']")]
    dtype: str
    fits: Annotated[str, doc("the smaller dtype")]
    exact: Annotated[bool, doc("whether no value changes by it, of those looked at")]
    num_bytes: Annotated[Bytes, doc("of the tensor, per batch")]
    saved_bytes: Annotated[Bytes, doc("per batch")]
    scale: Annotated[
        float | None, doc("what to multiply by after the cast back; null where none is needed or known")
    ] = None


class NumberList(Record, frozen=True, kw_only=True):
    """Python numbers in a list, which are put together one by one."""

    path: Annotated[str, doc("where in the sample")]
    length: int


class BatchContents(Record, frozen=True, kw_only=True):
    """What a batch holds."""

    num_tensors: int
    num_bytes: Annotated[Bytes, doc("of all tensors and arrays")]
    sample_bytes: Annotated[Bytes, doc("mean over samples, before they are put together")]
    median_tensor_bytes: Bytes
    transfer_s: Annotated[Seconds, doc("predicted copy to a device, tensor by tensor")]
    packed_transfer_s: Annotated[Seconds, doc("the same as one tensor")]
    narrower: list[NarrowerType] = []
    number_lists: list[NumberList] = []


class Padding(Record, frozen=True, kw_only=True):
    """Padding in one tensor of the batches."""

    path: str
    source: Annotated[str, doc("how it is known: lengths of the samples, mask, lengths, or constant tails")]
    share: Annotated[float, doc("padded share of the positions")]
    longest_share: Annotated[float, doc("what padding to the longest of each batch would leave")]
    sorted_share: Annotated[float, doc("what batches of like length, padded to their longest, would leave")]
    num_samples: int
    longest: Annotated[int, doc("longest sample seen")]
    padded_to: Annotated[int, doc("largest padded length seen")]


class PipelineStage(Record, frozen=True, kw_only=True):
    """A step on the way from the dataset to the sample."""

    name: Annotated[str, doc("load, the class or function of a transform, or rest")]
    median_s: Seconds
    same: Annotated[bool, doc("whether it gave the same whenever the same sample was asked for")]
    num_bytes: Annotated[Bytes | None, doc("of what it gives; null where that cannot be told")] = None


class RepeatedWork(Record, frozen=True, kw_only=True):
    """What of a sample is the same each time that it is asked for, with other random numbers."""

    num_comparisons: Annotated[int, doc("pairs of fetches of the same sample that were compared")]
    unseen_below: Annotated[
        float, doc("randomness that acts on a smaller share of the samples may have gone unseen (95 %)")
    ]
    same_share: Annotated[float, doc("share of the pairs that gave equal samples, byte by byte")]
    sample_s: Annotated[Seconds, doc("median time of a sample when it is asked for again")]
    stages: Annotated[list[PipelineStage], doc("empty where the dataset shows no pipeline")] = []
    num_same_stages: Annotated[int, doc("how many stages from the first on are the same each time")] = 0
    same_s: Annotated[
        Seconds | None, doc("time per sample of what is the same; null where that cannot be told")
    ] = None
    cached_bytes: Annotated[Bytes | None, doc("to keep the outcome of it for one sample")] = None
    cached_total_bytes: Annotated[Bytes | None, doc("the same for the whole dataset")] = None


class HeldObjects(Record, frozen=True, kw_only=True):
    """Python objects that a dataset holds: forked workers get a copy of their own of each that they look at."""

    path: Annotated[str, doc("attribute of the dataset")]
    kind: Annotated[str, doc("type of the container and of its first element")]
    num_objects: int
    private_bytes: Annotated[
        Bytes, doc("estimated growth per worker once it has seen all; from a sample of them")
    ]


class PickledDataset(Record, frozen=True, kw_only=True):
    """What is sent to each worker that is spawned, not forked: the dataset and the collate function."""

    num_bytes: Annotated[Bytes, doc("pickled, tensors apart; a lower bound where complete is false")]
    time_s: Seconds
    tensor_bytes: Annotated[Bytes, doc("tensors, which workers share")]
    complete: Annotated[bool, doc("false where time or size ran out before the end")] = True
    failure: Annotated[str | None, doc("why it cannot be pickled")] = None


class SampleProfile(Record, frozen=True, kw_only=True):
    """What samples and batches cost, where the time goes, and what of it could be saved."""

    dataset: Annotated[str, doc("class of the dataset")]
    kind: Annotated[Literal["map", "iterable"], doc("whether samples are asked for by index")]
    num_samples: Annotated[int | None, doc("of the dataset; null where it has no length")] = None
    batch_size: Annotated[int | None, doc("of the loader; null where samples are not put together")] = None
    num_workers: int = 0
    samples: SampleTimes
    batches: Annotated[BatchTimes | None, doc("null where samples cannot be put together")] = None
    contents: Annotated[BatchContents | None, doc("null where there is no batch")] = None
    padding: list[Padding] = []
    repeated: Annotated[RepeatedWork | None, doc("null where nothing could be fetched twice")] = None
    held: list[HeldObjects] = []
    pickled: PickledDataset | None = None
    advice: list[Advice] = []
    notes: Annotated[list[str], doc("what was done with the dataset, and what could not be told")] = []
    elapsed_s: Seconds
