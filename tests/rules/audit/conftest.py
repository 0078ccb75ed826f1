"""Case about a real training, a real inference and a device, for the checklist."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pyrometer as pm
from pyrometer.rules.case import Case
from pyrometer.trace.reporting.rank_report import report_rank

SERVICE = """\
import structlog
import prometheus_client
import sentry_sdk
import mlflow
import torch
from fastapi import FastAPI

app = FastAPI()


@torch.inference_mode()
def answer(model, x):
    try:
        return model(x)
    except TimeoutError:
        return None
"""


@pytest.fixture(scope="session")
def trained(observe: Callable[..., Case], tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A small training with a loader, everything observed, with a source that says nothing."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 16),
        nn.ReLU(),
        nn.Linear(16, 16),
        nn.GELU(),
        nn.Linear(16, 16),
        nn.ReLU(),
        nn.Linear(16, 4),
    )
    loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 4)), batch_size=16)
    work = pm.Training(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.01), loader)
    path: Path = tmp_path_factory.mktemp("source") / "train.py"
    path.write_text("import torch\n", encoding="utf-8")
    kinds = ("measurement", "trace", "memory", "loading", "program", "numerics", "environment")
    return observe(work, *kinds, sources=[path])


@pytest.fixture(scope="session")
def served(observe: Callable[..., Case], tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A small convolutional model in a service."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Sigmoid(), nn.Flatten())
    path: Path = tmp_path_factory.mktemp("source") / "app.py"
    path.write_text(SERVICE, encoding="utf-8")
    work = pm.Inference(model, (torch.randn(2, 3, 12, 12),))
    return observe(work, "measurement", "trace", "memory", "program", "numerics", sources=[path])


@pytest.fixture(scope="session")
def on_device(trace_tests: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Two steps of a device that is busy, with a copy from pinned memory."""
    builder: Any = trace_tests.TraceBuilder(tmp_path_factory.mktemp("trace"))
    for i in range(2):
        start = i * 1000
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.op("aten::mm", start + 5, 20)
        builder.launch("gemm", start + 8, start + 15, 800)
        builder.launch("Memcpy HtoD (Pinned -> Device)", start + 40, start + 850, 20, cat="gpu_memcpy")
    return Case(target="t", trace=report_rank(builder.read()))
