"""PYR131: each new token runs all tokens before it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.rules.host.patterns.prefixes import prefixes
from pyrometer.source.module import Module

CODE = "PYR131"
HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"

WINDOW = """\
class Writer(torch.nn.Module):
    def generate(self, ids, count):
        for _ in range(count):
            seen = ids if ids.size(1) <= self.window else ids[:, -self.window :]
            odds = F.softmax(self(seen)[:, -1], dim=-1)
            ids = torch.cat((ids, torch.multinomial(odds, 1)), dim=1)
        return ids
"""
HELPER = """\
def translate(net, memory, words):
    while words.shape[1] < 50:
        word = next_scores(net, memory, words).argmax(-1, keepdim=True)
        words = torch.cat([words, word], dim=-1)
    return words
"""
NESTED = """\
def forecast(embed, layers, series, horizon):
    for _ in range(horizon):
        hidden = embed(series)
        for layer in layers:
            hidden = layer(hidden)
        series = torch.cat([series, hidden[:, -1:]], dim=1)
    return series
"""
DENSE = """\
def forward(layers, x):
    for layer in layers:
        x = torch.cat([x, layer(x)], dim=1)
    return x
"""
KEPT = """\
def complete(model, tokens, count):
    out, past = tokens, None
    for _ in range(count):
        scores, past = model(tokens, past)
        tokens = scores[:, -1:].argmax(-1)
        out = torch.cat([out, tokens], dim=1)
    return out
"""
ATTENDING = """\
def decode(key, attend, x, keys):
    for _ in range(9):
        keys = torch.cat([keys, key(x)], dim=1)
        x = attend(x, keys)
    return x
"""
LAST = """\
def roll(model, series, horizon):
    for _ in range(horizon):
        series = torch.cat([series, model(series[:, -1:])], dim=1)
    return series
"""
SAMPLES = """\
def search(fit, points):
    for _ in range(9):
        points = torch.cat([points, fit(points)])
    return points
"""
BUSY = {"operator decoder": 0.9}


@pytest.mark.parametrize(("text", "loop"), [(WINDOW, 7), (HELPER, 6), (NESTED, 6)])
def test_the_loop_is_told_with_what_it_takes(
    sampled: Callable[..., Case], only: Callable[..., Finding], text: str, loop: int
) -> None:
    finding = only(CODE, sampled(HEAD + text, {loop + 1: BUSY}, loops={loop: (20, BUSY)}))
    assert finding.where.line == loop
    gain = finding.advice.gain
    assert gain is not None
    assert (gain.ratio_low, gain.ratio_high) == (
        pytest.approx(1 - 0.9 * 19 / 20),
        pytest.approx(0.56, abs=0.02),
    )


@pytest.mark.parametrize(
    ("entered", "told"), [(1 / 40, "each of 40 rounds"), (0.0, "each round"), (1.0, None)]
)
def test_a_loop_whose_rounds_are_the_steps_is_told_as_well(
    sampled: Callable[..., Case], findings: Callable[..., list[Finding]], entered: float, told: str | None
) -> None:
    case = sampled(HEAD + NESTED, {7: BUSY}, loops={6: (1.0, BUSY)})
    assert case.host is not None
    loop = msgspec.structs.replace(case.host.loops[0], entered_per_step=entered)
    found = findings(
        CODE, msgspec.structs.replace(case, host=msgspec.structs.replace(case.host, loops=[loop]))
    )
    loud = [finding for finding in found if finding.severity == "warning"]
    assert [finding.message.startswith(told or "never") for finding in loud] == ([True] if told else [])


CACHED = """\
def complete(model, tokens, count):
    model.reset_cache()
    for _ in range(count):
        tokens = torch.cat([tokens, model(tokens).argmax(-1)[:, -1:]], dim=1)
    return tokens
"""
SHRINKING = """\
def propagate(net, state, frames):
    for frame in frames:
        state = torch.cat([state, net(state)], dim=1)
        state = state[:, :4] + frame
    return state
"""
CODEBOOKS = """\
def codes(net, state, num_codebooks):
    for _ in range(num_codebooks):
        state = torch.cat([state, net(state)[:, -1:]], dim=1)
    return state
"""


@pytest.mark.parametrize("text", [DENSE, KEPT, ATTENDING, LAST, SAMPLES, CACHED, SHRINKING, CODEBOOKS])
def test_layers_kept_states_and_growing_samples_are_left_alone(text: str) -> None:
    assert list(prefixes(Module.parse("a.py", HEAD + text))) == []


def test_short_operators_in_it_are_no_finding_of_their_own(
    sampled: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    assert findings("PYR126", sampled(HEAD + HELPER, {7: BUSY}, loops={6: (2000, BUSY)})) == []


def test_of_few_rounds_only_a_remark_is_made(
    sampled: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    (finding,) = findings(CODE, sampled(HEAD + HELPER, {7: BUSY}, loops={6: (3, BUSY)}))
    assert (finding.severity, finding.advice.gain) == ("info", None)


def test_rounds_that_nobody_counted_are_told_with_less_confidence(
    sampled: Callable[..., Case], only: Callable[..., Finding]
) -> None:
    finding = only(CODE, sampled(HEAD + HELPER, {7: BUSY}, loops={6: (None, BUSY)}))
    assert finding.message.startswith("each round recomputes all of")
    assert finding.confidence == "medium"
    assert finding.advice.gain.ratio_low < 0.3 < finding.advice.gain.ratio_high < 1


def test_what_is_kept_gives_the_same_tokens(run: Callable[..., dict[str, Any]]) -> None:
    weights = torch.randn(7, 7, generator=torch.Generator().manual_seed(0))

    def sums(tokens: torch.Tensor, past: torch.Tensor | float = 0.0) -> torch.Tensor:
        return torch.nn.functional.one_hot(tokens, 7).float().cumsum(1) + past

    def keeping(tokens: torch.Tensor, past: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        counts = sums(tokens, 0.0 if past is None else past)
        return counts @ weights, counts[:, -1:]

    tokens = torch.tensor([[1, 3, 2], [0, 6, 6]])
    before = run(CODE, "Example", torch=torch)["complete"](lambda ids: sums(ids) @ weights, tokens, 12)
    after = run(CODE, "Use instead", torch=torch)["complete"](keeping, tokens, 12)
    assert torch.equal(before, after)
