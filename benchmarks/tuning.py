"""How good is the tuner? Its recipes against an exhaustive search and `torch.compile`, its claims again, its gate on random models.

::

    python benchmarks/tuning.py numerics --models 200          # recipes that break numerics beyond tolerance: none are legal
    python benchmarks/tuning.py search cnn decode --budget 300    # search, confirm, compare with torch.compile alone
    python benchmarks/tuning.py search cnn --exhaustive        # and with the best of all configurations
    python benchmarks/tuning.py search --variants 4 --budget 90   # six models in four sizes, for 24 recipes
    python benchmarks/tuning.py search other.py:model    # a model that nobody had in mind
    python benchmarks/tuning.py search cnn encoder decode controller --semantic    # with int8 and pruning
    python benchmarks/tuning.py reproduce                      # each recipe of the folder again, in fresh processes

What was found lies in a folder (`--folder`), and a command that was cut off goes on from there. Figures are ratios within one
run; times of a loaded machine say nothing.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import torch
from msgspec.structs import replace
from torch import nn

import pyrometer as pm
from pyrometer.errors import NotApplicableError, PyrometerError
from pyrometer.quantity import format_seconds
from pyrometer.record import Record, from_json, to_json
from pyrometer.tuning.levers.applying import apply_levers, not_applied, subject_of
from pyrometer.tuning.levers.choice import Configuration, LeverChoice, label_of
from pyrometer.tuning.levers.configuration import excluded, ordered
from pyrometer.tuning.levers.registry import find_lever, levers
from pyrometer.tuning.predictions import PredictedLever, judge_predictions, predicted_levers
from pyrometer.tuning.recipe.recipe import Recipe, load_recipe
from pyrometer.tuning.recipe.verifying import verify
from pyrometer.tuning.search.confirming import Pairs, confirm
from pyrometer.tuning.search.earlier import Earlier
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.cases import cases_of, refreshed_source
from pyrometer.tuning.trials.gate import CaseError, Limits, coarsest, judge
from pyrometer.tuning.trials.laboratory import Laboratory
from pyrometer.tuning.trials.results import case_error
from pyrometer.tuning.tune import search_recipe
from pyrometer.workload.inputs import Arguments, argument_source
from pyrometer.workload.target import Target, parse_target
from pyrometer.workload.variant import Variant

HELD_OUT = 5
Interval: TypeAlias = tuple[float, float, float]
"""A ratio of new over old time, and its bounds."""

QUICK = ("drop_dropout", "fold_batchnorm", "channels_last", "autocast_bf16", "cast_bf16", "flush_denormals")
"""Levers that need no compiler, so that hundreds of models can be tried."""


# ---- models -----------------------------------------------------------------------------------------------------


SCALES = (1.0, 0.5, 1.5, 0.75)
"""Of widths, by the number of the variant; each has a seed of its own."""


def _wide(base: int, variant: int) -> int:
    torch.manual_seed(variant)
    return round(base * SCALES[variant % len(SCALES)] / 16) * 16


def cnn(variant: int = 0) -> pm.Inference:
    """A residual network's kind of convolutions."""
    first = _wide(32, variant)
    layers: list[nn.Module] = [nn.Conv2d(3, first, 7, 2, 3, bias=False), nn.BatchNorm2d(first), nn.ReLU()]
    for width in (first, 2 * first, 4 * first):
        layers += [nn.LazyConv2d(width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        layers += [nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * first, 100))
    model(torch.randn(1, 3, 32, 32))
    return pm.Inference(model, torch.randn(1, 3, 160, 160), "images")


def _layers(width: int, *, norm_first: bool = False) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(
        width, 4, 4 * width, activation="gelu", batch_first=True, norm_first=norm_first
    )
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)


def encoder(variant: int = 0) -> pm.Inference:
    """Four layers of BERT's kind, 64 tokens."""
    width = _wide(256, variant)
    return pm.Inference(_layers(width), torch.randn(1, 64, width), "tokens", 64)


class Patches(nn.Module):
    """A vision transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.places = nn.Parameter(torch.randn(1, 49, width))
        self.layers, self.head = _layers(width, norm_first=True), nn.Linear(width, 100)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Classify images `[B, 3, 112, 112]`."""
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        result: torch.Tensor = self.head(self.layers(x).mean(1))
        return result


def vit(variant: int = 0) -> pm.Inference:
    """An image of 49 patches."""
    return pm.Inference(Patches(_wide(192, variant)), torch.randn(1, 3, 112, 112), "images")


class Block(nn.Module):
    """A layer of a decoder that gets the keys and values of earlier tokens."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """One token `[B, 1, D]` after those of the cache `[B, H, S, D/H]`."""
        query, key, value = (
            self.qkv(self.first(x)).unflatten(-1, (3 * self.heads, -1)).transpose(1, 2).chunk(3, 1)
        )
        keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
        seen = nn.functional.scaled_dot_product_attention(query, keys, values)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        result: torch.Tensor = x + self.wide(self.second(x))
        return result


class Decoder(nn.Module):
    """GPT's kind of layers, one step with a cache."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(1000, width), nn.Linear(width, 1000)
        self.blocks = nn.ModuleList(Block(width) for _ in range(4))

    def forward(self, token: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """The next token's logits; caches are `[B, L, H, S, D/H]`."""
        x = self.embed(token)
        for block, key, value in zip(self.blocks, keys.unbind(1), values.unbind(1), strict=True):
            x = block(x, key, value)
        result: torch.Tensor = self.head(x)
        return result


def decode(variant: int = 0) -> pm.Inference:
    """The token after 128 others."""
    width = _wide(256, variant)
    cache = (torch.randn(1, 4, 4, 128, width // 4) for _ in range(2))
    return pm.Inference(Decoder(width), (torch.tensor([[7]]), *cache), "tokens", 1)


def controller(variant: int = 0) -> pm.Inference:
    """A policy of 0.1 ms."""
    width = _wide(128, variant)
    model = nn.Sequential(
        nn.Linear(48, width), nn.ELU(), nn.Linear(width, width), nn.ELU(), nn.Linear(width, 12)
    )
    return pm.Inference(model, torch.randn(1, 48), "states")


class Points(nn.Module):
    """A PointNet."""

    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = [3, width, 2 * width, 4 * width]
        parts = [(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU()) for a, b in itertools.pairwise(sizes)]
        self.features = nn.Sequential(*itertools.chain.from_iterable(parts))
        self.head = nn.Sequential(nn.Linear(4 * width, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 40))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Classify clouds of points `[B, 3, N]`."""
        result: torch.Tensor = self.head(self.features(points).amax(-1))
        return result


def points(variant: int = 0) -> pm.Inference:
    """A cloud of 1,024 points."""
    return pm.Inference(Points(_wide(64, variant)), torch.randn(2, 3, 1024), "clouds")


MODELS = {each.__name__: each for each in (cnn, vit, encoder, decode, controller, points)}
for _name, _variant in itertools.product(MODELS, range(1, len(SCALES))):
    globals()[f"{_name}_{_variant}"] = functools.partial(MODELS[_name], _variant)  # targets, too


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


class Found(Record, frozen=True, kw_only=True):
    """What a search of one model came to."""

    recipe: str
    took_s: float
    claimed: Interval | None = None
    pairs: list[float] = []
    compiled: float
    levers: list[PredictedLever] = []
    exhausted: tuple[str, float, float] | None = None
    again: float | None = None

    @property
    def ratio(self) -> float:
        """Of the recipe; what was dropped leaves the model as it was."""
        return self.claimed[0] if self.claimed is not None else 1.0


def search(names: list[str], folder: Path, settings: TuneSettings, *, exhaustive: bool) -> int:
    """Search each model, and compare the recipe with `torch.compile` alone in fresh processes."""
    folder.mkdir(parents=True, exist_ok=True)
    every: dict[str, Found] = {}
    for name in names:
        place = folder / f"{_stem(name)}.json"
        if not place.exists():
            place.write_bytes(to_json(_searched(name, folder, settings, _known(folder))))
        found = from_json(Found, place.read_bytes())
        if exhaustive and found.exhausted is None:
            found = replace(found, exhausted=_exhausted(name, _recipe(folder, name), found, settings))
            place.write_bytes(to_json(found))
        every[name] = found
    print(f"{'model':<22}{'faster':<24}{'over compile':<14}{'search':<14}recipe")
    for name, found in every.items():
        faster = "nothing proved"
        if found.claimed is not None:
            ratio, low, high = found.claimed
            faster = f"{1 / ratio:.2f}× ({1 / high:.2f}–{1 / low:.2f})"
        took = format_seconds(found.took_s)
        print(f"{_stem(name):<22}{faster:<24}{found.compiled / found.ratio:<14.2f}{took:<14}{found.recipe}")
        if found.exhausted is not None:
            best, reached, cost = found.exhausted
            print(f"{'':<14}{reached:.1%} of the best of all ({best}) at {cost:.0%} of its cost")
    mean = math.exp(sum(math.log(each.compiled / each.ratio) for each in every.values()) / len(every))
    predicted = [lever for found in every.values() for lever in found.levers]
    judged = judge_predictions(predicted)
    print(f"geometric mean over {len(names)} models: {mean:.2f}× as fast as torch.compile alone")
    print(
        f"{judged.num_held} of {len(predicted)} predicted ranges held; rank correlation {judged.rank_correlation}"
    )
    for each in predicted:
        low, high = each.predicted_low, each.predicted_high
        print(f"  {each.run_id} {each.lever}: {low:.2f}–{high:.2f}, measured {each.measured:.2f}")
    return 0


def _known(folder: Path) -> Earlier:
    """What a store would tell of confirmations by now; predictions are judged without what was learned."""
    known = (from_json(Found, path.read_bytes()) for path in folder.glob("*.json"))
    return Earlier(confirmed=[found.pairs for found in known])


def _target(name: str) -> Target:
    return parse_target(name if ":" in name else f"{Path(__file__).resolve()}:{name}")


def _stem(name: str) -> str:
    return name.rpartition(":")[2]


def _searched(name: str, folder: Path, settings: TuneSettings, earlier: Earlier) -> Found:
    path, target = folder / f"{_stem(name)}.recipe.toml", _target(name)
    tuning, recipe = search_recipe(target, settings, path=path, resume=True, progress=_told, earlier=earlier)
    for each in tuning.levers:
        if each.outcome != "not applicable":
            print(f"  {name} {each.label}: {each.outcome} {each.ratio or ''} {each.reason}", flush=True)
    proof = recipe.proof if recipe.levers else None
    return Found(
        recipe=label_of(recipe.configuration),
        took_s=tuning.elapsed_s,
        claimed=None if proof is None else (proof.ratio, proof.ci_low or 0.0, proof.ci_high or math.inf),
        pairs=[] if tuning.final is None else tuning.final.log_ratios,
        compiled=_ratio(target, (LeverChoice(lever="compile", parameters={"mode": "default"}),)),
        levers=predicted_levers(name, name, tuning.levers),
    )


def _ratio(target: Target, configuration: Configuration) -> float:
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(protocol.Source(spec=target.spec), Path(folder), Limits())
        with laboratory.open(()) as baseline:
            laboratory.keep_reference(baseline)
        try:
            verdict, _, _ = confirm(laboratory, configuration, Pairs(2, 20.0), _told)
        except NotApplicableError:  # nothing of it can be compiled, so that it runs as it did
            return 1.0
    return verdict.ratio


def _recipe(folder: Path, name: str) -> Recipe:
    return load_recipe(folder / f"{_stem(name)}.recipe.toml")


def _exhausted(name: str, recipe: Recipe, found: Found, settings: TuneSettings) -> tuple[str, float, float]:
    """The best of all legal configurations of the levers that fit; what the search reached of it, and its share of the cost.

    The best of many looks better than it is, so that it is confirmed in fresh processes, as is the recipe.
    """
    begin, target = time.monotonic(), _target(name)
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(protocol.Source(spec=target.spec), Path(folder), Limits())
        with laboratory.open(()) as baseline:
            choices = laboratory.survey(
                baseline, [name for name in levers() if not settings.only or name in settings.only]
            ).choices
            laboratory.keep_reference(baseline)
            best, ratio = (), 1.0
            for configuration in _all(choices):
                try:
                    with laboratory.open(configuration) as side:
                        if side.opened.not_applied or not laboratory.check(side).passes:
                            continue
                        reached = laboratory.compare(baseline, side, 20.0).ratio
                except PyrometerError:
                    continue
                if reached < ratio:
                    best, ratio = configuration, reached
    cost = found.took_s / (time.monotonic() - begin)
    if label_of(best) == found.recipe:
        return found.recipe, 1.0, cost
    fastest, kept = (_ratio(target, each) if each else 1.0 for each in (best, recipe.configuration))
    return label_of(best), fastest / kept, cost


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


def reproduce(names: list[str], folder: Path) -> int:
    """Each claim again: how many lie within the interval that was reported."""
    held = total = 0
    print(f"{'model':<22}{'claimed':<26}{'again':<8}held")
    for name in names:
        place = folder / f"{_stem(name)}.json"
        found = from_json(Found, place.read_bytes()) if place.exists() else None
        if found is None or found.claimed is None:
            continue
        if found.again is None:
            recipe, spread = _recipe(folder, name), _known(folder).spread
            again = verify(recipe, _target(name), TuneSettings(), folder, _told, spread=spread).final
            assert again is not None
            found = replace(found, again=again.ratio)
            place.write_bytes(to_json(found))
        ratio, low, high = found.claimed
        holds = low <= (found.again or 0.0) <= high
        held, total = held + holds, total + 1
        claimed = f"{ratio:.3f} ({low:.3f}–{high:.3f})"
        print(f"{_stem(name):<22}{claimed:<26}{found.again:<8.3f}{'yes' if holds else 'no'}", flush=True)
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
    parser.add_argument("--variants", type=int, default=1, choices=range(1, len(SCALES) + 1))
    parser.add_argument("--budget", type=float, default=300.0)
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--semantic", action="store_true", help="allow levers that change what is computed")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--folder", type=Path, default=Path("tuned"))
    asked = parser.parse_args()
    if asked.what == "numerics":
        return numerics(asked.models)
    every = [f"{name}_{n}" if n else name for n in range(asked.variants) for name in asked.names or MODELS]
    if asked.what == "reproduce":
        known = sorted(path.stem for path in asked.folder.glob("*.json"))
        return reproduce(asked.names or known, asked.folder)
    settings = TuneSettings(budget_s=asked.budget, only=asked.only, allow_semantic=asked.semantic)
    return search(every, asked.folder, settings, exhaustive=asked.exhaustive)


if __name__ == "__main__":
    sys.exit(main())
