import snntorch as snn
import torch
from seeding import fill
from snntorch import functional, surrogate

print("imported")

layer, spikes = fill(torch.nn.Linear(4, 3)), snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid())
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x, target = torch.sin(torch.arange(40.0)).view(5, 2, 4), torch.tensor([0, 2])
for _ in range(3):
    state, out = spikes.init_leaky(), []
    for step in range(5):
        spike, state = spikes(layer(x[step]), state)
        out.append(spike)
    loss = functional.ce_rate_loss()(torch.stack(out), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f} {layer.weight.grad.abs().sum().item():.5f}")
