"""Thresholds that the user set reach the checks of source text, wherever these are asked."""

from __future__ import annotations

import pytest

from pyrometer.rules.lint.changing import change_files, excuses
from pyrometer.rules.lint.files import files_of
from pyrometer.rules.lint.run import lint_paths
from pyrometer.rules.settings import RuleSettings
from pyrometer.source.program import program_modules

VOCABULARY = "import torch\nhead = torch.nn.Linear(8, 5001)\n"
BUCKETS = (
    "from torch.nn.parallel import DistributedDataParallel\nDistributedDataParallel(m, bucket_cap_mb=8)\n"
)
CAT = (
    "import torch\nfor x in torch.utils.data.DataLoader(d):\n    y = x\n    for i in range(20):\n"
    "        y = torch.cat([y, step(x)])\n"
)
CONSTANT = (
    "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        m = torch.ones(100, 100)\n"
    "        return x * m.sum()\n"
)


@pytest.mark.parametrize(
    ("text", "limit", "value", "default"),
    [
        (VOCABULARY, "PYR504.min_vocabulary", 5000, 0),
        (BUCKETS, "PYR602.min_bucket_mb", 10, 0),
        (CAT, "PYR511.max_rounds", 30, 1),
        (CONSTANT, "PYR215.min_elements", 10_000, 0),
    ],
)
def test_the_users_threshold_decides(project, text, limit, value, default):
    root = project({"a.py": text})
    code = limit.partition(".")[0]

    def count(**limits: float) -> int:
        settings = RuleSettings(root=str(root), select=[code], limits=limits)
        return len(lint_paths(["a.py"], settings).findings)

    assert (count(), count(**{limit: value})) == (default, 1 - default)


def test_comments_and_programs_that_are_checked_know_it_too(project):
    root = project({"a.py": VOCABULARY})
    limits = {"PYR504.min_vocabulary": 5000.0}
    settings = RuleSettings(root=str(root), select=["PYR504"], limits=limits)
    assert program_modules([root / "a.py"], limits)[0][0].limits == limits
    change_files(files_of(["a.py"], settings), settings, excuses("as the task has it"), write=True)
    assert "ignore[PYR504]" in (root / "a.py").read_text()
