"""Settings are understood as torch does, and what torch lets pass is told."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pyrometer.memory.snapshots.allocator.settings import (
    KEYS,
    check_settings,
    recorded_settings,
)

MIB = 1 << 20
GOOD = [
    "",
    "expandable_segments:True",
    " max_split_size_mb : 128 , garbage_collection_threshold:0.8",
    "roundup_power2_divisions:8",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],max_split_size_mb:20",
    "max_non_split_rounding_mb:30",
]
REJECTED = [
    "expandable_segments:true",
    "max_split_size_mb:5",
    "garbage_collection_threshold:1.5",
    "garbage_collection_threshold:0",
    "roundup_power2_divisions:3",
    "roundup_power2_divisions:[100:2]",
    "max_non_split_rounding_mb:3",
]
LET_PASS = ["foo:1", "expandable_segment:True", "PYTORCH:1"]


def torch_accepts(texts):
    """Asked in a process of its own: torch keeps what it accepts."""
    code = (
        "import json, sys, torch\nfound = []\n"
        "for text in json.loads(sys.argv[1]):\n"
        "    try:\n        torch._C._accelerator_setAllocatorSettings(text); found.append(True)\n"
        "    except (ValueError, RuntimeError):\n        found.append(False)\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run([sys.executable, "-c", code, json.dumps(texts)], capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_torch_agrees_about_what_is_right_and_wrong():
    assert (
        torch_accepts(GOOD + REJECTED + LET_PASS) == [True] * len(GOOD) + [False] * len(REJECTED) + [True] * 3
    )
    assert all(not check_settings(text).problems for text in GOOD)
    assert all(check_settings(text).problems for text in REJECTED + LET_PASS)


def test_values_are_understood():
    settings = check_settings(
        "max_split_size_mb:128,garbage_collection_threshold:0.8,expandable_segments:True"
    ).settings
    assert (settings.max_split_bytes, settings.garbage_collection_threshold) == (128 * MIB, 0.8)
    assert settings.expandable_segments
    listed = check_settings(
        "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"
    ).settings.roundup_power2_divisions
    assert listed == (1,) * 9 + (2, 4) + (8,) * 5


def test_problems_are_told_one_by_one():
    problems = check_settings(
        "expandable_segments,max_split_size_mb:8,max_split_size_mb:64,max_split_size_mb:32"
    ).problems
    assert "no value" in problems[0]
    assert "from 20 on" in problems[1]
    assert "set twice" in problems[2]


def test_what_the_file_measured_wins_over_its_text():
    raw = {
        "PYTORCH_CUDA_ALLOC_CONF": "",
        "max_split_size": 64 * MIB,
        "expandable_segments": True,
        "garbage_collection_threshold": 0.7,
        "roundup_power2_divisions": {str(1 << i): 2 for i in range(16)},
    }
    settings = recorded_settings(raw).settings
    assert settings.max_split_bytes == 64 * MIB
    assert settings.expandable_segments
    assert settings.roundup_power2_divisions == (2,) * 16
    assert recorded_settings({"max_split_size": -1}).settings.max_split_bytes is None


def test_every_key_refuses_nonsense():
    for key in KEYS:
        assert check_settings(f"{key}:nonsense").problems
