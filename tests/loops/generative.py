"""Networks that make data: autoencoders, adversarial ones, diffusion, flows."""

from typing import Any

from tests.loops.start import Loop, Step, fill, floats


def autoencoder(torch: Any) -> Step:
    nn = torch.nn
    encoder = [nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU()]
    model = fill(torch, nn.Sequential(*encoder, nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 784), nn.Sigmoid()))
    optimizer, x = torch.optim.Adam(model.parameters(), lr=1e-3), torch.sigmoid(floats(torch, 64, 1, 28, 28))

    def step() -> float:
        images = x.reshape(-1, 784)
        loss = nn.functional.mse_loss(model(images), images)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def convolutional_autoencoder(torch: Any) -> Step:
    nn = torch.nn
    encoder = [
        nn.Conv2d(1, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
    ]
    one = nn.ConvTranspose2d(32, 16, 3, stride=2, padding=1, output_padding=1)
    two = nn.ConvTranspose2d(16, 1, 3, stride=2, padding=1, output_padding=1)
    model = fill(torch, nn.Sequential(*encoder, one, nn.ReLU(), two, nn.Sigmoid()))
    optimizer, x = torch.optim.Adam(model.parameters(), lr=1e-3), torch.sigmoid(floats(torch, 16, 1, 28, 28))

    def step() -> float:
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def vae(torch: Any) -> Step:
    nn = torch.nn

    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc21, self.fc22 = nn.Linear(784, 200), nn.Linear(200, 20), nn.Linear(200, 20)
            self.fc3, self.fc4 = nn.Linear(20, 200), nn.Linear(200, 784)

        def forward(self, x: Any) -> tuple[Any, Any, Any]:
            h = torch.relu(self.fc1(x.view(-1, 784)))
            mu, logvar = self.fc21(h), self.fc22(h)
            z = mu + torch.randn_like(logvar) * torch.exp(0.5 * logvar)
            return torch.sigmoid(self.fc4(torch.relu(self.fc3(z)))), mu, logvar

    model, x = fill(torch, VAE()), torch.sigmoid(floats(torch, 64, 1, 28, 28))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        bce = nn.functional.binary_cross_entropy(recon, x.view(-1, 784), reduction="sum")
        loss = bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss.backward()
        optimizer.step()
        return float(loss.item()) / len(x)

    return step


def _adversarial(torch: Any, generator: Any, discriminator: Any, real: Any, noise: tuple[int, ...]) -> Step:
    fill(torch, generator), fill(torch, discriminator, seed=1)
    first = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    second = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = torch.nn.BCELoss()

    def step() -> float:
        discriminator.zero_grad()
        label = torch.full((real.size(0),), 1.0)
        loss_real = criterion(discriminator(real).view(-1), label)
        loss_real.backward()
        fake = generator(torch.randn(*noise))
        label.fill_(0.0)
        loss_fake = criterion(discriminator(fake.detach()).view(-1), label)
        loss_fake.backward()
        first.step()
        generator.zero_grad()
        label.fill_(1.0)
        loss = criterion(discriminator(fake).view(-1), label)
        loss.backward()
        second.step()
        return float((loss_real + loss_fake).item()) + float(loss.item())

    return step


def dcgan(torch: Any) -> Step:
    nn = torch.nn
    leaky = nn.LeakyReLU(0.2, inplace=True)
    generator = nn.Sequential(
        nn.ConvTranspose2d(32, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
        nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
        nn.ConvTranspose2d(16, 1, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    discriminator = nn.Sequential(
        nn.Conv2d(1, 16, 4, 2, 1, bias=False), leaky, nn.Conv2d(16, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), leaky,
        nn.Conv2d(32, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
    )  # fmt: skip
    return _adversarial(torch, generator, discriminator, torch.tanh(floats(torch, 16, 1, 16, 16)), (16, 32, 1, 1))


def gan(torch: Any) -> Step:
    nn = torch.nn
    generator = nn.Sequential(nn.Linear(32, 128), nn.LeakyReLU(0.2), nn.Linear(128, 784), nn.Tanh())
    discriminator = nn.Sequential(nn.Linear(784, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1), nn.Sigmoid())
    return _adversarial(torch, generator, discriminator, torch.tanh(floats(torch, 64, 784)), (64, 32))


def diffusion(torch: Any) -> Step:
    """Noise on points of the plane, told by a small network."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(3, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
    optimizer = torch.optim.AdamW(fill(torch, model).parameters(), lr=1e-3)
    data, products = floats(torch, 512, 2), torch.cumprod(1.0 - torch.linspace(1e-4, 0.02, 100), dim=0)

    def step() -> float:
        x0, t = data[torch.randint(0, 512, (128,))], torch.randint(0, 100, (128,))
        noise, alpha = torch.randn_like(x0), products[t].unsqueeze(1)
        xt = alpha.sqrt() * x0 + (1 - alpha).sqrt() * noise
        loss = nn.functional.mse_loss(model(torch.cat([xt, t.unsqueeze(1).float() / 100], dim=1)), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def normalizing_flow(torch: Any) -> Step:
    """Four affine couplings over points of the plane."""
    nn = torch.nn

    def net() -> Any:
        return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))

    nets = fill(torch, nn.ModuleList([net() for _ in range(4)]))
    optimizer, x = torch.optim.Adam(nets.parameters(), lr=1e-3), floats(torch, 128, 2)

    def step() -> float:
        z, log_det = x, torch.zeros(x.shape[0])
        for at, part in enumerate(nets):
            kept, moved = (z[:, :1], z[:, 1:]) if at % 2 == 0 else (z[:, 1:], z[:, :1])
            s, t = part(kept).chunk(2, dim=1)
            s = torch.tanh(s)
            moved = moved * torch.exp(s) + t
            z = torch.cat([kept, moved], dim=1) if at % 2 == 0 else torch.cat([moved, kept], dim=1)
            log_det = log_det + s.sum(dim=1)
        prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
        loss = -(prior.log_prob(z).sum(dim=1) + log_det).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


LOOPS = (
    Loop(autoencoder),
    Loop(convolutional_autoencoder),
    Loop(vae, draws=True),
    Loop(dcgan, draws=True),
    Loop(gan, draws=True),
    Loop(diffusion, draws=True),
    Loop(normalizing_flow),
)
