"""A tiny GAN: the discriminator steps twice, the generator once, and a picture is drawn now and then."""
import torch
from torch import nn

torch.manual_seed(0)
generator, critic = nn.Linear(4, 8), nn.Linear(8, 1)
generator_optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for step in range(12):
    for _ in range(2):
        critic_optimizer.zero_grad()
        with torch.no_grad():
            fake = generator(torch.randn(5, 4))
        (critic(fake).mean() - critic(torch.randn(5, 8)).mean()).backward()
        critic_optimizer.step()
    generator_optimizer.zero_grad()
    loss = -critic(generator(torch.randn(5, 4))).mean()
    loss.backward()
    generator_optimizer.step()
    print(step, f"{loss.item():.5f}")
