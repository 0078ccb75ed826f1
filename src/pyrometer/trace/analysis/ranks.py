"""All ranks of a job beside each other."""

from __future__ import annotations

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.jobs.job import Job
from pyrometer.trace.jobs.merge import merge_ranks
from pyrometer.trace.jobs.reduce import reduce_rank
from pyrometer.trace.trace import Trace


@analysis("ranks", scope="job")
def ranks(trace: Trace) -> Job:
    """Compare the ranks: who waits for whom and why, balance, clocks, bubbles, and what does not match.

    For more ranks than memory holds, `pyrometer.trace.jobs.merge.read_job` gives the same from the files.
    """
    return merge_ranks(reduce_rank(rank) for rank in trace.ranks)
