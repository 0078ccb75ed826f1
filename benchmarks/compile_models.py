"""What torch.compile does with models that people use: small configurations of `transformers`, random weights, on the CPU.

    pip install transformers
    python benchmarks/compile_models.py [--models bert,gpt2,t5,vit,whisper] [--budget 10] [--json FILE]

Each model is inspected in a process of its own, with Inductor's caches in a folder of its own, so that every compilation is
cold. Printed is a row per model, and below it every break and recompilation with its place.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

COLUMNS = "| model | graphs | breaks | recompiled | guards | compiling | eager | compiled | paid after | max error |"


def bert() -> tuple[Any, dict[str, Any]]:
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512)
    return BertModel(config), {
        "input_ids": torch.randint(0, 1000, (2, 64)),
        "attention_mask": torch.ones(2, 64, dtype=torch.long),
    }


def gpt2() -> tuple[Any, dict[str, Any]]:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_embd=256, n_layer=4, n_head=4, vocab_size=2000, use_cache=False)
    return GPT2LMHeadModel(config), {"input_ids": torch.randint(0, 1000, (2, 64))}


def t5() -> tuple[Any, dict[str, Any]]:
    import torch
    from transformers import T5Config, T5Model

    config = T5Config(
        d_model=128, d_ff=256, num_layers=2, num_heads=4, d_kv=32, vocab_size=1000, use_cache=False
    )
    ids = torch.randint(0, 1000, (2, 32))
    return T5Model(config), {"input_ids": ids, "decoder_input_ids": ids}


def vit() -> tuple[Any, dict[str, Any]]:
    import torch
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=384, image_size=96
    )
    return ViTModel(config), {"pixel_values": torch.randn(2, 3, 96, 96)}


def whisper() -> tuple[Any, dict[str, Any]]:
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(d_model=192, encoder_layers=3, encoder_attention_heads=3, encoder_ffn_dim=384)
    return WhisperEncoder(config), {"input_features": torch.randn(1, 80, 3000)}


MODELS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "bert": bert,
    "gpt2": gpt2,
    "t5": t5,
    "vit": vit,
    "whisper": whisper,
}


def inspect(name: str, budget_s: float, cache: str, answers: Any) -> None:
    """Inspect one model; what a process of its own does."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
    import torch

    import pyrometer as pm
    from pyrometer.record import to_dict

    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    report = pm.inspect_compile(pm.Inference(model, inputs, name=name), budget_s=budget_s)
    answers.put(to_dict(report))


def row(name: str, report: dict[str, Any]) -> str:
    """One model as a row of the table."""
    cost, error = report["cost"], report["error"]
    ms = ["–" if cost[key] is None else f"{cost[key] * 1e3:.3g} ms" for key in ("eager_steady_s", "steady_s")]
    paid = "–" if cost["break_even_steps"] is None else f"{cost['break_even_steps']:,}"
    return (
        f"| {name} | {report['graphs']} | {len(report['breaks'])} | {len(report['recompiles'])} | "
        f"{report['guards']['total']} | {cost['compile_s']:.1f} s | {ms[0]} | {ms[1]} ({cost['outcome'] or '–'}) | {paid} | "
        f"{'–' if error is None else format(error['max_rel'], '.1e')} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--budget", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(COLUMNS)
    print("|" + "---|" * (COLUMNS.count("|") - 1))
    found = {}
    context = multiprocessing.get_context("spawn")
    for name in arguments.models.split(","):
        with tempfile.TemporaryDirectory() as cache:
            answers = context.Queue()
            child = context.Process(target=inspect, args=(name, arguments.budget, cache, answers))
            child.start()
            found[name] = answers.get(timeout=900)
            child.join()
        print(row(name, found[name]), flush=True)
    for name, report in found.items():
        for graph_break in report["breaks"]:
            print(
                f"{name}: break {graph_break['id']} {graph_break['reason']} at {graph_break['file']}:{graph_break['line']} ({graph_break['count']} times)"
            )
        for recompile in report["recompiles"]:
            print(
                f"{name}: {recompile['compile_id']} recompiled: {recompile['causes'][0]['guard'] if recompile['causes'] else '?'}"
            )
        for skip in report["skips"]:
            print(f"{name}: gave up {skip['function']} at {skip['file']}:{skip['line']}: {skip['reason']}")
        for line in report["unavailable"]:
            print(f"{name}: not told: {line}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
