"""Objects that fight back are looked at without being asked anything."""

from __future__ import annotations

import gc

import pytest

OBJECTS = {
    "repr that raises": """
        class Holder:
            def __repr__(self): raise RuntimeError("asked")
            __str__ = __repr__
        """,
    "equality that gives tensors, and no hash": """
        class Holder:
            def __eq__(self, other):
                raise RuntimeError("asked")
            __hash__ = None
            def __bool__(self): raise RuntimeError("asked")
            def __len__(self): raise RuntimeError("asked")
        """,
    "attributes that explode": """
        class Holder:
            def __getattr__(self, name): raise RuntimeError("asked")
            def __getattribute__(self, name):
                if name == "kept": raise RuntimeError("asked")
                return object.__getattribute__(self, name)
        """,
    "properties that explode": """
        class Holder:
            @property
            def shape(self): raise RuntimeError("asked")
            @property
            def __class__(self): raise RuntimeError("asked")
        """,
    "a proxy that claims to be a tensor": """
        class Holder:
            @property
            def __class__(self): return torch.Tensor
        """,
    "a metaclass that explodes": """
        class Meta(type):
            def __hash__(cls): raise RuntimeError("asked")
            def __eq__(cls, other): raise RuntimeError("asked")
            def __getattribute__(cls, name):
                if name in ("__module__", "__mro__", "__name__", "__qualname__", "__dict__"): raise RuntimeError("asked")
                return type.__getattribute__(cls, name)
            def __instancecheck__(cls, one): raise RuntimeError("asked")
            def __subclasscheck__(cls, one): raise RuntimeError("asked")
        class Holder(metaclass=Meta): pass
        """,
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_that_fights_back_is_named_like_any_other(program, kind):
    import textwrap

    source = "import torch\n" + textwrap.dedent(OBJECTS[kind])
    source += "holder = Holder()\nobject.__setattr__(holder, 'kept', watch(torch.randn(2)))\n"
    holder = program(source).holder()
    assert (holder.path, holder.owner) == ("holder.kept", "Holder")


def test_a_dictionary_of_the_users_own_is_read_as_a_dictionary(program):
    holder = program("""
        import torch
        class Cache(dict):
            def __getitem__(self, key): raise RuntimeError("asked")
            def items(self): raise RuntimeError("asked")
            def __len__(self): raise RuntimeError("asked")
            def __iter__(self): raise RuntimeError("asked")
        cache = Cache()
        dict.__setitem__(cache, "x", watch(torch.randn(2)))
        """).holder()
    assert (holder.path, holder.container, holder.length) == ('cache["x"]', "Cache", 1)


def test_keys_are_cut_escaped_and_never_asked(program):
    run = program(r"""
        import torch
        class Key:
            def __repr__(self): raise RuntimeError("asked")
        a, b = {Key(): watch(torch.randn(2))}, {"\x1b[2J" + "y" * 500: watch(torch.randn(2))}
        """)
    first, second = run.holders()
    assert first.path == "a[…]"
    assert second.path.startswith(r'b["\x1b[2Jyyy')
    assert len(second.path) < 60


def test_a_tensor_subclass_is_not_asked_through_its_torch_function(program):
    run = program("""
        import torch
        calls = []
        class Loud(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                calls.append(func)
                raise RuntimeError("asked")
        def make():
            return torch.Tensor._make_subclass(Loud, watch(torch.randn(2)))
        kept = [make()]
        """)
    run["calls"].clear()
    assert run.holder().path == "kept[…]"
    assert run["calls"] == []


def test_a_class_with_a_property_in_place_of_dict_is_survived(program):
    run = program("""
        import torch
        class Holder:
            __slots__ = ("kept", "__dict__")
        class Odd(Holder):
            @property
            def __dict__(self): raise RuntimeError("asked")
        odd = Odd()
        odd.kept = watch(torch.randn(2))
        """)
    assert run.holder().path == "odd.kept"


def test_hooks_and_checkpoints_of_a_graph_are_not_run_by_looking(program):
    run = program("""
        import torch
        from torch.utils.checkpoint import checkpoint
        calls = []
        w = torch.ones(4, requires_grad=True)
        def block(x):
            calls.append("forward")
            return torch.exp(x * w)
        outputs = []
        def step():
            x = watch(torch.randn(4, requires_grad=True) * 2)
            outputs.append(checkpoint(block, x, use_reentrant=False).sum())
        step()
        """)
    assert run.holder().path == "outputs[…]"
    assert run["calls"] == ["forward"]


def test_modules_that_load_on_access_stay_unloaded(program):
    run = program("""
        import sys, types, torch
        class Lazy(types.ModuleType):
            def __getattr__(self, name):
                if name.startswith("__"): raise AttributeError(name)
                raise RuntimeError("asked")
        sys.modules["a_lazy_module"] = Lazy("a_lazy_module")
        kept = [watch(torch.randn(2))]
        """)
    import sys

    try:
        assert run.holder().path == "kept[…]"
    finally:
        del sys.modules["a_lazy_module"]
        gc.collect()
