"""What `pyrometer calibrate --predictions` prints: how well findings predicted what searches measured."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from pyrometer.document import Document
from pyrometer.quantity import counted, format_ratio, significant
from pyrometer.report.kinds import read_document
from pyrometer.store.store import Store
from pyrometer.tuning.outcome import Tuning
from pyrometer.tuning.predictions import Predictions, judge_predictions
from pyrometer.tuning.search.earlier import Earlier


class PredictionsDocument(Document, frozen=True, kw_only=True):
    """`pyrometer calibrate --predictions --json`."""

    predictions: Predictions


def stored_tunings(store: Store) -> Iterator[Tuning]:
    """All searches in a store that were run on this machine."""
    from pyrometer.hardware.environment import read_environment

    here = read_environment().fingerprint
    for summary in store.runs(kind="tune"):
        run = store.load(summary.id)
        document = read_document(run.kind, run.document)
        if isinstance(document, Tuning) and document.environment.fingerprint == here:
            yield replace(document, run_id=run.id)


def stored_predictions(store: Store) -> Predictions:
    """Of the searches in a store that were run on this machine."""
    return judge_predictions(Earlier.of(stored_tunings(store)).predicted)


def lines(predictions: Predictions) -> Iterator[str]:
    """A sentence, then a line for each lever."""
    if not predictions.levers:
        yield "no lever was both predicted and timed on this machine yet: `pyrometer tune TARGET` does both"
        return
    total = counted(len(predictions.levers), "prediction")
    correlation = predictions.rank_correlation
    ranked = "too few to rank" if correlation is None else f"rank correlation {correlation:.2f}"
    yield f"{predictions.num_held} of {total} held, {ranked}"
    width = max(len(lever.lever) for lever in predictions.levers)
    for lever in predictions.levers:
        low, high = (
            significant(1 / max(lever.predicted_high, 1e-3)),
            significant(1 / max(lever.predicted_low, 1e-3)),
        )
        measured = format_ratio(lever.measured, lever.measured_low, lever.measured_high)
        mark = "held " if lever.held else "missed"
        by = f" by {', '.join(lever.rules)}" if lever.rules else ""
        yield f"{mark}  {lever.lever:<{width}}  predicted {low}–{high}×{by}, measured {measured}"
