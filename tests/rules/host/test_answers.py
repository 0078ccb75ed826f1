"""A request cannot be answered without reading the answer; all else that a handler reads is found."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

HANDLER = """\
import torch
from fastapi import FastAPI
from fastapi.responses import JSONResponse

app = FastAPI()
model = torch.nn.Linear(8, 2).cuda().eval()
LABELS = ["cat", "dog"]


@app.post("/predict")
@torch.inference_mode()
async def predict(values: list[float], websocket=None):
    scores = model(torch.tensor([values], device="cuda"))
"""


def handler(body: str) -> str:
    return HANDLER + textwrap.indent(body, "    ") + "\n"


@pytest.mark.parametrize(
    "body",
    [
        "return scores.tolist()",
        "return scores.softmax(-1).cpu().tolist()",
        'return {"label": LABELS[scores.argmax().item()]}',
        'return JSONResponse(content={"score": round(float(scores.max()), 3)})',
        'return [{"score": one} for one in scores.tolist()]',
        'answer = scores.tolist()\nreturn {"scores": answer}',
        "best = scores.argmax().item()\nlabel = LABELS[best]\nreturn label",
        "rows = scores.tolist()\nreturn [round(one, 3) for one in rows]",
        'answer = {}\nanswer["score"] = scores.max().item()\nreturn answer',
        "answers = []\nanswers.append(scores.max().item())\nreturn answers",
        "await websocket.send_json(scores.tolist())",
        "yield scores.tolist()",
    ],
)
@pytest.mark.parametrize("code", ["PYR101", "PYR102"])
def test_the_answer_may_be_waited_for(silent: Any, code: str, body: str) -> None:
    silent(code, handler(body))


@pytest.mark.parametrize(
    "body",
    [
        "print(scores.max().item())  # <-\nreturn 0",
        "if scores.max().item() > 0.5:  # <-\n    metrics.count()\nreturn 0",
        "best = scores.max().item()  # <-\nmetrics.gauge(best)\nreturn 0",
        "return [one.item() for one in scores[0]]  # <-",
        "answers = []\nfor one in scores[0]:\n    answers.append(one.item())  # <-\nreturn answers",
    ],
)
def test_what_is_read_beside_the_answer_or_one_by_one_is_found(fires: Any, body: str) -> None:
    fires("PYR101", handler(body))


def test_steps_of_a_loop_are_no_requests(fires: Any, in_loop: Any) -> None:
    fires("PYR101", in_loop("total = loss.item()  # <-\nyield total"))
