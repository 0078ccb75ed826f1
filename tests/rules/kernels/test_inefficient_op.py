"""PYR515: each pattern where it is wasteful, near-misses, rewrites that give the same, and the program with that fault."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from pyrometer.source.edit import apply_edits

CODE = "PYR515"


@pytest.mark.parametrize(
    "body",
    [
        "return torch.sort(x, dim=1, descending=True).values[:, :10]  # <-",
        "return x.sort(1)[1][..., :k]  # <-",
        "return torch.argsort(x, dim=-1)[:, :3]  # <-",
        "return x.argsort(dim=1, descending=True)[:, 0]  # <-",
        "return functional.one_hot(x, 100).float() @ self.table  # <-",
        "rows = functional.one_hot(x, 100).float()\nreturn rows @ self.table  # <-",
        "return torch.matmul(functional.one_hot(x, 100).to(q.dtype), v)  # <-",
        "return torch.inverse(q) @ v  # <-",
        "return torch.linalg.inv(q).matmul(v)  # <-",
        "return torch.trace(q @ k)  # <-",
        "return torch.diagonal(torch.mm(q, k))  # <-",
        "return q @ torch.diag(x) @ k  # <-",
        "return functional.softmax(x, dim=-1).argmax(dim=-1)  # <-",
        "return torch.argmax(x.softmax(-1), -1)  # <-",
        "return (q[:, None] - k[None]).pow(2).sum(-1)  # <-",
        "return ((q.unsqueeze(1) - k.unsqueeze(0)) ** 2).sum(dim=-1).sqrt()  # <-",
        "return torch.norm(q[:, None, :] - k[None, :, :], dim=-1)  # <-",
        "return functional.cosine_similarity(q.unsqueeze(1), k.unsqueeze(0), dim=-1)  # <-",
        "return torch.cosine_similarity(q[None], k[:, None], 2)  # <-",
        "return (q[:, None, :] * k[None, :, :]).sum(dim=-1)  # <-",
        "pairs = q.unsqueeze(0) * k.unsqueeze(1)\nreturn pairs.sum(2)  # <-",
    ],
)
def test_finds_what_computes_more_than_it_keeps(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "return torch.sort(x, dim=1).values",
        "return torch.sort(x, dim=1).values[:, 5:]",
        "return torch.sort(x, dim=1).values[:, ::2]",
        "return torch.sort(x).values[:, -1]",
        "names = ['b', 'a']\nreturn sorted(names)[:1], x",
        "return functional.one_hot(x, 100).float()",
        "return torch.inverse(q)",
        "return v @ torch.inverse(q)",
        "return torch.trace(q)",
        "return torch.diag(q) @ v",
        "return functional.softmax(x, dim=-1).argmax(dim=0)",
        "return functional.softmax(x, dim=-1).max(dim=-1)",
        "return (q[:, None] - k[:, None]).pow(2).sum(-1)",
        "return (q - k).pow(2).sum(-1)",
        "return functional.cosine_similarity(q, k, dim=-1)",
        "return functional.cosine_similarity(q.unsqueeze(1), k.unsqueeze(1), dim=-1)",
        "return functional.cosine_similarity(q.unsqueeze(1), k.unsqueeze(0), dim=0)",
        "return (q[:, None] * k[None]).sum(0)",
        "return (q * k).sum(-1)",
        "return (q[:, None] - k[None]).pow(2).sum(0)",
        "return torch.pow(x, 2) + x**3",
        "return torch.mm(q, k) + v",
    ],
)
def test_is_silent_where_it_is_needed_or_no_slower(silent: Any, body: str) -> None:
    silent(CODE, body)


def test_code_that_runs_once_is_left_alone(silent: Any) -> None:
    silent(CODE, "import torch\n\nbest = torch.sort(torch.randn(3, 9), dim=1).values[:, :2]\n")


TEXT = """\
import torch
from torch import nn
from torch.nn import functional

class Net(nn.Module):
    def forward(self, q, k, ids):
        {line}
"""

EXACT = [
    "return functional.one_hot(ids, 12).float() @ k",
    "return torch.inverse(q) @ k",
    "return torch.linalg.inv(q) @ k @ q",
    "return torch.trace(q @ k)",
    "return torch.trace((q + k) @ k)",
    "return q @ torch.diag(k[0]) @ k",
    "return functional.softmax(q, -1).argmax(-1)",
    "return functional.softmax(q, dim=1).argmax(dim=1, keepdim=True)",
    "return torch.argmax(torch.log_softmax(q + k, 1), dim=1, keepdim=True)",
    "return torch.sort(q, dim=1, descending=True).values[:, :3]",
    "return torch.sort(q, 1).values[:, :30]",
    "return torch.argsort(q, dim=1)[:, :3]",
    "return torch.sort(q, descending=True)[0][..., :2]",
    "return torch.msort(q)[:4]",
    "return torch.sort(q, dim=1).values[:, 0]",
    "return torch.argsort(q, dim=1, descending=True)[:, 0]",
    "return (q[:, None, :] - k[None, :, :]).pow(2).sum(-1)",
    "return torch.norm(q[:, None, :] - k[None, :, :], dim=-1)",
]


@pytest.mark.parametrize("line", EXACT)
def test_the_fix_gives_the_same_result(
    matches: Callable[..., list[Any]], run_both: Callable[..., tuple[Any, Any]], line: str
) -> None:
    text = TEXT.format(line=line)
    text = text.replace("q, k, ids", "q: torch.Tensor, k: torch.Tensor, ids")
    found = [match for match in matches(CODE, text) if match.fix is not None]
    assert len(found) == 1
    fixed = apply_edits(text, found[0].fix.edits)
    torch.manual_seed(1)
    q = torch.randn(12, 12) + 12 * torch.eye(12)
    args = (q, torch.randn(12, 12), torch.arange(12).flip(0))
    old, new = run_both(
        text + "\nrun = lambda *a: Net()(*a)\n", fixed + "\nrun = lambda *a: Net()(*a)\n", "run", *args
    )
    torch.testing.assert_close(new, old, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "line",
    [
        "return torch.sort(q).values[:, :3]",  # along the last dimension, of which the text does not say that it is the second
        "return torch.sort(q, dim=1, stable=True).indices[:, :3]",
        "return (q[:, None] - k[None]).pow(2).sum(-1)",  # of more than two dimensions cdist pairs other rows
        "return torch.diagonal(q @ k)",
        "return torch.bmm(functional.one_hot(ids, 12).float(), k)",
    ],
)
def test_where_the_text_does_not_say_enough_words_stay_and_no_rewrite(
    matches: Callable[..., list[Any]], line: str
) -> None:
    text = TEXT.format(line=line).replace("q, k, ids", "q: torch.Tensor, k: torch.Tensor, ids")
    first = matches(CODE, text)[0]
    assert first.advice
    assert first.fix is None


@pytest.mark.parametrize(
    "body",
    [
        "d = q[:, None] - k[None]; return (d * d).sum(-1)",
        "a = q.unsqueeze(1).expand(4, 4, 8); b = k.unsqueeze(0).expand(4, 4, 8); return ((a - b) ** 2).sum(2)",
        "gap = q[:, None, :] - k[None, :, :]; squares = gap.pow(2); return torch.sum(squares, dim=-1)",
    ],
)
def test_differences_that_have_names_are_known_and_not_rewritten(
    matches: Callable[..., list[Any]], body: str
) -> None:
    text = TEXT.format(line=body).replace("q, k, ids", "q: torch.Tensor, k: torch.Tensor, ids")
    (match,) = matches(CODE, text)
    assert "differences" in match.message
    assert match.fix is None


@pytest.mark.parametrize(
    "body",
    [
        "d = q[:, None] - k[None]; return (d * q[:, None]).sum(-1)",
        "d = q - k; return (d * d).sum(-1)",
        "d = q[:, None]; d = d - k[None]; return d.pow(2).sum(-1)",
    ],
)
def test_other_products_are_left_alone(matches: Callable[..., list[Any]], body: str) -> None:
    text = TEXT.format(line=body).replace("q, k, ids", "q: torch.Tensor, k: torch.Tensor, ids")
    assert matches(CODE, text) == []


def best_of(function: Callable[[], Any]) -> float:
    times = []
    for _ in range(5):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


def test_the_better_operators_take_a_small_part_of_the_time() -> None:
    x, q, k = torch.randn(4, 50_000), torch.randn(512, 64), torch.randn(512, 64)
    ids, table = torch.randint(0, 5000, (512,)), torch.randn(5000, 128)
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    pairs: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (lambda: torch.sort(x, dim=1, descending=True).values[:, :10], lambda: torch.topk(x, 10, dim=1)),
        (lambda: torch.sort(x, dim=1).values[:, 0], lambda: x.amin(1)),
        (lambda: functional.one_hot(ids, 5000).float() @ table, lambda: functional.embedding(ids, table)),
        (lambda: (q[:, None] - k[None]).pow(2).sum(-1), lambda: torch.cdist(q, k).square()),
        (lambda: (q[:, None] * k[None]).sum(-1), lambda: q @ k.mT),
        (
            lambda: functional.cosine_similarity(q[:, None], k[None], dim=-1),
            lambda: functional.normalize(q, dim=-1) @ functional.normalize(k, dim=-1).mT,
        ),
        (lambda: torch.trace(a @ b), lambda: torch.sum(a * b.T)),
        (lambda: a @ torch.diag(b[0]), lambda: a * b[0]),
        (lambda: torch.inverse(a) @ b[:, :1], lambda: torch.linalg.solve(a, b[:, :1])),
    ]
    for wasteful, better in pairs:
        assert best_of(wasteful) > 1.5 * best_of(better)


def test_the_program_that_sorts_to_keep_ten_has_this_as_its_top_finding(
    example: Callable[..., Any], only: Any, findings: Any
) -> None:
    evidence = example("inefficient_op", "workload")
    finding = only(CODE, evidence)
    assert finding.where.line == 22
    assert finding.severity == "warning"
    assert finding.cost.share > 0.4
    assert finding.advice.gain.ratio_low < finding.advice.gain.ratio_high < 0.75
    assert finding.advice.rewrite == "return torch.topk(scores_BN, min(10, scores_BN.shape[1]), dim=1).values"
    assert finding.resource == "op:aten::sort"


def test_the_mended_program_spends_nothing_on_it(example: Callable[..., Any], findings: Any) -> None:
    # The text still holds the other branch, which only the text can tell.
    assert [
        finding for finding in findings(CODE, example("inefficient_op", "fixed")) if finding.cost is not None
    ] == []


@pytest.mark.parametrize("name", ["memory_churn", "tiny_ops"])
def test_other_faults_are_not_taken_for_it(example: Callable[..., Any], findings: Any, name: str) -> None:
    assert findings(CODE, example(name, "workload")) == []
