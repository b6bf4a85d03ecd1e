"""Modules: the same parameters by state dict, then outputs, all gradients, buffers and names, in train and in eval.

A module case is an ordinary case whose function builds the module from `make(torch.nn)` and does its own backward.
"""

from collections.abc import Callable
from typing import Any

from tests.cases.case import Case, Function, Input, distinct, generator, integers, numbers, randn, script, uniform

CASES: list[Case] = []
MODES = {"train": True, "eval": False}


def fill(torch: Any, module: Any, name: str) -> None:
    """Gives every parameter and buffer of `module` numbers that depend on its name alone."""
    state = {}
    for key, value in sorted(module.state_dict().items()):
        low, high = (0.5, 1.5) if key.endswith("running_var") else (-0.6, 0.6)
        drawn = generator(f"{name}: {key}").uniform(low, high, tuple(value.shape)).astype("float32")
        state[key] = torch.tensor(drawn) if value.is_floating_point() else value
    module.load_state_dict(state)


def through(make: Callable[[Any], Any], name: str, training: bool, call: Function | None) -> Function:
    """A case's function: build, fill, call, backward; all that can be seen of the module comes back."""

    def fn(torch: Any, *inputs: Any) -> Any:
        module = make(torch.nn)
        fill(torch, module, name)
        module.train(training)
        floating = [x.requires_grad_() for x in inputs if x.is_floating_point()]
        found = call(torch, module, *inputs) if call else module(*inputs)
        outputs = [out for out in (found if isinstance(found, tuple) else (found,)) if out is not None]
        loss = torch.zeros(())
        for number, out in enumerate(outputs):
            loss = loss + (out * numbers(torch, f"{name}: weights {number}", *out.shape)).sum()
        if loss.requires_grad:
            loss.backward()
        return {
            "outputs": outputs,
            "inputs": [x.grad for x in floating],
            "parameters": {key: parameter.grad for key, parameter in module.named_parameters()},
            "buffers": dict(module.named_buffers()),
            "shapes": {key: value.shape for key, value in module.state_dict().items()},
            "training": [child.training for child in module.modules()],
        }

    return fn


def case(name: str, make: Callable[[Any], Any], *inputs: Input, modes: tuple[str, ...] = ("train",), call=None) -> None:
    for mode in modes:
        full = f"{name}_{mode}" if len(modes) > 1 else name
        CASES.append(Case(full, through(make, name, MODES[mode], call), inputs, grad=False, tolerance="model"))


BOTH = ("train", "eval")

case("Linear", lambda nn: nn.Linear(5, 7), randn(4, 5))
case("Linear_no_bias", lambda nn: nn.Linear(5, 7, bias=False), randn(2, 3, 5))
case("Linear_vector", lambda nn: nn.Linear(5, 1), randn(5))
case("Bilinear", lambda nn: nn.Bilinear(3, 4, 5), randn(6, 3), randn(6, 4))
case("Identity", lambda nn: nn.Identity(), randn(3))
case("Embedding", lambda nn: nn.Embedding(9, 4), integers(3, 5, low=0, high=9))
case("Embedding_padding", lambda nn: nn.Embedding(9, 4, padding_idx=2), integers(3, 5, low=0, high=9))
case("Flatten", lambda nn: nn.Flatten(), randn(2, 3, 4))
case("Flatten_range", lambda nn: nn.Flatten(0, 1), randn(2, 3, 4))
case("Unflatten", lambda nn: nn.Unflatten(1, (2, 3)), randn(4, 6))

ACTIVATIONS = {
    "ReLU": {}, "GELU": {}, "Tanh": {}, "Sigmoid": {}, "LeakyReLU": {"negative_slope": 0.1}, "SiLU": {},
    "Hardswish": {},
    "PReLU": {}, "ELU": {"alpha": 0.7}, "Softplus": {"beta": 2}, "ReLU6": {}, "Mish": {}, "Softmax": {"dim": -1},
    "LogSoftmax": {"dim": 1}, "Hardtanh": {}, "SELU": {}, "LogSigmoid": {}, "Softsign": {}, "Hardsigmoid": {},
    "GLU": {},
}  # fmt: skip
for name, options in ACTIVATIONS.items():
    case(name, lambda nn, n=name, o=options: getattr(nn, n)(**o), randn(4, 6))
case("GELU_tanh", lambda nn: nn.GELU(approximate="tanh"), randn(4, 5))
case("ReLU_in_place", lambda nn: nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True)), randn(2, 3))

case("LayerNorm", lambda nn: nn.LayerNorm(65), randn(4, 65))
case("LayerNorm_two_axes", lambda nn: nn.LayerNorm((4, 5), eps=1e-3), randn(3, 4, 5))
case("LayerNorm_plain", lambda nn: nn.LayerNorm(8, elementwise_affine=False), randn(4, 8))
case("LayerNorm_no_bias", lambda nn: nn.LayerNorm(8, bias=False), randn(4, 8))
case("RMSNorm", lambda nn: nn.RMSNorm(33, eps=1e-6), randn(4, 33))
case("GroupNorm", lambda nn: nn.GroupNorm(2, 6), randn(3, 6, 4))
case("BatchNorm1d", lambda nn: nn.BatchNorm1d(5), randn(8, 5), modes=BOTH)
case("BatchNorm1d_3d", lambda nn: nn.BatchNorm1d(5, momentum=0.3), randn(4, 5, 6), modes=BOTH)
case("BatchNorm1d_average", lambda nn: nn.BatchNorm1d(5, momentum=None), randn(8, 5), modes=BOTH)
case("BatchNorm2d", lambda nn: nn.BatchNorm2d(3), randn(4, 3, 5, 6), modes=BOTH)
case("BatchNorm2d_plain", lambda nn: nn.BatchNorm2d(3, affine=False), randn(4, 3, 2, 2), modes=BOTH)
case(
    "BatchNorm2d_no_statistics", lambda nn: nn.BatchNorm2d(3, track_running_stats=False), randn(4, 3, 2, 2), modes=BOTH
)
case("InstanceNorm2d", lambda nn: nn.InstanceNorm2d(3, affine=True), randn(2, 3, 4, 5))

case("Conv1d", lambda nn: nn.Conv1d(3, 4, 3, padding=1), randn(2, 3, 9))
case("Conv1d_options", lambda nn: nn.Conv1d(4, 6, 3, stride=2, dilation=2, groups=2, bias=False), randn(2, 4, 12))
case("Conv2d", lambda nn: nn.Conv2d(3, 4, 3), randn(2, 3, 7, 8))
case("Conv2d_options", lambda nn: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), groups=2), randn(2, 4, 7, 8))
case("Conv2d_patches", lambda nn: nn.Conv2d(3, 8, kernel_size=4, stride=4), randn(2, 3, 8, 8))
case("Conv2d_same", lambda nn: nn.Conv2d(2, 3, 3, padding="same"), randn(2, 2, 5, 5))
case("ConvTranspose2d", lambda nn: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1), randn(2, 3, 4, 5))
case("MaxPool2d", lambda nn: nn.MaxPool2d(2), distinct(2, 3, 6, 8))
case("MaxPool2d_options", lambda nn: nn.MaxPool2d(3, stride=2, padding=1), distinct(2, 3, 7, 8))
case("MaxPool1d", lambda nn: nn.MaxPool1d(2), distinct(2, 3, 9))
case("AvgPool2d", lambda nn: nn.AvgPool2d(2, stride=1), randn(2, 3, 5, 6))
case("AvgPool1d", lambda nn: nn.AvgPool1d(3), randn(2, 3, 9))
case("AdaptiveAvgPool2d", lambda nn: nn.AdaptiveAvgPool2d((2, 3)), randn(2, 3, 7, 8))
case("AdaptiveAvgPool2d_one", lambda nn: nn.AdaptiveAvgPool2d(1), randn(2, 3, 7, 8))
case("ZeroPad2d", lambda nn: nn.ZeroPad2d((1, 2, 0, 1)), randn(2, 3, 4, 5))
case("ReflectionPad2d", lambda nn: nn.ReflectionPad2d(1), randn(2, 3, 4, 5))
case("PixelShuffle", lambda nn: nn.PixelShuffle(2), randn(2, 8, 3, 3))
case("Upsample", lambda nn: nn.Upsample(scale_factor=2), randn(2, 3, 4, 5))
for name in ("Dropout", "Dropout2d"):
    case(name, lambda nn, n=name: getattr(nn, n)(0.5), randn(4, 5, 2, 2), modes=("eval",))
    case(f"{name}_none", lambda nn, n=name: getattr(nn, n)(0.0), randn(4, 5, 2, 2), modes=BOTH)

LOSSES = {
    "CrossEntropyLoss": ({"label_smoothing": 0.1}, (randn(6, 5), integers(6, low=0, high=5))),
    "NLLLoss": ({}, (uniform(6, 5, low=-3, high=-0.1), integers(6, low=0, high=5))),
    "MSELoss": ({"reduction": "sum"}, (randn(4, 5), randn(4, 5))),
    "L1Loss": ({}, (randn(4, 5), randn(4, 5))),
    "SmoothL1Loss": ({}, (randn(4, 5), randn(4, 5))),
    "HuberLoss": ({"delta": 0.5}, (randn(4, 5), randn(4, 5))),
    "BCELoss": ({}, (uniform(4, low=0.1, high=0.9), uniform(4, low=0.1, high=0.9))),
    "BCEWithLogitsLoss": ({}, (randn(4), uniform(4, low=0.1, high=0.9))),
    "KLDivLoss": ({"reduction": "batchmean"}, (uniform(4, 5, low=-3, high=-0.1), uniform(4, 5, low=0.1, high=0.9))),
}
for name, (options, inputs) in LOSSES.items():
    case(name, lambda nn, n=name, o=options: getattr(nn, n)(**o), *inputs)

# Attention modules: self, cross, masked.
ATTEND = {
    "self": lambda torch, m, x: m(x, x, x),
    "no_weights": lambda torch, m, x: m(x, x, x, need_weights=False),
    "causal": lambda torch, m, x: m(x, x, x, need_weights=False, is_causal=True,
                                    attn_mask=torch.ones(6, 6, dtype=torch.bool).triu(1)),
    "added_mask": lambda torch, m, x: m(x, x, x, attn_mask=torch.zeros(6, 6).masked_fill(
        torch.ones(6, 6).triu(1) > 0, float("-inf"))),
    "each_head": lambda torch, m, x: m(x, x, x, average_attn_weights=False),
    "padding": lambda torch, m, x: m(x, x, x, key_padding_mask=torch.arange(6).expand(2, 6) > 3),
}  # fmt: skip
for name, attend in ATTEND.items():
    case(
        f"MultiheadAttention_{name}",
        lambda nn: nn.MultiheadAttention(8, 2, batch_first=True),
        randn(2, 6, 8),
        call=attend,
    )
case("MultiheadAttention_cross", lambda nn: nn.MultiheadAttention(8, 4), randn(5, 2, 8), randn(7, 2, 8),
     call=lambda torch, m, q, k: m(q, k, k))  # fmt: skip
case("MultiheadAttention_no_bias", lambda nn: nn.MultiheadAttention(8, 2, bias=False), randn(5, 2, 8),
     call=ATTEND["self"])  # fmt: skip
case("TransformerEncoderLayer", lambda nn: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
     randn(2, 5, 8))  # fmt: skip
case("MultiheadAttention_unbatched", lambda nn: nn.MultiheadAttention(8, 2), randn(5, 8), call=ATTEND["self"])


class Build:
    """Containers whose classes only exist once the library is known."""

    @staticmethod
    def block(nn: Any) -> Any:
        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.norm = nn.LayerNorm(8)
                self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.Dropout(0.1))
                self.scale = nn.Parameter(self.norm.weight.detach() * 0.5)
                self.register_buffer("shift", self.norm.bias.detach() + 0.5)
                self.register_buffer("hidden", self.norm.bias.detach() + 0.25, persistent=False)

            def forward(self, x: Any) -> Any:
                return x + self.scale * self.mlp(self.norm(x)) + self.shift + self.hidden

        return Block()

    @staticmethod
    def tied(nn: Any) -> Any:
        class Tied(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embed = nn.Embedding(11, 6)
                self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
                self.heads = nn.ModuleDict({"a": nn.Linear(6, 2), "b": nn.Linear(6, 3, bias=False)})
                self.out = nn.Linear(6, 11, bias=False)
                self.out.weight = self.embed.weight

            def forward(self, tokens: Any) -> Any:
                x = self.embed(tokens)
                for layer in self.layers:
                    x = x + layer(x).tanh()
                return self.out(x), self.heads["a"](x), self.heads["b"](x)

        return Tied()


case("Block", Build.block, randn(2, 3, 8), modes=("eval",))
case("Tied", Build.tied, integers(2, 5, low=0, high=11))
case("Sequential", lambda nn: nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 3), nn.Softmax(-1)), randn(5, 4))
case(
    "ParameterList",
    lambda nn: nn.ParameterList([nn.Linear(2, 3).weight]),
    randn(4, 2),
    call=lambda torch, m, x: x @ m[0].t(),
)
case(
    "perceptron",
    lambda nn: nn.Sequential(nn.Flatten(), nn.Linear(48, 20), nn.ReLU(), nn.Linear(20, 10)),
    randn(6, 3, 4, 4),
)
case("convolutional", lambda nn: nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 5)), randn(3, 1, 8, 8), modes=BOTH)  # fmt: skip


@script(CASES)
def module_structure(torch):
    model = Build.tied(torch.nn)
    return ([name for name, _ in model.named_parameters()], [name for name, _ in model.named_modules()],
            [name for name, _ in model.named_children()], list(model.state_dict()), len(list(model.parameters())),
            sum(p.numel() for p in model.parameters()), model.out.weight is model.embed.weight)  # fmt: skip


@script(CASES)
def module_modes(torch):
    model = Build.block(torch.nn)
    before = [m.training for m in model.modules()]
    model.eval()
    return before, [m.training for m in model.modules()], model.train().training


@script(CASES)
def module_requires_grad(torch):
    model = torch.nn.Linear(3, 2).requires_grad_(False)
    model.bias.requires_grad = True
    out = model(torch.ones(1, 3)).sum()
    out.backward()
    return model.weight.grad is None, model.bias.grad, model.weight.requires_grad


@script(CASES)
def module_zero_grad(torch):
    model = torch.nn.Linear(3, 2)
    model(torch.ones(1, 3)).sum().backward()
    model.zero_grad()
    none = model.weight.grad is None
    model(torch.ones(1, 3)).sum().backward()
    model.zero_grad(set_to_none=False)
    return none, model.weight.grad


@script(CASES)
def module_hooks(torch):
    seen = []
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    first = model[0].register_forward_hook(lambda module, args, out: seen.append(tuple(out.shape)))
    model[1].register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    one = model(torch.ones(4, 3))
    first.remove()
    model(torch.ones(4, 3))
    return seen, one


@script(CASES)
def module_casts(torch):
    model = torch.nn.Linear(3, 2).to(torch.float16)
    half = [p.dtype for p in model.parameters()]
    return half, model.float().weight.dtype, model.weight.is_leaf, model.weight.requires_grad


@script(CASES)
def module_apply_and_buffers(torch):
    model = torch.nn.BatchNorm1d(3)
    model.apply(lambda m: torch.nn.init.ones_(m.bias))
    return model.bias, [name for name, _ in model.named_buffers()], dict(model.named_buffers())["running_var"]


@script(CASES)
def load_state_dict_reports(torch):
    model = torch.nn.Linear(3, 2)
    result = model.load_state_dict({"weight": torch.ones(2, 3), "other": torch.ones(1)}, strict=False)
    return result.missing_keys, result.unexpected_keys, model.weight


@script(CASES)
def initialisers(torch):
    init, a = torch.nn.init, torch.empty(40, 50)
    torch.manual_seed(0)
    near = lambda value, expected: abs(value - expected) < 0.1 * expected + 1e-3  # noqa: E731
    return (
        near(init.kaiming_uniform_(a, a=5**0.5).std().item(), (1 / 150) ** 0.5),
        near(init.kaiming_normal_(a).std().item(), (2 / 50) ** 0.5),
        near(init.xavier_uniform_(a).std().item(), (2 / 90) ** 0.5),
        near(init.xavier_normal_(a).std().item(), (2 / 90) ** 0.5),
        near(init.normal_(a, std=0.02).std().item(), 0.02),
        init.trunc_normal_(a, std=0.5, a=-1, b=1).abs().amax().item() <= 1,
        init.constant_(a, 3.0)[0, 0], init.zeros_(a).sum(), init.ones_(a).sum(), init.eye_(a)[3, :5],
        init.calculate_gain("relu"), init.calculate_gain("leaky_relu", 0.2),
        (init.orthogonal_(torch.empty(4, 4)) @ torch.eye(4)).square().sum(),
    )  # fmt: skip


@script(CASES)
def clip_gradients(torch):
    a, b = torch.arange(4.0, requires_grad=True), torch.ones(2, requires_grad=True)
    (a * a).sum().backward()
    (3 * b).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_([a, b], max_norm=1.0)
    clipped = a.grad.clone()
    torch.nn.utils.clip_grad_value_([a, b], 0.1)
    return norm, clipped, a.grad, b.grad


@script(CASES)
def parameters_as_vector(torch):
    model = torch.nn.Linear(3, 2)
    vector = torch.nn.utils.parameters_to_vector(model.parameters())
    torch.nn.utils.vector_to_parameters(torch.arange(8.0), model.parameters())
    return vector.shape, model.weight, model.bias
