"""Write the traces of a data-parallel job on four ranks, one of which makes the others wait.

    python examples/job_traces.py ranks            # rank0.json.gz … rank3.json.gz
    python examples/job_traces.py fixed --fixed    # the same job without the straggler

The files are what `torch.profiler` writes (Kineto JSON), computed instead of recorded: no GPU is needed, and the truth is
known. Ten steps of a 12-layer network on 2048 × 4096 bf16 activations; gradients are reduced in three buckets beside the backward
pass. On rank 2 the data loader takes 9 ms instead of 1.5 ms, give or take a tenth. The clocks of the hosts differ.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from pathlib import Path
from typing import Any

RANKS, STEPS, LAYERS = 4, 10, 12
STRAGGLER, USUAL_LOADING_US, SLOW_LOADING_US = 2, 1500, 9000
CLOCK_AHEAD_US = {0: 0, 1: 2600, 2: -1400, 3: 800}
COPY_US, MATMUL_US, GELU_US, REDUCE_US, UPDATE_US = 700, 400, 25, 1500, 900
LAUNCH_US, COMPUTE_STREAM, COMM_STREAM = 5, 7, 20
LAYERS_PER_BUCKET = 4
BUCKET_ELEMENTS = LAYERS_PER_BUCKET * 4096 * 4096
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
FORWARD_KERNEL = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_relu_f2f_tn"
BACKWARD_KERNEL = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_nt"
BACKWARD_NODE = "autograd::engine::evaluate_function: AddmmBackward0"
REDUCE_KERNEL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "computeMajor": 8, "computeMinor": 0}
MAIN_THREAD, BACKWARD_THREAD = 100, 200
LINEAR = {"Input Dims": [[4096], [2048, 4096], [4096, 4096]], "Input type": ["c10::BFloat16"] * 3}
GRADIENT = {"Input Dims": [[4096, 2048], [2048, 4096]], "Input type": ["c10::BFloat16"] * 2}
GELU = {"Input Dims": [[2048, 4096]], "Input type": ["c10::BFloat16"]}


class Rank:
    """The events of one rank; the host runs ahead of its device, and waits for it at the end of a step."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.ahead_us = CLOCK_AHEAD_US[rank]
        self.events: list[dict[str, Any]] = []
        self.correlation = 0
        self.thread = MAIN_THREAD
        self.host = 0.0  # when that thread is free
        self.device = 0.0  # when the compute stream is
        self.chance = random.Random(rank)

    def add(self, cat: str, name: str, at: float, dur: float, **args: Any) -> None:
        on_device = cat in {"kernel", "gpu_memcpy"}
        pid, tid = (0, args["stream"]) if on_device else (4000 + self.rank, self.thread)
        times = {"ts": round(at + self.ahead_us, 3), "dur": round(dur, 3)}
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": args}
        )

    def launch(self, call: str, name: str, dur: float, begins: float | None = None, **args: Any) -> None:
        """A runtime call at this moment, and its work: on the compute stream after all that is queued there, or at `begins`."""
        self.correlation += 1
        self.add("cuda_runtime", call, self.host, LAUNCH_US, correlation=self.correlation)
        if begins is None:
            begins = max(self.device, self.host + LAUNCH_US + 3)
            self.device = begins + dur
        cat = "gpu_memcpy" if "Memcpy" in call else "kernel"
        args = {"stream": COMPUTE_STREAM, "device": 0, "correlation": self.correlation, **args}
        self.add(cat, name, begins, dur, **args)
        self.host += LAUNCH_US

    def op(self, name: str, kernel: str, dur: float, **shapes: Any) -> None:
        """An operator that launches one kernel."""
        began = self.host
        self.host += 12
        self.launch("cudaLaunchKernel", kernel, dur)
        self.host += 8
        self.add("cpu_op", name, began, self.host - began, **shapes)

    def load(self, usual_us: float) -> None:
        took_us = round(usual_us * self.chance.uniform(0.9, 1.1), 1)
        self.add("user_annotation", LOADER, self.host, took_us)
        self.host += took_us
        began = self.host
        self.host += 10
        self.launch("cudaMemcpyAsync", "Memcpy HtoD (Pinned -> Device)", COPY_US, bytes=16_777_216)
        self.add("cpu_op", "aten::copy_", began, self.host - began)

    def forward(self) -> None:
        for _ in range(LAYERS):
            self.op("aten::addmm", FORWARD_KERNEL, MATMUL_US, **LINEAR)
            self.op("aten::gelu", "vectorized_elementwise_kernel<4, GeluCUDAKernelImpl>", GELU_US, **GELU)

    def backward(self) -> list[float]:
        """Gives when each bucket of gradients is complete; a layer has two products, for its weights and for its input."""
        complete = []
        self.thread = BACKWARD_THREAD
        for layer in range(LAYERS):
            began = self.host
            for _ in range(2):
                self.op("aten::mm", BACKWARD_KERNEL, MATMUL_US, **GRADIENT)
            node = {"Fwd thread id": 1, "Sequence number": layer}
            self.add("cpu_op", BACKWARD_NODE, began, self.host - began, **node)
            if layer % LAYERS_PER_BUCKET == LAYERS_PER_BUCKET - 1:
                complete.append(self.device)
        return complete

    def reduce(self, number: int, begins: float, ends: float) -> None:
        size = {"In msg nelems": BUCKET_ELEMENTS, "Out msg nelems": BUCKET_ELEMENTS, "dtype": "BFloat16"}
        group = {"Group size": RANKS, "Process Group Name": "0", "Process Group Ranks": str([*range(RANKS)])}
        args = {"Collective name": "allreduce", "Seq": number, **size, **group}
        began = self.host
        self.host += 10
        on_stream = args | {"stream": COMM_STREAM}
        self.launch("cudaLaunchKernelExC", REDUCE_KERNEL, ends - begins, begins, **on_stream)
        self.add("cpu_op", "record_param_comms", began, self.host - began, **args)
        self.device = max(self.device, ends)  # the optimizer waits for the last bucket

    def update(self) -> None:
        """The optimizer, then `loss.item()`, which waits until the device has finished."""
        self.thread = MAIN_THREAD
        began = self.host
        self.op("aten::_fused_adamw_", "multi_tensor_apply_kernel<FusedAdamMathFunctor>", UPDATE_US)
        self.add("user_annotation", "Optimizer.step#AdamW.step", began, self.host - began)
        began = self.host
        self.host += 5
        self.launch("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", 2, bytes=4)
        self.add("cuda_runtime", "cudaStreamSynchronize", self.host, self.device + 4 - self.host)
        self.host = self.device + 6
        self.add("cpu_op", "aten::_local_scalar_dense", began + 1, self.host - began - 2)
        self.add("cpu_op", "aten::item", began, self.host - began)

    def write(self, folder: Path) -> Path:
        path = folder / f"rank{self.rank}.json.gz"
        head = {
            "schemaVersion": 1,
            "baseTimeNanoseconds": 1_750_000_000_000_000_000,
            "deviceProperties": [A100],
            "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": RANKS},
            "record_shapes": 1,
        }
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump({**head, "traceEvents": self.events}, file)
        return path


def simulate(*, fixed: bool) -> list[Rank]:
    """Every rank's step; a reduction begins on each when its gradients are complete, and ends on all at once."""
    ranks = [Rank(rank) for rank in range(RANKS)]
    for step in range(STEPS):
        began = [one.host for one in ranks]
        ready = []
        for one in ranks:
            is_late = one.rank == STRAGGLER and not fixed
            one.load(SLOW_LOADING_US if is_late else USUAL_LOADING_US)
            one.forward()
            ready.append(one.backward())
        free = 0.0
        for bucket, begins in enumerate(zip(*ready, strict=True)):
            ends = max(*begins, free) + REDUCE_US
            for one, start in zip(ranks, begins, strict=True):
                one.reduce(3 * step + bucket + 1, max(start, free), ends)
            free = ends
        for one, start in zip(ranks, began, strict=True):
            one.update()
            one.add("user_annotation", f"ProfilerStep#{step}", start, one.host - start)
            one.host += 20
    return ranks


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fixed", action="store_true", help="no rank is late")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for rank in simulate(fixed=arguments.fixed):
        print(rank.write(arguments.folder))
