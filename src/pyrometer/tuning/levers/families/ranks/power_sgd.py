"""PowerSGD of torch, one bucket at a time, for backends without an order of their own."""

# Without postponed annotations: DistributedDataParallel reads those of a hook.
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

from pyrometer.tuning.levers.families.ranks.top_k import Averaged, Bucket


def in_turn(state: powerSGD_hook.PowerSGDState, bucket: Bucket) -> Averaged:
    """Torch's hook, ended before the next bucket begins.

    It begins its second and third collective when the one before has ended. Gloo runs those of several buckets on several threads, in
    another order on each rank: they meet the wrong ones, and the process is aborted. NCCL has a stream that keeps the order.
    """
    begun: Averaged = powerSGD_hook.powerSGD_hook(state, bucket)
    done = Averaged()
    done.set_result(begun.wait())
    return done
