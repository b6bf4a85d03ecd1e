"""A variational autoencoder, with torch.distributions' divergence; the noise is given."""

import os

import torch
import torch.nn.functional as F
from seeding import fill, normal
from torch import nn, optim
from torch.distributions import Normal, kl_divergence
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 8)
        self.fc22 = nn.Linear(40, 8)
        self.fc3 = nn.Linear(8, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5 * logvar)
        return mu + eps.to(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, eps):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar, eps)), mu, logvar


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(1)
model = VAE().to(device)
fill(model, scale=0.2)
optimizer = optim.Adam(model.parameters(), lr=1e-2)
images = (normal(64, 1, 8, 8) > 0).float()
loader = DataLoader(TensorDataset(images), batch_size=16, shuffle=False)
for epoch in range(1, int(os.environ.get("STEPS", 4)) + 1):
    model.train()
    train_loss = 0
    for batch_idx, (data,) in enumerate(loader):
        data = data.to(device)
        optimizer.zero_grad()
        recon, mu, logvar = model(data, normal(16, 8, seed=batch_idx))
        bce = F.binary_cross_entropy(recon, data.view(-1, 64), reduction="sum")
        q = Normal(mu, torch.exp(0.5 * logvar))
        kld = kl_divergence(q, Normal(torch.zeros_like(mu), torch.ones_like(mu))).sum()
        loss = bce + kld
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(loader.dataset)))
with torch.no_grad():
    sample = model.decode(normal(4, 8).to(device)).cpu()
    print("sample", tuple(sample.view(4, 1, 8, 8).shape), "%.4f" % sample.mean())
