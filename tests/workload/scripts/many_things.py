"""Saving, copying, tracing, scripting and pickling of modules."""
import copy
import io
import pickle
import sys
import threading

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
x = torch.ones(1, 4)
print(model(x))
print(len(pickle.dumps(model)), vars(model).keys(), torch.nn.Module.__call__.__qualname__)
print(copy.deepcopy(model)(x))
print(torch.jit.script(model)(x), torch.jit.trace(model, x)(x))
print(torch.fx.symbolic_trace(model).code)
print(torch.export.export(model, (x,)).graph_module.code)
print(torch.func.vmap(model)(torch.ones(3, 4)))
print(torch.func.grad(lambda v: model(v).sum())(x))
results = []
threads = [threading.Thread(target=lambda: results.append(model(x))) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(results)
checkpointed = torch.utils.checkpoint.checkpoint(model, x.requires_grad_(), use_reentrant=False)
checkpointed.sum().backward()
print(x.grad)
