"""Every lever that advice names can be tried by `pyrometer tune`, or it is known why only a person can carry it out."""

from __future__ import annotations

import re
from pathlib import Path

from pyrometer import rules
from pyrometer.rules.registry import rules as all_rules
from pyrometer.tuning.levers.registry import levers

BY_HAND = {
    "batch_size": "another batch is another workload: what waits for how many requests is the service's to say",
    "checkpointing": "where activations are computed again is written into the model: `pyrometer memory --plan` says where",
    "cuda_graphs": "needs a CUDA device, and inputs that keep their addresses",
    "expandable_segments": "an environment variable that the allocator reads before the program starts",
    "inference_mode": "every workload for inference is timed under it; what is left is the user's own call",
    "mark_dynamic": "which sizes vary is known to the one who makes the inputs",
    "num_workers": "a setting of the user's loader: `pm.tune_loader` proves it",
    "persistent_workers": "a setting of the user's loader: `pm.tune_loader` proves it",
    "pin_memory": "a setting of the user's loader: `pm.tune_loader` proves it",
    "prefetch_device": "stands around the user's loop: `pm.DevicePrefetcher`",
    "prefetch_factor": "a setting of the user's loader: `pm.tune_loader` proves it",
    "preallocate": "which buffers may be kept between steps is the program's to say",
    "remove_sync": "a line of the user's own loop is to be moved or left out",
    "sdpa": "the attention is written out in the user's own forward",
    "set_to_none": "an argument in the user's own loop",
    "tf32": "needs a device that has it",
}
"""Why no search carries them out. A lever that is registered one day may stay here until it is taken out."""

NAMED = re.compile(r'\blever(?::[^=\n]*)?=\(?\s*"([a-z0-9_]+)"')


def named_in_source() -> set[str]:
    """What the rules' source text passes as a lever."""
    folder = Path(rules.__path__[0])
    return {name for file in folder.rglob("*.py") for name in NAMED.findall(file.read_text(encoding="utf-8"))}


def test_every_lever_of_a_rule_can_be_tried_or_is_for_a_person():
    named = named_in_source() | {rule.lever for rule in all_rules() if rule.lever is not None}
    assert len(named) > 20
    assert sorted(named - levers().keys() - BY_HAND.keys()) == []


def test_nothing_is_said_to_be_by_hand_that_no_rule_names():
    assert sorted(BY_HAND.keys() - named_in_source()) == []


def test_each_reason_is_a_sentence():
    assert all(len(reason.split()) >= 5 for reason in BY_HAND.values())
