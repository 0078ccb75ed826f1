"""PYR102: copies of whole tensors to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.finding import Finding

CODE = "PYR102"


@pytest.mark.parametrize(
    "body",
    [
        "total += scores.detach().cpu().numpy().mean()  # <-",
        'total += scores.detach().to("cpu").mean().item()  # <-',
        'total += scores.detach().to(torch.device("cpu")).max()  # <-',
        "if loss.detach().cpu() > 3:  # <-\n    pass",
    ],
)
def test_finds_copies_whose_values_are_used_at_once(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "history.append(scores.detach().cpu())",  # to keep results on the host is what the loop is for
        "history.append((step, scores.detach().cpu().numpy()))",
        "arrays = np.asarray([1, 2, 3])",
        # arrays are made of tensors of the host only
        "total += np.asarray(scores.detach()).mean()",
        "total += scores.detach().numpy().mean()",
        # what takes arrays, draws or packs needs them there
        "total += f1_score(targets.cpu(), scores.argmax(1).cpu())",
        "plt.imshow(inputs[0].cpu())",
        "host = scores.detach().cpu().numpy()\nnp.savez(path, host)",
        "packed = torch.nn.utils.rnn.pack_padded_sequence(scores, lengths=targets.cpu())",
        'model_on = "cpu"\ninputs = inputs.to(device)',
        "if step % 500 == 0:\n    total += scores.detach().cpu().sum()",
        "import torch\n\ndef export(model: torch.nn.Module) -> list:\n    return [p.detach().cpu() for p in model.parameters()]",
        # the parts of a result, and what a function of another file is given
        "rows = [part.cpu().numpy() for part in scores.split(2)]\nfor row in rows:\n    history.append(row)",
        "emissions = scores.cpu().contiguous()\nsearch(emissions.data_ptr())",
        "vectors = scores.detach().cpu().numpy()\nvectors /= np.sqrt(np.sum(vectors**2))\nhistory.append(vectors)",
        # a list that is emptied is no stream of batches
        (
            "import torch\n\ndef unmerge(names, weights, options):\n    while len(names) > 0:\n        name = names.pop()\n"
            "        options.pop('data', None)\n        weights[name] = torch.relu(weights[name]).to('cpu').half()"
        ),
    ],
)
def test_is_silent_about_results_and_about_what_is_seldom(silent: Any, body: str) -> None:
    silent(CODE, body)


def test_returning_and_yielding_hand_a_result_on(lines: Any) -> None:
    text = """\
    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(x)
            return y.cpu()
    """
    assert lines(CODE, text) == []


SOURCE = """\
def step(model, batch):
    scores = model(batch)
    host = scores.cpu()
    return float(host.mean())
"""


def test_a_device_trace_names_the_copy(builder: Any, stalling: Any, evidence_of: Any, only: Any) -> None:
    stalling(builder, "aten::to", frame="train.py(1): step", copy="Memcpy DtoH (Device -> Pageable)")
    finding = only(CODE, evidence_of(builder, "train.py", SOURCE))
    assert finding.where.line == 3
    assert "`scores.cpu()`" in finding.message
    assert finding.cost.share > 0.4


def test_a_copy_to_the_device_is_not_one_to_the_host(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    stalling(builder, "aten::to", copy="Memcpy HtoD (Pageable -> Device)")
    assert findings(CODE, evidence_of(builder)) == []


def test_a_mean_of_means_on_the_device_is_read_once(ops_of: Any) -> None:
    batches = [torch.full((4,), float(i)) for i in range(8)]

    def on_host() -> float:
        return sum(float(batch.cpu().numpy().mean()) for batch in batches) / 8

    def on_device() -> float:
        mean = torch.zeros(())
        for batch in batches:
            mean += batch.mean()
        return mean.item() / len(batches)

    assert on_host() == on_device()
    assert ops_of(on_device)[1]["_local_scalar_dense"] == 1
