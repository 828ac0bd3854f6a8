"""PyTorch with torch.compile (Inductor), inputs and outputs in place. The floor is a compiled function of the
same arguments that adds up their first elements."""
import numpy as np
import torch

from bench.suite import cases
from bench.suite.worker import Prepared


class functions:
    abs, exp, tanh, sigmoid, relu, rsqrt = (torch.abs, torch.exp, torch.tanh, torch.sigmoid, torch.relu,
                                            torch.rsqrt)

    @staticmethod
    def minimum(x, y):
        return torch.clamp_max(x, y) if isinstance(y, float) else torch.minimum(x, y)

    @staticmethod
    def maximum(x, y):
        return torch.clamp_min(x, y) if isinstance(y, float) else torch.maximum(x, y)

    @staticmethod
    def mean(x, axis):
        return torch.mean(x, axis, keepdim=True)

    @staticmethod
    def sum(x, axis):
        return torch.sum(x, axis, keepdim=True)

    @staticmethod
    def max(x, axis):
        return torch.amax(x, axis, keepdim=True)

    @staticmethod
    def cast(x, dtype):
        return x.to(getattr(torch, dtype))


def prepare(name, options):
    torch.set_num_threads(options["threads"])
    case = cases.BY_NAME[name]
    inputs = cases.seeded_inputs(case)
    tensors = [torch.from_numpy(np.array(x)) for x in inputs]
    compiled = torch.compile(lambda *arguments: case.formula(functions, *arguments), dynamic=False)
    # a function of its own, for what torch compiles is kept at the function's code
    trivial = torch.compile(lambda *arguments: cases.first_elements(*arguments), dynamic=False)
    with torch.no_grad():
        cases.check(case, compiled(*tensors).numpy(), inputs)
        trivial(*tensors)

    def call():
        with torch.no_grad():
            compiled(*tensors)

    def floor():
        with torch.no_grad():
            trivial(*tensors)
    return Prepared(call, floor)
