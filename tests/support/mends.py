"""The faults of the broken perception model, and how its user mends them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from recorded import EXAMPLES


class Mend(NamedTuple):
    """A fault of the broken perception model, and how its user mends it."""

    code: str
    at: str
    """Begins the line that the finding names."""
    old: str
    new: str


MENDS = {
    "dropout": Mend(
        "PYR509",
        "image = F.dropout(",
        "F.dropout(image, 0.1)",
        "F.dropout(image, 0.1, training=self.training)",
    ),
    "graph break": Mend("PYR401", "print(", '    print(end="")  # a forgotten line of debugging\n', ""),
    "item": Mend(
        "PYR101",
        "if score.item() > 0.5:",
        """    count = 0
    for score in scores:
        if score.item() > 0.5:
            count += 1
    return torch.tensor(count / len(scores))
""",
        "    return (scores > 0.5).float().mean()\n",
    ),
    "mask": Mend(
        "PYR106",
        "own = scores[labels == label]",
        """    means = []
    for label in range(len(CLASSES)):
        own = scores[labels == label]
        means.append(own.sum() / max(len(own), 1))
    return torch.stack(means)
""",
        """    own = labels[:, None] == torch.arange(len(CLASSES), device=labels.device)
    return (scores[:, None] * own).sum(0) / own.sum(0).clamp(min=1)
""",
    ),
}


def write_mended(folder: Path, *which: str) -> Path:
    """A copy of the broken program in which these faults are mended, as a user would."""
    shutil.copy(EXAMPLES / "perception.py", folder)
    text = (EXAMPLES / "broken_perception.py").read_text(encoding="utf-8")
    for name in which:
        assert text.count(MENDS[name].old) == 1
        text = text.replace(MENDS[name].old, MENDS[name].new)
    file = folder / "broken_perception.py"
    file.write_text(text, encoding="utf-8")
    return file
