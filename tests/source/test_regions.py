"""What surrounds places: compilation, gradients, autocast, profilers, tests."""

from __future__ import annotations

import pytest


def marks(name):
    return lambda module, call: getattr(module.region(call), name)


CASES = {
    "no_grad": """
        with torch.no_grad():
            here()  # yes
        with torch.set_grad_enabled(False), other():
            here()  # yes
        @smart_inference_mode()
        def validate():
            here()  # yes
        with torch.set_grad_enabled(True):
            here()
        @torch.no_grad()
        def f():
            here()  # yes
            with torch.cuda.stream(s):
                here()  # yes
        with here():
            here()
    """,
    "inference_mode": """
        with torch.inference_mode():
            here()  # yes
        with torch.inference_mode(False):
            here()
        with torch.inference_mode(mode=x):
            here()  # yes
    """,
    "autocast": """
        with torch.autocast("cuda", dtype=torch.bfloat16):
            here()  # yes
        with torch.autocast("cuda", enabled=False):
            here()
        with torch.amp.autocast("cuda", enabled=args.amp):
            here()  # yes
    """,
    "profiled": """
        with torch.profiler.profile(activities=[]) as prof:
            here()  # yes
        with prof_elsewhere:
            here()
    """,
    "scripted": """
        @torch.jit.script
        def f(x):
            here()  # yes
        def g(x):
            if torch.jit.is_scripting():
                here()  # yes
            else:
                here()
        @op.register_fake
        def h(x):
            here()  # yes
        @torch.library.custom_op("a::b", mutates_args=())
        def i(x):
            here()  # yes
    """,
    "compiled": """
        import functools
        @torch.compile
        def a(x):
            here()  # yes
            return called(x)
        def called(x):
            here()  # yes
            if torch.compiler.is_compiling():
                here()  # yes
            if not torch.compiler.is_compiling():
                here()
        @torch.compile(mode="max-autotune")
        def b(x):
            here()  # yes
        @functools.partial(torch.compile, dynamic=True)
        def c(x):
            here()  # yes
        def d(x):
            here()  # yes
        fast = torch.compile(d)
        def e(x):
            here()
        class Block(nn.Module):
            def forward(self, x):
                here()  # yes
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block()
            def forward(self, x):
                here()  # yes
                return self.inner(x)
            def inner(self, x):
                here()  # yes
            def eager(self, x):
                here()
        class Other(nn.Module):
            def forward(self, x):
                here()
                if torch.compiler.is_compiling():
                    here()  # yes
        class InPlace(nn.Module):
            def forward(self, x):
                here()  # yes
        class Method(nn.Module):
            def __init__(self):
                super().__init__()
                self.f = torch.compile(self.g)
            def g(self, x):
                here()  # yes
            def forward(self, x):
                here()
        model = torch.compile(Net())
        InPlace().compile()
    """,
    "test": """
        def test_it():
            here()  # yes
            def inner():
                here()  # yes
        def helper():
            here()
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_regions(expect_lines, name):
    expect_lines(CASES[name], "yes", marks(name))
