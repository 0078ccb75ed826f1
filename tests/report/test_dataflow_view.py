"""The chapter on what is computed in vain."""

from __future__ import annotations

from pyrometer.dataflow.report import (
    ConstantTail,
    DataflowReport,
    LateLinear,
    MostlyZero,
    PartlyUsed,
    ProductOrder,
    Repeated,
    TableLookup,
    Unread,
)
from pyrometer.place import Place
from pyrometer.report.facts.dataflow import section


def at(line: int) -> Place:
    return Place(file="/p/net.py", line=line)


def report(**facts) -> DataflowReport:
    return DataflowReport(num_steps=3, calls_per_step=1200, step_operator_s=8e-3, **facts)


def test_every_kind_stands_in_a_row_of_its_own_the_dearest_first():
    mostly_zero = MostlyZero(
        where=at(3), shape=[300, 300], zero_share=0.98, one_hot=False, calls_per_step=1, seconds_per_step=4e-3, share=0.2
    )  # fmt: skip
    told = section(
        report(
            unread=[
                Unread(
                    where=at(1), what="gradients", operators=["aten::mm"], calls_per_step=4, seconds_per_step=4e-3, share=0.4, modules=["net.head"]
                )
            ],
            partly_used=[
                PartlyUsed(
                    where=at(2), selected=at(9), by="aten::select", used=0.03, operators=["aten::addmm"], seconds_per_step=2e-3, share=0.3
                )
            ],
            mostly_zero=[mostly_zero],
            constant_tails=[ConstantTail(where=at(4), shape=[8, 512], columns=512, tail=300.4, fewest=290, num_steps=3, share=0.15)],
            lookups=[TableLookup(where=at(5), rows=90_000, width=32, looked_up=512, trained=True, gradient_share=0.12)],
            repeated=[
                Repeated(
                    where=at(6), since="same step", operators=["aten::mm", "aten::add"], results=2, calls_per_step=19, seconds_per_step=1e-3, of_line=1, share=0.1
                )
            ],
            late_linear=[
                LateLinear(where=at(7), copied=at(6), by="aten::upsample", operator="aten::convolution", distinct=0.25, seconds_per_step=1e-3, share=0.05)
            ],
            product_orders=[ProductOrder(where=at(8), second=at(9), shape=[64, 64], left=0.03, seconds_per_step=1e-3, share=0.04)],
        )
    )  # fmt: skip
    assert told.table.rows == [
        ("net.py:1", "40.0 %", "gradients of net.head that nobody reads", "aten::mm"),
        ("net.py:2", "30.0 %", "3.00 % of aten::addmm is read", "selected by aten::select at net.py:9"),
        ("net.py:3", "20.0 %", "a dense product of 300×300", "98.0 % zeros"),
        ("net.py:4", "15.0 %", "padding of 8×512", "300 of 512 columns hold one value, in 3 steps"),
        ("net.py:5", "12.0 %", "gradients of a table of 90,000 rows", "512 of 90,000 rows are looked up"),
        ("net.py:6", "10.0 %", "aten::mm, aten::add again", "19 times a step from the same values, computed in the same step"),
        ("net.py:7", "5.00 %", "aten::convolution of copies", "25.0 % are distinct, copied by aten::upsample at net.py:6"),
        ("net.py:8", "4.00 %", "a product of 64×64, multiplied again at net.py:9", "the other order takes 3.00 %"),
    ]  # fmt: skip
    assert [fact.value for fact in told.facts] == ["3 steps"]


def test_what_hardly_counts_is_not_shown():
    unread = Unread(
        where=at(1),
        what="results",
        operators=["aten::sum"],
        calls_per_step=1,
        seconds_per_step=1e-6,
        share=0.001,
    )
    assert section(report(unread=[unread])) is None
