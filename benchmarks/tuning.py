"""How good is the tuner? Its recipes against an exhaustive search and `torch.compile`, its claims again, its gate on random models.

::

    python benchmarks/tuning.py numerics --models 200          # recipes that break numerics beyond tolerance: none are legal
    python benchmarks/tuning.py search cnn encoder --budget 300   # search, confirm, compare with torch.compile alone
    python benchmarks/tuning.py search cnn --exhaustive        # and with the best of all configurations
    python benchmarks/tuning.py reproduce FOLDER               # each recipe of a folder again, in fresh processes

Figures are ratios within one run; times of a loaded machine say nothing.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import PyrometerError
from pyrometer.quantity import format_ratio, format_seconds
from pyrometer.tuning.levers.applying import apply_levers, not_applied, subject_of
from pyrometer.tuning.levers.choice import Configuration, LeverChoice, label_of
from pyrometer.tuning.levers.configuration import excluded, ordered
from pyrometer.tuning.levers.registry import find_lever, levers
from pyrometer.tuning.predictions import PredictedLever, judge_predictions, predicted_levers
from pyrometer.tuning.recipe.recipe import load_recipe
from pyrometer.tuning.recipe.verifying import verify
from pyrometer.tuning.search.confirming import Pairs, confirm
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.cases import cases_of, refreshed_source
from pyrometer.tuning.trials.gate import CaseError, Limits, coarsest, judge
from pyrometer.tuning.trials.laboratory import Laboratory, opened
from pyrometer.tuning.trials.results import case_error
from pyrometer.tuning.tune import search_recipe
from pyrometer.workload.inputs import Arguments, argument_source
from pyrometer.workload.target import parse_target
from pyrometer.workload.variant import Variant

HELD_OUT = 5
QUICK = ("drop_dropout", "fold_batchnorm", "channels_last", "autocast_bf16", "cast_bf16", "flush_denormals")
"""Levers that need no compiler, so that hundreds of models can be tried."""


# ---- models -----------------------------------------------------------------------------------------------------


def cnn() -> pm.Inference:
    """A residual network's kind of convolutions."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    for width in (32, 64, 128):
        layers += [nn.LazyConv2d(width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        layers += [nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))
    model(torch.randn(1, 3, 32, 32))
    return pm.Inference(model, torch.randn(1, 3, 160, 160), "images")


def encoder() -> pm.Inference:
    """Four layers of BERT's size, 64 tokens."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(256, 4, 1024, activation="gelu", batch_first=True)
    return pm.Inference(
        nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), torch.randn(1, 64, 256), "tokens", 64
    )


def controller() -> pm.Inference:
    """A policy of 0.1 ms."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(48, 128), nn.ELU(), nn.Linear(128, 128), nn.ELU(), nn.Linear(128, 12))
    return pm.Inference(model, torch.randn(1, 48), "states")


class Points(nn.Module):
    """A PointNet."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [3, 64, 128, 256]
        parts = [(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU()) for a, b in itertools.pairwise(sizes)]
        self.features = nn.Sequential(*itertools.chain.from_iterable(parts))
        self.head = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 40))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Classify clouds of points `[B, 3, N]`."""
        result: torch.Tensor = self.head(self.features(points).amax(-1))
        return result


def points() -> pm.Inference:
    """A cloud of 1,024 points."""
    torch.manual_seed(0)
    return pm.Inference(Points(), torch.randn(2, 3, 1024), "clouds")


def random_model(seed: int) -> tuple[nn.Module, torch.Tensor]:
    """Layers, widths, norms and activations by chance; convolutions or linear."""
    chance = random.Random(seed)
    torch.manual_seed(seed)
    activations = [nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Hardswish]
    image = chance.random() < 0.5
    width = chance.choice([4, 8, 16, 24])
    x = torch.randn(chance.choice([1, 2, 4]), width, *((12, 12) if image else ())) * chance.choice(
        [0.1, 1.0, 10.0]
    )
    layers: list[nn.Module] = []
    for _ in range(chance.randint(1, 6)):
        wide = chance.choice([4, 8, 16, 32])
        layers.append(nn.Conv2d(width, wide, 3, padding=1) if image else nn.Linear(width, wide))
        if chance.random() < 0.6:
            norm = nn.BatchNorm2d(wide) if image else nn.BatchNorm1d(wide)
            nn.init.uniform_(norm.running_var, 1e-3, chance.choice([1.0, 100.0]))
            nn.init.normal_(norm.running_mean)
            layers.append(norm)
        if chance.random() < 0.8:
            layers.append(chance.choice(activations)())
        if chance.random() < 0.4:
            layers.append(nn.Dropout(0.2))
        width = wide
    return nn.Sequential(*layers).eval(), x


# ---- numerics ---------------------------------------------------------------------------------------------------


def numerics(num_models: int) -> int:
    """Whatever passes the gate has to compute the same on inputs that the gate did not see."""
    tried = passed = refused = broken = 0
    worst = 0.0
    for seed in range(num_models):
        for configuration in _random_configurations(seed):
            verdict, error = _gated(seed, configuration)
            if verdict is None:
                continue
            tried += 1
            passed += verdict
            refused += not verdict
            if verdict:
                limit = Limits().largest_error(
                    coarsest([find_lever(c.lever).fix_class for c in configuration])
                )
                worst = max(worst, error / limit)
                broken += error > limit
                if error > limit:
                    print(
                        f"model {seed}: {label_of(configuration)} passed, and is off by {error:.1e} on other inputs"
                    )
    print(f"{num_models} models, {tried} configurations: {passed} passed the gate, {refused} were refused")
    print(
        f"{broken} of those that passed are beyond tolerance on {HELD_OUT} other inputs; the worst is at {worst:.2f} of it"
    )
    return int(broken > 0)


def _random_configurations(seed: int) -> Iterator[Configuration]:
    chance = random.Random(seed)
    for _ in range(3):
        chosen: list[LeverChoice] = []
        for name in chance.sample(QUICK, chance.randint(1, 4)):
            if not any(excluded(name, kept.lever) for kept in chosen):
                chosen.append(LeverChoice(lever=name))
        yield ordered(chosen)


def _gated(seed: int, configuration: Configuration) -> tuple[bool | None, float]:
    """Whether the gate lets a configuration through (nothing where it does not fit), and its error on held-out inputs."""
    model, x = random_model(seed)
    reference, _ = random_model(seed)
    with tempfile.TemporaryDirectory() as folder:
        subject = subject_of(pm.Inference(model, x), Path(folder))
        try:
            apply_levers(subject, configuration)
        except PyrometerError:
            return None, 0.0
        changed = subject.finished().model
        source, _ = argument_source(x, x.device, Variant())
        try:
            with torch.inference_mode():
                cases = [
                    _case(case.label, changed, reference, case.arguments)
                    for case in cases_of(source, True, 1)
                ]
                if not_applied(subject, configuration) is not None:
                    return None, 0.0
                fix_class = coarsest([find_lever(choice.lever).fix_class for choice in configuration])
                if not judge(cases, fix_class, Limits()).passes:
                    return False, 0.0
                others = [refreshed_source(source, 1000 + number)() for number in range(HELD_OUT)]
                errors = [
                    _case("held out", changed, reference, arguments).max_rel or 0.0 for arguments in others
                ]
        finally:
            torch.set_flush_denormal(False)
    return True, max(errors)


def _case(label: str, changed: nn.Module, reference: nn.Module, arguments: Arguments) -> CaseError:
    expected, actual = reference(*arguments.args), changed(*arguments.args)
    return case_error(label, actual, expected)


# ---- searches ---------------------------------------------------------------------------------------------------

MODELS: dict[str, Callable[[], pm.Inference]] = {
    "cnn": cnn,
    "encoder": encoder,
    "controller": controller,
    "points": points,
}


def search(names: list[str], budget_s: float, folder: Path, *, exhaustive: bool, only: list[str]) -> int:
    """Search each model, and compare the recipe with `torch.compile` alone in fresh processes."""
    folder.mkdir(parents=True, exist_ok=True)
    predicted: list[PredictedLever] = []
    against_compile: list[float] = []
    for name in names:
        target = parse_target(f"{Path(__file__).resolve()}:{name}")
        begin = time.monotonic()
        settings = TuneSettings(budget_s=budget_s, only=only)
        tuning, recipe = search_recipe(target, settings, path=folder / f"{name}.recipe.toml", progress=_told)
        took = time.monotonic() - begin
        final = tuning.final
        said = (
            "nothing kept"
            if final is None
            else format_ratio(final.ratio, final.ci_low or 0.0, final.ci_high or 9.9)
        )
        print(
            f"{name}: {said} with {label_of(recipe.configuration)}; {format_seconds(took)} of {format_seconds(budget_s)}",
            flush=True,
        )
        for each in tuning.levers:
            if each.outcome != "not applicable":
                print(f"  {each.label}: {each.outcome} {each.ratio or ''} {each.reason}", flush=True)
        predicted += predicted_levers(name, name, tuning.levers)
        compiled = _ratio(target, (LeverChoice(lever="compile", parameters={"mode": "default"}),))
        ours = final.ratio if final is not None and recipe.levers else 1.0
        print(
            f"{name}: torch.compile alone {1 / compiled:.2f}×, the recipe {compiled / ours:.2f}× as fast as that",
            flush=True,
        )
        against_compile.append(compiled / ours)
        if exhaustive:
            _exhausted(name, target, ours, took, only)
    mean = math.exp(sum(map(math.log, against_compile)) / len(against_compile))
    judged = judge_predictions(predicted)
    print(f"geometric mean over {len(names)} models: {mean:.2f}× as fast as torch.compile alone")
    print(
        f"{judged.num_held} of {len(predicted)} predicted ranges held; rank correlation {judged.rank_correlation}"
    )
    for each in predicted:
        print(
            f"  {each.run_id} {each.lever}: {each.predicted_low:.2f}–{each.predicted_high:.2f}, measured {each.measured:.2f}"
        )
    return 0


def _ratio(target: object, configuration: Configuration) -> float:
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(protocol.Source(spec=target.spec), Path(folder), Limits())  # type: ignore[attr-defined]
        with opened(laboratory, ()) as baseline:
            laboratory.keep_reference(baseline)
        verdict, _, _ = confirm(laboratory, configuration, Pairs(2, 20.0), _told)
    return verdict.ratio


def _exhausted(name: str, target: object, ours: float, took_s: float, only: list[str]) -> None:
    """Every legal configuration of the levers that fit, each confirmed; what a search has to come near to."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(protocol.Source(spec=target.spec), Path(folder), Limits())  # type: ignore[attr-defined]
        with opened(laboratory, ()) as baseline:
            wanted = [lever for lever in levers() if not only or lever in only]
            choices = laboratory.survey(baseline, wanted).choices
            laboratory.keep_reference(baseline)
            best, ratio = (), 1.0
            for configuration in _all(choices):
                try:
                    with opened(laboratory, configuration) as side:
                        if side.opened.not_applied or not laboratory.check(side).passes:
                            continue
                        found = laboratory.compare(baseline, side, 20.0).ratio
                except PyrometerError:
                    continue
                if found < ratio:
                    best, ratio = configuration, found
    cost = took_s / (time.monotonic() - begin)
    print(
        f"{name}: best of all {1 / ratio:.2f}× by {label_of(best)}; the search reached {ratio / ours:.1%} of it at {cost:.0%} of its cost"
    )


def _all(choices: dict[str, list[dict[str, object]]]) -> Iterator[Configuration]:
    exact = {name: listed for name, listed in choices.items() if find_lever(name).fix_class != "semantic"}
    options = [[None, *(LeverChoice(lever=n, parameters=p) for p in listed)] for n, listed in exact.items()]
    for picked in itertools.product(*options):
        chosen = [choice for choice in picked if choice is not None]
        if not any(excluded(a.lever, b.lever) for a, b in itertools.combinations(chosen, 2)) and _runs(
            chosen
        ):
            yield ordered(chosen)


def _runs(chosen: list[LeverChoice]) -> bool:
    """Whether each lever works under what runs the model, and has those that it needs."""
    found = [find_lever(choice.lever) for choice in chosen]
    names = {each.name for each in found}
    running = next((each.name for each in found if "executor" in each.excludes), "eager")
    return all(
        (each.executors is None or each.place == "executor" or running in each.executors)
        and each.needs <= names
        for each in found
    )


def reproduce(folder: Path) -> int:
    """Each claim again: how many lie within the interval that was reported."""
    held = total = 0
    for path in sorted(folder.glob("*.recipe.toml")):
        recipe = load_recipe(path)
        if recipe.proof is None or recipe.proof.ci_low is None or recipe.proof.ci_high is None:
            continue
        again = verify(recipe, parse_target(recipe.target), TuneSettings(), path, _told).final
        assert again is not None
        total += 1
        held += recipe.proof.ci_low <= again.ratio <= recipe.proof.ci_high
        print(
            f"{path.name}: claimed {recipe.proof.ratio:.3f} ({recipe.proof.ci_low:.3f}–{recipe.proof.ci_high:.3f}), again {again.ratio:.3f}"
        )
    print(f"{held} of {total} claims held")
    return 0


def _told(_share: float, what: str) -> None:
    print(f"  {what}", file=sys.stderr)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["numerics", "search", "reproduce"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--budget", type=float, default=300.0)
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--folder", type=Path, default=Path("tuned"))
    asked = parser.parse_args()
    if asked.what == "numerics":
        return numerics(asked.models)
    if asked.what == "reproduce":
        return reproduce(Path(asked.names[0]) if asked.names else asked.folder)
    return search(
        asked.names or list(MODELS), asked.budget, asked.folder, exhaustive=asked.exhaustive, only=asked.only
    )


if __name__ == "__main__":
    sys.exit(main())
