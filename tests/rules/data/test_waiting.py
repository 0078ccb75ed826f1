"""The loader's own advice: each finds its rule, none is computed twice."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyrometer.loading
from pyrometer.rules.case import Case
from pyrometer.rules.data.patterns.waiting import UNCERTAIN, gain_of
from pyrometer.rules.explain import findings_of
from pyrometer.rules.registry import select

ADVISING = Path(pyrometer.loading.__file__).with_name("advising.py")
SLUGS = re.findall(r'slug="([a-z-]+)"', ADVISING.read_text(encoding="utf-8"))


@pytest.mark.parametrize("slug", SLUGS)
def test_every_advice_of_the_loader_becomes_a_finding(
    slug: str, loading: Callable[..., Any], advice: Callable[..., Any]
) -> None:
    report = loading(advice=[advice(slug, 0.02)], shm_free_bytes=10, shm_needed_bytes=8)
    findings = findings_of(Case(target="a", loading=report), select(["PYR3"]))
    carried = [finding for finding in findings if "/loading/advice/0" in finding.links]
    assert len(carried) == 1
    assert carried[0].advice.rewrite == "num_workers=2"


def test_a_gain_is_what_the_loaders_model_says(
    loading: Callable[..., Any], advice: Callable[..., Any]
) -> None:
    gain = gain_of(advice("more-workers", 0.04), loading(data_share=0.6), free=0.4)
    assert gain is not None
    assert gain.ratio_low == pytest.approx(0.6 - UNCERTAIN * 0.4)
    assert gain.ratio_high == pytest.approx(0.6 + UNCERTAIN * 0.4)


def test_a_gain_is_never_more_than_free_data_would_bring(
    loading: Callable[..., Any], advice: Callable[..., Any]
) -> None:
    gain = gain_of(advice("more-workers", 0.09), loading(data_share=0.5), free=0.5)
    assert gain is not None
    assert gain.ratio_low == pytest.approx(0.5)


def test_nothing_is_predicted_where_the_advice_predicts_nothing(
    loading: Callable[..., Any], advice: Callable[..., Any]
) -> None:
    assert gain_of(advice("deeper-queue"), loading(), free=0.5) is None
