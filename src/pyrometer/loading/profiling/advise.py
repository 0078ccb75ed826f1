"""Advice from a profile: pure functions of the record, each silent unless there is much to gain."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyrometer.advice import Advice
from pyrometer.loading.model import modelled
from pyrometer.loading.profiling.record import SampleProfile
from pyrometer.quantity import Seconds, counted, format_bytes, format_percent, format_seconds, significant

Advisor: TypeAlias = Callable[[SampleProfile], list[Advice]]

CACHED_READ_S = 5e-6
CACHED_BYTES_PER_S = 5e9
_WORTH = 0.2
_MIN_SAVED_S = 50e-6  # per sample: below it, a cache is more trouble than it is worth
_MIN_COMPARISONS = 4
_MIN_WASTE = 16 * 1024
_MIN_PRIVATE = 16 * 2**20
_MIN_PICKLED = 64 * 2**20


def advise_on_samples(profile: SampleProfile) -> list[Advice]:
    """Everything worth changing, the largest predicted gain first, then what has no prediction."""
    advice = [one for advisor in _ADVISORS for one in advisor(profile)]
    return sorted(advice, key=lambda one: -one.saves_s)


def repeated_work(profile: SampleProfile) -> list[Advice]:
    """Work that gives the same in every epoch, and takes much longer than reading its outcome from memory."""
    work = profile.repeated
    if (
        work is None
        or work.same_s is None
        or work.cached_bytes is None
        or work.num_comparisons < _MIN_COMPARISONS
    ):
        return []
    saved_s = work.same_s - CACHED_READ_S - work.cached_bytes / CACHED_BYTES_PER_S
    if profile.kind == "iterable" or saved_s < max(_MIN_SAVED_S, _WORTH * work.sample_s):
        return []
    prefix = work.stages[: work.num_same_stages]
    whole = not prefix or work.num_same_stages == len(work.stages)
    what = "the whole sample" if whole else " → ".join(stage.name for stage in prefix)
    total = work.cached_total_bytes
    memory = "" if total is None else f", {format_bytes(total)} for the dataset"
    epoch = (
        ""
        if profile.num_samples is None
        else f"; {format_seconds(saved_s * profile.num_samples)} of work per epoch"
    )
    use = (
        "kept = [dataset[i] for i in range(len(dataset))]  # once, before the loader starts; then DataLoader(kept, …)"
        if whole
        else f"keep the outcome of {prefix[-1].name} for every index (once, before the loader starts; a tensor or np.memmap), "
        "and apply only the rest in __getitem__"
    )
    return [
        Advice(
            slug="cache-repeated-work",
            fix_class="semantic",
            title="Keep what is the same in every epoch",
            why=f"{what} came out the same in all of {counted(work.num_comparisons, 'repetition')} with other random numbers, and is "
            f"{format_percent(work.same_s / work.sample_s)} of {format_seconds(work.sample_s)} per sample",
            effect=f"{use}; the same samples from the second epoch on{epoch}; takes {format_bytes(work.cached_bytes)} per sample{memory}, "
            "once for all workers if it is in one array, else once per worker",
            gain=modelled(_per_step(profile, saved_s * _batch_size(profile))),
        )
    ]


def slow_collate(profile: SampleProfile) -> list[Advice]:
    """A collate function where torch's own does the same in less than half the time, or that takes many times a copy."""
    times = profile.batches
    if times is None or times.collate_share < 0.1:
        return []
    if times.default_s is not None:
        if times.default_s > times.collate_s / 2:
            return []
        return [
            Advice(
                slug="default-collate",
                fix_class="semantic",
                title="Leave collate_fn out",
                why=f"{times.collate} takes {format_seconds(times.collate_s)} per batch "
                f"({format_percent(times.collate_share)} of making one); torch's default_collate gives an equal batch in "
                f"{format_seconds(times.default_s)}",
                effect="the same batches, sooner",
                gain=modelled(_per_step(profile, times.collate_s - times.default_s)),
            )
        ]
    heavy = times.collate_s > 20 * times.copy_s and times.collate_share > 0.3
    if not heavy or times.collate == "default_collate":
        return []
    at = next(
        (f", most of it at {line.place} ({line.source})" for line in times.lines if line.stage == "collate"),
        "",
    )
    return [
        Advice(
            slug="vectorise-collate",
            fix_class="semantic",
            title="Put samples together without a Python loop over their elements",
            why=f"{times.collate} takes {format_seconds(times.collate_s)} per batch "
            f"({format_percent(times.collate_share)} of making one), "
            f"{significant(times.collate_s / max(times.copy_s, 1e-9), 2)} times as long as copying its bytes{at}",
            effect="torch.stack of tensors, torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True), or one tensor that is filled by "
            "slices; "
            "the same batches; what a loop in C saves depends on what is done per element",
        )
    ]


def number_lists(profile: SampleProfile) -> list[Advice]:
    """Lists of Python numbers in samples."""
    contents = profile.contents
    if contents is None or not contents.number_lists or profile.batches is None:
        return []
    if profile.batches.collate != "default_collate":
        return []
    longest = max(contents.number_lists, key=lambda number_list: number_list.length)
    place = f"sample{longest.path}"
    return [
        Advice(
            slug="arrays-not-lists",
            fix_class="semantic",
            title="Return arrays instead of lists of numbers",
            why=f"{place} is a list of {longest.length} numbers: default_collate makes {longest.length} tensors of it, one per "
            f"place in the list ({counted(contents.num_tensors, 'tensor')} per batch)",
            effect=f"return torch.tensor({place}) from __getitem__; where the model stacks them, leave that out; "
            f"one tensor (batch, {longest.length}) in their place: the stacked ones, transposed",
        )
    ]


def small_tensors(profile: SampleProfile) -> list[Advice]:
    """Many small tensors, each of which is copied to a device on its own."""
    contents = profile.contents
    if contents is None or contents.num_tensors < 16 or contents.transfer_s < 2 * contents.packed_transfer_s:
        return []
    return [
        Advice(
            slug="pack-tensors",
            fix_class="semantic",
            title="Send many small tensors as one",
            why=f"a batch has {counted(contents.num_tensors, 'tensor')} of {format_bytes(contents.median_tensor_bytes)} (median): "
            f"{format_seconds(contents.transfer_s)} to a device one by one, {format_seconds(contents.packed_transfer_s)} as one (predicted "
            "with 10 µs per copy and 12 GB/s)",
            effect="flat = torch.cat([t.reshape(-1) for t in tensors]).to(device, non_blocking=True); then "
            "[part.view(t.shape) for part, t in zip(flat.split([t.numel() for t in tensors]), tensors)], per dtype; "
            "the same tensors, as views of one; saves copies to a device only, nothing on the CPU",
        )
    ]


def wide_types(profile: SampleProfile) -> list[Advice]:
    """Tensors of wider types than their values need."""
    contents = profile.contents
    if contents is None:
        return []
    return [
        Advice(
            slug="narrower-dtype",
            fix_class="semantic",
            title=f"Send {kind.fits.removeprefix('torch.')} instead of {kind.dtype.removeprefix('torch.')}",
            why=f"batch{kind.path} is {kind.dtype}, {format_bytes(kind.num_bytes)} per batch; "
            + ("its values fit" if kind.exact else "what it was made from fits")
            + f" {kind.fits}",
            effect=f"{_widening(kind.path, kind.dtype, kind.fits, kind.scale, exact=kind.exact)}; {format_bytes(kind.saved_bytes)} less per batch to put together, to share between processes and to copy; "
            + ("the same values" if kind.exact else "values differ by rounding"),
        )
        for kind in contents.narrower
        if kind.saved_bytes >= max(_MIN_WASTE, _WORTH * contents.num_bytes)
    ]


def padding(profile: SampleProfile) -> list[Advice]:
    """Padding that another length or another order would leave out; one advice, on the tensor with most of it."""
    advice = []
    worst = max(profile.padding, key=lambda one: one.share, default=None)
    if worst is None:
        return []
    known = f"{format_percent(worst.share)} of batch{worst.path} is padding (by {worst.source}, {counted(worst.num_samples, 'sample')})"
    if worst.share - worst.longest_share > 0.1:
        advice.append(
            Advice(
                slug="pad-to-longest",
                fix_class="semantic",
                lever="shape_buckets",
                title="Pad to the longest sample of each batch",
                why=f"{known}; all is padded to {worst.padded_to}, the longest has {worst.longest}",
                effect="pad in collate_fn: torch.nn.utils.rnn.pad_sequence(samples, batch_first=True); "
                f"{format_percent(worst.longest_share)} padding; batches get different lengths, which torch.compile must be "
                "prepared for",
            )
        )
    if worst.longest_share - worst.sorted_share > 0.1:
        advice.append(
            Advice(
                slug="bucket-by-length",
                fix_class="semantic",
                lever="shape_buckets",
                title="Draw batches of samples of like length",
                why=f"{known}; padded to the longest of each batch it is {format_percent(worst.longest_share)}, since short and long "
                "samples meet",
                effect="DataLoader(dataset, batch_sampler=pyrometer.BucketBatchSampler(lengths, batch_size=…), collate_fn=…); "
                f"about {format_percent(worst.sorted_share)} padding; every sample still once per epoch, in another order",
            )
        )
    return advice


def held_objects(profile: SampleProfile) -> list[Advice]:
    """Python objects that grow the memory of every worker."""
    large = [one for one in profile.held if one.private_bytes >= _MIN_PRIVATE]
    return [
        Advice(
            slug="pack-objects",
            fix_class="semantic",
            title="Keep many small objects in one array",
            why=f"{one.path} is a {one.kind} with {counted(one.num_objects, 'Python object')}: every forked worker that looks at them "
            f"copies their pages, about {format_bytes(one.private_bytes)} per worker",
            effect="numpy.array(texts, dtype='S'), or one tensor of bytes with a tensor of offsets; numbers as a tensor; "
            f"about {format_bytes(one.private_bytes * max(1, profile.num_workers))} less in "
            f"{counted(max(1, profile.num_workers), 'worker')}; items are decoded when they are asked for",
        )
        for one in large
    ]


def heavy_pickle(profile: SampleProfile) -> list[Advice]:
    """A dataset that is slow to send, or cannot be sent, to workers that are spawned."""
    sent = profile.pickled
    if sent is None:
        return []
    if sent.failure is not None:
        return [
            Advice(
                slug="picklable-dataset",
                fix_class="semantic",
                title="Make dataset and collate_fn picklable",
                why=f"they cannot be sent to spawned workers ({sent.failure}); only fork works, which Python no longer starts "
                "processes by from 3.14 on",
                effect="define functions and classes at the top of a module; open files in __getitem__ when they are first needed; "
                "the loader works with every start method",
            )
        ]
    if sent.complete and sent.num_bytes < _MIN_PICKLED:
        return []
    size = format_bytes(sent.num_bytes) if sent.complete else f"more than {format_bytes(sent.num_bytes)}"
    return [
        Advice(
            slug="lighter-dataset",
            fix_class="semantic",
            title="Let workers share data instead of sending it",
            why=f"dataset and collate_fn are {size} when pickled ({format_seconds(sent.time_s)}), for every worker that is spawned",
            effect="hold data as torch tensors (workers share them), or as np.load(path, mmap_mode='r') opened in the worker; "
            "workers start sooner and take less memory; nothing changes where workers are forked",
        )
    ]


def slower_with_index(profile: SampleProfile) -> list[Advice]:
    """Samples that take longer the further back they are."""
    trend = profile.samples.trend
    if trend is None or trend.rank_correlation < 0.8 or trend.p_value > 1e-4 or trend.last_over_first < 3:
        return []
    return [
        Advice(
            slug="constant-time-access",
            fix_class="semantic",
            title="Go to a sample directly",
            why=f"samples take longer the larger their index: the last fifth {significant(trend.last_over_first, 2)} times as long as the "
            "first",
            effect="keep the offset of every sample (an index file, memory mapping, random-access format) instead of reading up to it; "
            "the same samples, each in the time of the first ones",
        )
    ]


_ADVISORS: tuple[Advisor, ...] = (
    repeated_work,
    slow_collate,
    number_lists,
    small_tensors,
    wide_types,
    padding,
    held_objects,
    heavy_pickle,
    slower_with_index,
)


def _batch_size(profile: SampleProfile) -> float:
    if profile.batch_size is not None:
        return profile.batch_size
    return profile.batches.batch_size if profile.batches is not None else 1.0


def _per_step(profile: SampleProfile, batch_s: Seconds) -> Seconds:
    """Gain per step of work that workers share."""
    return batch_s / max(1, profile.num_workers)


def _widening(path: str, dtype: str, fits: str, scale: float | None, *, exact: bool) -> str:
    if fits == "torch.float32":
        return f"give batch{path} as float32: .float() or dtype=np.float32 where it is made"
    if not exact:
        return (
            f"give batch{path} as uint8, and do what makes {dtype} of it (scaling, normalising) on the device"
        )
    back = f".div({1 / scale:g})" if scale is not None else ""
    return f"give batch{path} as {fits.removeprefix('torch.')}, and on the device .to({dtype}){back}"
