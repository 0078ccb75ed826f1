"""The format of the event log, shared by the writer in the script and the reader outside.

A log is a sequence of 64-bit little-endian integers: a header of `HEADER_WORDS`, then two per event, the time and a
word that holds kind, flags and value. A word of zero ends the log: the file is allocated ahead and filled from the
start, so that a process that is killed loses nothing.

History of `VERSION`: 1 is the first.
"""

LOG_WORD_BYTES = 8
MAGIC = 0x474F4C4F52595001
VERSION = 1
# Magic, version, start of the script on the clock of the events, and the same moment in Unix time, both in ns.
HEADER_WORDS = 8

FORWARD_BEGIN = 1
FORWARD_END = 2
BACKWARD_BEGIN = 3
BACKWARD_END = 4
DATA_BEGIN = 5
DATA_END = 6
OPTIMIZER_BEGIN = 7
OPTIMIZER_END = 8
LAST_PHASE_KIND = OPTIMIZER_END

RESIDENT_BYTES = 16
ALLOCATED_BYTES = 17
ALLOCATED_PEAK_BYTES = 18
DEVICE_NS = 19  # device time since the boundary before; the event's time is that of the host at the boundary

TORCH_IMPORTED = 32
NOT_OBSERVED = 33  # value: index into HOOK_POINTS
SAMPLER_FAILED = 34
LOG_FULL = 35
ELSEWHERE = 36  # value: calls on other threads
RESIDENT_PEAK_BYTES = 37
COMPILE_NS = 38
ENDED = 39
BATCH_SIZE = 40  # value: samples in a batch of the loader that is asked

TRACE_BEGIN = 48  # the profiler records from here on
TRACE_END = 49  # value: whole steps that it recorded
TRACE_TROUBLE = 50  # value: index into TRACE_TROUBLES
HOST_SAMPLED = 51  # the step that ends here was sampled
HOST_WATCHED = (
    52  # the step that ends here was watched instruction by instruction, or what was seen was worked on in it
)
MOVED = 53  # from here on another thread is observed, as it calls the modules
COLLECTED = 54  # Python has collected garbage; value: for how long, in ns

# Flags, with the kinds that they go with.
EVALUATION = 1  # FORWARD_BEGIN: in evaluation mode, or without gradients
FIRST_FETCH = 1  # DATA_BEGIN: the first of its iterator
EXHAUSTED = 1  # DATA_END: there was no further batch

HOOK_POINTS = (
    "torch's import",
    "module calls",
    "backward",
    "data loader",
    "optimizer steps",
    "torch.compile",
)

TRACE_TROUBLES = (
    "too few steps",
    "profiled by itself",
    "gave way",
    "cut off",
    "no modules",
    "failed",
)

KIND_BITS = 8
FLAG_BITS = 8
KIND_MASK = (1 << KIND_BITS) - 1
VALUE_SHIFT = KIND_BITS + FLAG_BITS


def word(kind: int, value: int = 0, flags: int = 0) -> int:
    """Pack an event; `value` takes 47 bits, enough for an address or a size.

    >>> word(5, value=3, flags=1)
    196869
    """
    return kind | flags << KIND_BITS | value << VALUE_SHIFT
