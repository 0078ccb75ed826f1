import torch

torch.manual_seed(0)
model = torch.nn.Linear(6, 1)
x, y = torch.randn(50, 6), torch.randn(50, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)


def closure():
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(6):
    print(f"{optimizer.step(closure).item():.6f}")
