"""Node classification on a fixed citation graph, served for changing node features."""

import torch
from torch import Tensor, nn

import pyrometer as pm

NODES = 900


def citations() -> Tensor:
    """A (2, edges) list of who cites whom."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(NODES, (2, 4 * NODES), generator=generator)


def propagation(edges: Tensor) -> Tensor:
    """The symmetrically normalised adjacency with self-loops."""
    adjacency = torch.eye(NODES)
    adjacency[edges[0], edges[1]] = 1
    adjacency = torch.maximum(adjacency, adjacency.T)
    inverse_root = torch.diag(adjacency.sum(1).rsqrt())
    return inverse_root @ adjacency @ inverse_root


class GraphLayer(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Linear(inputs, outputs)

    def forward(self, features: Tensor, operator: Tensor) -> Tensor:
        return operator @ self.weight(features)


class Classifier(nn.Module):
    def __init__(self, edges: Tensor) -> None:
        super().__init__()
        self.register_buffer("edges", edges)
        self.layers = nn.ModuleList([GraphLayer(64, 96), GraphLayer(96, 96), GraphLayer(96, 7)])

    def operator(self) -> Tensor:
        return propagation(self.edges)

    def forward(self, features: Tensor) -> Tensor:
        operator = self.operator()
        for layer in self.layers[:-1]:
            features = torch.relu(layer(features, operator))
        return self.layers[-1](features, operator).log_softmax(-1)


class FixedGraphClassifier(Classifier):
    def __init__(self, edges: Tensor) -> None:
        super().__init__(edges)
        self.register_buffer("matrix", propagation(edges), persistent=False)

    def operator(self) -> Tensor:
        return self.matrix


def service(classifier: type[Classifier]) -> pm.Inference:
    torch.manual_seed(0)
    model = classifier(citations())
    return pm.Inference(model, lambda: torch.randn(NODES, 64), unit="nodes")


def slow() -> pm.Inference:
    return service(Classifier)


def fast() -> pm.Inference:
    return service(FixedGraphClassifier)
