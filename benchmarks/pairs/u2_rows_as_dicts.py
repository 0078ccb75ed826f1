"""Churn prediction from a table of accounts; categories and numbers of a batch of rows become tensors."""

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn

import pyrometer as pm

NUMBERS = ["age_months", "calls", "minutes", "data_gb", "tickets", "late_payments"]
PLANS = ["basic", "family", "business", "student"]
BATCH = 256


def accounts(count: int = 4096) -> pl.DataFrame:
    random = np.random.default_rng(4)
    columns = {name: random.gamma(2.0, 3.0, count) for name in NUMBERS}
    plans = [PLANS[code] for code in random.integers(0, len(PLANS), count)]
    return pl.DataFrame({**columns, "plan": plans, "left": random.random(count) < 0.2})


class Account:
    """One row, with the cleaning that all of our models share."""

    def __init__(self, row: dict) -> None:
        self.row = row

    def numbers(self) -> list[float]:
        return [min(float(self.row[name]), 60.0) / 10.0 for name in NUMBERS]

    def plan(self) -> int:
        return PLANS.index(self.row["plan"])


class RowBatches:
    def __init__(self, table: pl.DataFrame) -> None:
        self.table = table

    def __iter__(self):
        for start in range(0, len(self.table), BATCH):
            rows = [Account(row) for row in self.table.slice(start, BATCH).iter_rows(named=True)]
            numbers = torch.tensor([row.numbers() for row in rows])
            plans = torch.tensor([row.plan() for row in rows])
            left = torch.tensor([float(row.row["left"]) for row in rows])
            yield (numbers, plans), left


class ColumnBatches:
    def __init__(self, table: pl.DataFrame) -> None:
        self.numbers = torch.from_numpy(table.select(NUMBERS).to_numpy().clip(max=60.0) / 10.0).float()
        self.plans = torch.tensor([PLANS.index(plan) for plan in table["plan"]])
        self.left = torch.from_numpy(table["left"].to_numpy().astype(np.float32))

    def __iter__(self):
        for start in range(0, len(self.left), BATCH):
            rows = slice(start, start + BATCH)
            yield (self.numbers[rows], self.plans[rows]), self.left[rows]


class Churn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.plan = nn.Embedding(len(PLANS), 8)
        self.layers = nn.Sequential(
            nn.Linear(len(NUMBERS) + 8, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 1)
        )

    def forward(self, numbers: Tensor, plans: Tensor) -> Tensor:
        return self.layers(torch.cat([numbers, self.plan(plans)], dim=1)).squeeze(1)


def training(batches) -> pm.Training:
    torch.manual_seed(0)
    model = Churn()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    return pm.Training(
        model, nn.BCEWithLogitsLoss(), optimizer, batches(accounts()), unit="accounts", per_step=BATCH
    )


def slow() -> pm.Training:
    return training(RowBatches)


def fast() -> pm.Training:
    return training(ColumnBatches)
