"""Top-k sparsification with error feedback, as a communication hook of DistributedDataParallel.

Of each bucket the `share` of gradients that are largest is sent, as pairs of value and place in one collective; the rest is
kept and added to the gradients of the next step. Lin et al., Deep Gradient Compression (2018).
"""

# Without postponed annotations: DistributedDataParallel reads those of a hook.
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
import torch.distributed as dist

Averaged: TypeAlias = torch.futures.Future[torch.Tensor]
if TYPE_CHECKING:
    Bucket: TypeAlias = Any  # torch types it in some modules only
else:
    Bucket = dist.GradBucket


class TopK:
    """The state of the hook on one rank.

    Args:
        group: process group; `None` for all ranks.
        share: of the gradients, above 0 and at most 1.
        first_compressed: steps in which all is sent: DistributedDataParallel finds its buckets in the first.
    """

    def __init__(self, group: dist.ProcessGroup | None, share: float, first_compressed: int = 2) -> None:
        if not 0 < share <= 1:
            raise ValueError(f"share: got {share}; legal is above 0 and at most 1, for example 0.1")
        self.group = group
        self.share = share
        self.first_compressed = first_compressed
        self.num_steps = 0
        self._kept: dict[int, torch.Tensor] = {}

    @staticmethod
    def hook(state: "TopK", bucket: Bucket) -> Averaged:
        """For `register_comm_hook`."""
        return state.send(bucket)

    def send(self, bucket: Bucket) -> Averaged:
        """Begin to average a bucket; the future holds it."""
        flat: torch.Tensor = bucket.buffer()
        index: int = bucket.index()
        compressed = self.num_steps >= self.first_compressed
        self.num_steps += bucket.is_last()
        num_ranks = dist.get_world_size(self.group)
        if not compressed:
            whole: Any = dist.all_reduce(flat.div_(num_ranks), group=self.group, async_op=True).get_future()
            first: Averaged = whole.then(lambda done: done.value()[0])
            return first
        wanted = flat + self._kept[index] if index in self._kept else flat.clone()
        number = max(1, int(len(wanted) * self.share))
        places = wanted.abs().topk(number, sorted=False).indices
        values = wanted[places]
        wanted[places] = 0
        self._kept[index] = wanted
        # Places travel as the bits of float32, behind the values: one message in place of two.
        own = torch.cat([values, places.to(torch.int32).view(torch.float32)])
        all_ranks = own.new_empty(num_ranks * len(own))
        gather: Any = (
            getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        )  # the name before 2.13
        sent: Any = gather(all_ranks, own, group=self.group, async_op=True).get_future()

        def average(_: Any) -> torch.Tensor:
            parts = all_ranks.view(num_ranks, 2, number)
            flat.zero_()
            flat.index_add_(0, parts[:, 1].reshape(-1).view(torch.int32).long(), parts[:, 0].reshape(-1))
            flat.div_(num_ranks)
            return flat

        averaged: Averaged = sent.then(average)
        return averaged
