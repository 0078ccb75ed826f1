"""What the flow of values between operators tells of work that nobody needs."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.place import Place
from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc


class Unread(Record, frozen=True, kw_only=True):
    """Results that nobody reads before they are gone."""

    where: Annotated[Place, doc("of the dearest operator; of gradients where the backward pass is asked for")]
    what: Literal["gradients", "results"]
    operators: Annotated[list[str], doc("the dearest first")]
    calls_per_step: float
    seconds_per_step: Annotated[Seconds, doc("of these operators, as recorded")]
    share: Annotated[Ratio, doc("of the operators' time of a step")]
    modules: Annotated[list[str], doc("whose gradients or results these are, the dearest first")] = []
    num_leaves: Annotated[
        int, doc("parameters and other leaves whose gradients these are; 0 for results")
    ] = 0


class PartlyUsed(Record, frozen=True, kw_only=True):
    """Operators whose results are only read in part."""

    where: Annotated[Place, doc("of the dearest operator")]
    selected: Annotated[Place, doc("where a part is selected")]
    by: Annotated[str, doc("the operator that selects")]
    used: Annotated[Ratio, doc("share of the dearest operator's result that is read")]
    operators: Annotated[list[str], doc("the dearest first")]
    seconds_per_step: Annotated[Seconds, doc("for the part that is not read")]
    share: Annotated[Ratio, doc("of the operators' time of a step")]


class MostlyZero(Record, frozen=True, kw_only=True):
    """A matrix that is multiplied densely, and holds next to nothing but zeros; weights of an attention, where it is masked so."""

    where: Annotated[Place, doc("of the product")]
    shape: list[int]
    zero_share: Ratio
    one_hot: Annotated[bool, doc("each row that was looked at holds a single 1")]
    masked: Annotated[
        bool, doc("it is the mask of an attention, and these are the places that it leaves out")
    ] = False
    calls_per_step: float
    seconds_per_step: Annotated[
        Seconds, doc("of the products, of making the matrix, and of their backward pass")
    ]
    share: Annotated[Ratio, doc("of the operators' time of a step")]


class ConstantTail(Record, frozen=True, kw_only=True):
    """Rows of indices, or sequences of features, whose last columns hold one value in every row."""

    where: Annotated[
        Place, doc("where they are made, as far as that is in the step; else where they are looked up")
    ]
    shape: list[int]
    columns: Annotated[int, doc("along the dimension that is padded")]
    tail: Annotated[float, doc("columns that are constant, on average over the steps")]
    fewest: Annotated[int, doc("in any step")]
    num_steps: int
    share: Annotated[Ratio, doc("of the operators' time of a step: those on tensors with that many columns")]


class TableLookup(Record, frozen=True, kw_only=True):
    """Rows of a table that the steps look up."""

    where: Place
    rows: int
    width: int
    looked_up: Annotated[float, doc("different rows in a step, on average")]
    trained: Annotated[bool, doc("it wants gradients")]
    gradient_share: Annotated[
        Ratio, doc("gradients of its size: making and adding them, of the operators' time of a step")
    ]


class Repeated(Record, frozen=True, kw_only=True):
    """Results that were there already: computed again from the same values by the same operators."""

    where: Annotated[Place, doc("of the dearest operator")]
    since: Annotated[
        Literal["same step", "step before"],
        doc(
            "whether the step itself computed them before, or the one before, of constants and the model's own values"
        ),
    ]
    operators: Annotated[list[str], doc("the dearest first")]
    results: Annotated[int, doc("different ones")]
    calls_per_step: Annotated[float, doc("of the dearest operator that were needless")]
    seconds_per_step: Annotated[Seconds, doc("of the needless operators, with their backward pass")]
    of_line: Annotated[Ratio, doc("of what all operators of the line take")]
    share: Annotated[Ratio, doc("of the operators' time of a step")]


class LateLinear(Record, frozen=True, kw_only=True):
    """A map that treats places alike, of values that are mostly copies."""

    where: Place
    copied: Annotated[Place, doc("where the copies are made")]
    by: Annotated[str, doc("the operator that makes them")]
    operator: Annotated[str, doc("that maps")]
    distinct: Annotated[Ratio, doc("share of the places that are no copies")]
    seconds_per_step: Annotated[Seconds, doc("for the others")]
    share: Annotated[Ratio, doc("of the operators' time of a step")]


class ProductOrder(Record, frozen=True, kw_only=True):
    """A product of two matrices that is only multiplied with a third, where the last two first would take less."""

    where: Place
    second: Annotated[Place, doc("where the third comes in")]
    shape: Annotated[list[int], doc("of the product in the middle")]
    left: Annotated[Ratio, doc("share of the multiplications that the other order takes")]
    seconds_per_step: Annotated[Seconds, doc("for the others")]
    share: Annotated[Ratio, doc("of the operators' time of a step")]


class Subnormal(Record, frozen=True, kw_only=True):
    """Work on numbers below the smallest normal one."""

    where: Annotated[Place, doc("of the dearest operator")]
    operators: list[str]
    subnormal_share: Annotated[Ratio, doc("of what an operator read or wrote, at most")]
    calls_per_step: float
    seconds_per_step: Seconds
    share: Annotated[Ratio, doc("of the operators' time of a step")]


class DataflowReport(Record, frozen=True, kw_only=True):
    """Work that nobody needs, by what reads what in a few recorded steps."""

    num_steps: int
    calls_per_step: float
    step_operator_s: Annotated[Seconds, doc("of all operators of the fastest recorded step")]
    unread: list[Unread] = []
    partly_used: list[PartlyUsed] = []
    mostly_zero: list[MostlyZero] = []
    constant_tails: list[ConstantTail] = []
    lookups: list[TableLookup] = []
    repeated: list[Repeated] = []
    late_linear: list[LateLinear] = []
    product_orders: list[ProductOrder] = []
    subnormal: list[Subnormal] = []
    notes: Annotated[list[str], doc("what could not be followed")] = []
