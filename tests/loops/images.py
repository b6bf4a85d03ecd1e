"""Networks over images, small ones, with data that NumPy draws."""

from typing import Any

from tests.loops.start import Loop, Step, fill, floats, integers


def _classifier(torch: Any, model: Any, x: Any, optimizer: Any = None) -> Step:
    optimizer = optimizer or torch.optim.SGD(fill(torch, model).parameters(), lr=0.01, momentum=0.9)
    criterion, y, at = torch.nn.CrossEntropyLoss(), integers(torch, 10, x.shape[0] // 4, seed=11), [0]

    def step() -> float:
        n = x.shape[0] // 4
        at[0] = (at[0] + 1) % 4
        inputs = x[at[0] * n : (at[0] + 1) * n]
        optimizer.zero_grad()
        loss = criterion(model(inputs), y)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def mnist_mlp(torch: Any) -> Step:
    nn = torch.nn
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    return _classifier(torch, model, floats(torch, 256, 1, 28, 28))


def mnist_cnn(torch: Any) -> Step:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, 1), nn.Conv2d(16, 32, 3, 1)
            self.fc1, self.fc2 = nn.Linear(4608, 64), nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
            x = torch.flatten(nn.functional.max_pool2d(x, 2), 1)
            return self.fc2(torch.relu(self.fc1(x)))

    model = fill(torch, Net())
    return _classifier(torch, model, floats(torch, 64, 1, 28, 28), torch.optim.Adadelta(model.parameters(), lr=1.0))


def lenet(torch: Any) -> Step:
    """The first convolutional network of a tutorial, in batches of four."""
    nn = torch.nn
    layers = [nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2, 2)]
    head = [nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return _classifier(torch, nn.Sequential(*layers, *head), floats(torch, 16, 3, 32, 32))


def resnet(torch: Any) -> Step:
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn1, self.bn2, self.skip = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs), nn.Sequential()
            if stride != 1 or inputs != outputs:
                self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x: Any) -> Any:
            out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
            out += self.skip(x)
            return torch.relu(out)

    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    blocks = [Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)]
    model = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return _classifier(torch, model, floats(torch, 32, 3, 32, 32))


def mobilenet(torch: Any) -> Step:
    """Inverted residuals with depthwise convolutions."""
    nn = torch.nn

    class Inverted(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int, expand: int) -> None:
            super().__init__()
            hidden = inputs * expand
            self.adds = stride == 1 and inputs == outputs
            self.conv = nn.Sequential(
                nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True),
                nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden),
                nn.ReLU6(inplace=True), nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return x + self.conv(x) if self.adds else self.conv(x)

    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6()]
    blocks = [Inverted(16, 16, 1, 2), Inverted(16, 24, 2, 6), Inverted(24, 24, 1, 6), Inverted(24, 32, 2, 6)]
    model = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    return _classifier(torch, model, floats(torch, 32, 3, 32, 32))


def vit(torch: Any) -> Step:
    nn = torch.nn

    class ViT(nn.Module):
        def __init__(self, width: int = 64) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, width, 8, 8)
            self.token = nn.Parameter(torch.zeros(1, 1, width))
            self.positions = nn.Parameter(torch.zeros(1, 17, width))
            layer = nn.TransformerEncoderLayer(width, 4, 128, 0.0, "gelu", batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.positions
            return self.head(self.encoder(x)[:, 0])

    model = fill(torch, ViT())
    return _classifier(torch, model, floats(torch, 64, 3, 32, 32), torch.optim.AdamW(model.parameters(), lr=1e-3))


def mixer(torch: Any) -> Step:
    nn = torch.nn

    class Mixer(nn.Module):
        def __init__(self, tokens: int = 16, width: int = 64) -> None:
            super().__init__()
            self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
            self.tokens = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
            self.channels = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))

        def forward(self, x: Any) -> Any:
            x = x + self.tokens(self.one(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.two(x))

    class Mean(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.mean(dim=1)

    model = fill(torch, nn.Sequential(Mixer(), Mixer(), Mean(), nn.Linear(64, 10)))
    return _classifier(torch, model, floats(torch, 64, 16, 64), torch.optim.Adam(model.parameters(), lr=1e-3))


def unet(torch: Any) -> Step:
    nn = torch.nn

    def double(inputs: int, outputs: int) -> Any:
        def conv(n: int) -> list[Any]:
            return [nn.Conv2d(n, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]

        return nn.Sequential(*conv(inputs), *conv(outputs))

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.three = double(1, 8), double(8, 16), double(16, 32)
            self.up1, self.up2 = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.ConvTranspose2d(16, 8, 2, stride=2)
            self.four, self.five, self.out = double(32, 16), double(16, 8), nn.Conv2d(8, 1, 1)
            self.pool = nn.MaxPool2d(2)

        def forward(self, x: Any) -> Any:
            a = self.one(x)
            b = self.two(self.pool(a))
            x = self.four(torch.cat([b, self.up1(self.three(self.pool(b)))], dim=1))
            return self.out(self.five(torch.cat([a, self.up2(x)], dim=1)))

    model, x = fill(torch, UNet()), floats(torch, 4, 1, 32, 32)
    optimizer, y = torch.optim.Adam(model.parameters(), lr=1e-3), (floats(torch, 4, 1, 32, 32, seed=5) > 0).float()

    def step() -> float:
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def siamese(torch: Any) -> Step:
    nn = torch.nn
    conv = [nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 5), nn.ReLU(), nn.MaxPool2d(2)]
    model = fill(torch, nn.Sequential(*conv, nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 16)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    one, two = floats(torch, 16, 1, 28, 28), floats(torch, 16, 1, 28, 28, seed=6)
    label = integers(torch, 2, 16).float()

    def step() -> float:
        optimizer.zero_grad()
        distance = nn.functional.pairwise_distance(model(one), model(two))
        near, far = (1 - label) * distance.pow(2), label * torch.clamp(2.0 - distance, min=0.0).pow(2)
        loss = torch.mean(near + far)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


LOOPS = tuple(map(Loop, (mnist_mlp, mnist_cnn, lenet, resnet, mobilenet, vit, mixer, unet, siamese)))
