import geoopt
import torch

print("imported")

ball = geoopt.PoincareBall(c=1.0)
points = geoopt.ManifoldParameter(torch.tensor([[0.1, 0.2], [0.3, -0.1]]), manifold=ball)
target = torch.tensor([[0.4, 0.1], [0.0, 0.2]])
optimizer = geoopt.optim.RiemannianAdam([points], lr=0.05)
for _ in range(4):
    optimizer.zero_grad()
    loss = ball.dist(points, target).square().sum()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
frame = geoopt.ManifoldParameter(
    torch.linalg.qr(torch.tensor([[1.0, 2], [3, 4], [5, 7]]))[0], manifold=geoopt.Stiefel()
)
optimizer = geoopt.optim.RiemannianSGD([frame], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = (frame**3).sum()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f}")
