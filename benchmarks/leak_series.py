"""How often is a series of memory readings called a leak? Ours beside the usual recipes, on series whose truth is known.

    python benchmarks/leak_series.py [--simulations 400] [--lengths 600,200]

Megabytes around 500, with noise of 5 where nothing else is said. Rows of the first group do not leak and should not be called
so; rows of the second leak.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable

import numpy as np
from scipy import stats

from pyrometer.bench.memory import robust_slope
from pyrometer.memory.trend.judge import judge_series

MB = 1e6
Noise = np.random.Generator
Series = Callable[[Noise, int], np.ndarray]


def flat(rng: Noise, n: int) -> np.ndarray:
    return rng.normal(0, 5, n)


def autoregressive(rng: Noise, n: int, phi: float = 0.95) -> np.ndarray:
    from scipy.signal import lfilter

    shocks = rng.normal(0, 5 * np.sqrt(1 - phi**2), n + 200)
    return lfilter([1], [1, -phi], shocks)[200:]


def plateau(tau: float) -> Series:
    return lambda rng, n: 200 * (1 - np.exp(-np.arange(n) / tau)) + flat(rng, n)


def quiet_plateau(tau: float) -> Series:
    return lambda rng, n: 200 * (1 - np.exp(-np.arange(n) / tau)) + flat(rng, n) / 10


def one_step(rng: Noise, n: int) -> np.ndarray:
    return 60.0 * (np.arange(n) > rng.integers(n // 10, n)) + flat(rng, n)


def three_steps(rng: Noise, n: int) -> np.ndarray:
    at = np.arange(n)
    return 40.0 * sum((at > share * n).astype(float) for share in (0.2, 0.4, 0.6)) + flat(rng, n)


def sawtooth(rng: Noise, n: int, height: float = 70, period: int = 35) -> np.ndarray:
    return height * ((np.arange(n) + rng.integers(period)) % period) / period + flat(rng, n) / 5


def irregular_sawtooth(rng: Noise, n: int) -> np.ndarray:
    drops = np.cumsum(rng.integers(15, 45, n))
    last = np.searchsorted(drops, np.arange(n), side="right")
    start = np.concatenate(([0], drops))[last]
    return 2.0 * (np.arange(n) - start) + flat(rng, n) / 5


def variable_shapes(rng: Noise, n: int) -> np.ndarray:
    return rng.uniform(0, 350, n)


def random_walk(rng: Noise, n: int) -> np.ndarray:
    return np.cumsum(rng.normal(0, 1, n))


def epochs(rng: Noise, n: int) -> np.ndarray:
    return 0.8 * (np.arange(n) % 40) + 20.0 * (np.arange(n) % 40 > 35) + flat(rng, n) / 5


def constant(_: Noise, n: int) -> np.ndarray:
    return np.zeros(n)


def leak(per_step: float, beside: Series = flat) -> Series:
    return lambda rng, n: per_step * np.arange(n) + beside(rng, n)


def coarse_leak(rng: Noise, n: int) -> np.ndarray:
    return np.floor(np.arange(n) / 20) + flat(rng, n) / 5


def epoch_leak(rng: Noise, n: int) -> np.ndarray:
    return 20.0 * (np.arange(n) // 100) + flat(rng, n)


def sporadic_leak(rng: Noise, n: int) -> np.ndarray:
    return np.cumsum(2.0 * (rng.random(n) < 1 / 7)) + flat(rng, n)


def leak_after_warm_up(rng: Noise, n: int) -> np.ndarray:
    return 0.2 * np.arange(n) + plateau(20)(rng, n)


NOT_LEAKING: dict[str, Series] = {
    "constant": constant,
    "flat noise": flat,
    "autoregressive .95": autoregressive,
    "plateau tau=30": plateau(30),
    "plateau tau=150": plateau(150),
    "plateau tau=400": plateau(400),
    "plateau tau=1000, quiet": quiet_plateau(1000),
    "one step up": one_step,
    "three steps up": three_steps,
    "sawtooth of gc": sawtooth,
    "irregular sawtooth": irregular_sawtooth,
    "variable shapes": variable_shapes,
    "epochs of 40 steps": epochs,
    "random walk": random_walk,
}
LEAKING: dict[str, Series] = {
    "leak .05, noise 5": leak(0.05),
    "leak .2, noise 5": leak(0.2),
    "leak .2, exact": leak(0.2, constant),
    "leak 1 each 20 steps": coarse_leak,
    "leak 2, sporadic": sporadic_leak,
    "leak .2, shapes 350": leak(0.2, variable_shapes),
    "leak .5, shapes 350": leak(0.5, variable_shapes),
    "leak .1, sawtooth 70": leak(0.1, sawtooth),
    "leak .2, autoregressive": leak(0.2, autoregressive),
    "leak .2 after warm-up": leak_after_warm_up,
    "leak 20 per 100-step epoch": epoch_leak,
}


def readings(series: Series, rng: Noise, length: int) -> np.ndarray:
    """Bytes of one simulated run."""
    return (500 + series(rng, length)) * MB


def recipes(bytes_read: np.ndarray) -> dict[str, bool]:
    """What the usual recipes call a leak, on the part without the first fifth."""
    at = np.arange(len(bytes_read))[len(bytes_read) // 5 :]
    kept = bytes_read[len(bytes_read) // 5 :]
    line = stats.linregress(at, kept)
    tau = stats.kendalltau(at, kept)
    slope = robust_slope(at, kept) or 0.0
    return {
        "last>first": bool(kept[-1] > kept[0]),
        "OLS t>1.96": bool(line.slope > 0 and line.slope > 1.96 * line.stderr),
        "MK p<.01": bool(tau.statistic > 0 and tau.pvalue / 2 < 0.01),
        "Theil-Sen>.2 %": slope * len(kept) > 0.002 * float(kept.max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--lengths", default="600,200")
    arguments = parser.parse_args()
    columns = [
        "last>first",
        "OLS t>1.96",
        "MK p<.01",
        "Theil-Sen>.2 %",
        "leak",
        "warm-up",
        "stable",
        "inconclusive",
    ]
    for length in map(int, arguments.lengths.split(",")):
        print(f"{length} readings, share of {arguments.simulations} simulations")
        print(f"{'':28}" + "".join(f"{name:>16}" for name in columns))
        for group in (NOT_LEAKING, LEAKING):
            for name, series in group.items():
                rng = np.random.default_rng(0)
                counts: Counter[str] = Counter()
                for _ in range(arguments.simulations):
                    bytes_read = readings(series, rng, length)
                    counts[judge_series(range(length), bytes_read).verdict] += 1
                    counts.update(recipe for recipe, found in recipes(bytes_read).items() if found)
                shares = (counts[column] / arguments.simulations for column in columns)
                print(f"{name:28}" + "".join(f"{share:16.3f}" for share in shares), flush=True)
        print()


if __name__ == "__main__":
    main()
