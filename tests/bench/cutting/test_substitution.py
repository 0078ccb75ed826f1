"""A function does something else for a while, whichever way leads to it, and then again what it did."""

from __future__ import annotations

import functools
import gc

import pytest

from pyrometer.bench.cutting.substitution import Substitution, functions_of


def plain(x, y=2, *, z=3):
    return x + y + z


also_plain = plain


class Shape:
    def area(self, side):
        return side * side

    @property
    def name(self):
        return "shape"

    @staticmethod
    def corners():
        return 4

    @classmethod
    def kind(cls):
        return cls.__name__


def adder(amount, factor):
    def add(x):
        return (x + amount) * factor

    return add


def traced(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@traced
def decorated(x):
    return -x


PARTIAL = functools.partial(plain, 1, z=10)
CLOSURE = adder(1, 10)
SHAPE = Shape()

WAYS = {
    "a name": (plain, lambda: plain(1)),
    "another name": (plain, lambda: also_plain(1)),
    "a partial": (plain, lambda: PARTIAL(5)),
    "a method": (Shape.area, lambda: SHAPE.area(3)),
    "a bound method": (Shape.area, lambda area=SHAPE.area: area(3)),
    "a property": (Shape.name.fget, lambda: SHAPE.name),
    "a static method": (Shape.corners, SHAPE.corners),
    "a class method": (Shape.kind.__func__, SHAPE.kind),
    "a closure": (CLOSURE, lambda: CLOSURE(1)),
    "below a decorator": (decorated.__wrapped__, lambda: decorated(1)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_leads_to_the_substitute_and_back(way):
    function, call = WAYS[way]
    before, code = call(), function.__code__
    with Substitution(
        [function], lambda original, args, kwargs: ("cut", original(*args, **kwargs))
    ).installed():
        assert call() == ("cut", before)
    assert call() == before
    assert function.__code__ is code


def test_it_is_taken_back_when_the_program_raises():
    def refuse(*_):
        raise LookupError

    with pytest.raises(LookupError), Substitution([plain], refuse).installed():
        plain(1)
    assert plain(1) == 6


def test_functions_are_known_by_their_code():
    twins = [adder(1, 1), adder(2, 2)]
    code = twins[0].__code__
    assert {id(function) for function in functions_of({code: {}})[code]} >= {id(twin) for twin in twins}


@pytest.mark.parametrize("way", [way for way in WAYS if way != "a closure"])
def test_what_the_garbage_collector_does_not_know_is_found_by_name(way, monkeypatch):
    monkeypatch.setattr(gc, "get_referrers", lambda *_: [])
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 1)
    function = WAYS[way][0]
    assert functions_of({function.__code__: globals()}) == {function.__code__: [function]}


def test_a_function_made_anew_in_each_call_is_not_found():
    codes = [constant for constant in make_and_call.__code__.co_consts if hasattr(constant, "co_name")]
    assert make_and_call() == 1
    assert functions_of({codes[0]: {}}) == {codes[0]: []}


def make_and_call():
    def inner():
        return 1

    return inner()
