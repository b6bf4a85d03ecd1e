"""Gradients of gradients: what `create_graph` leaves can be differentiated again."""

from tests.cases.autograd import leaf
from tests.cases.case import Case, numbers, script

CASES: list[Case] = []

FUNCTIONS = {
    "cube": lambda torch, x: x**3,
    "sin_exp": lambda torch, x: x.sin() * x.exp(),
    "tanh": lambda torch, x: x.tanh(),
    "softmax": lambda torch, x: x.softmax(-1) * torch.tensor([1.0, -2.0, 3.0]),
    "matmul": lambda torch, x: (x @ x.t()).tanh(),
    "layer_norm": lambda torch, x: torch.nn.functional.layer_norm(x, (3,)) ** 2,
    "logsumexp": lambda torch, x: x.logsumexp(-1),
    "gelu": lambda torch, x: torch.nn.functional.gelu(x),
    "silu": lambda torch, x: torch.nn.functional.silu(x),
    "division": lambda torch, x: 1 / (x * x + 1),
    "norm": lambda torch, x: x.norm(),
    "prod": lambda torch, x: x.prod(-1),
    "cumsum": lambda torch, x: x.cumsum(-1) ** 2,
    "var": lambda torch, x: x.var(-1),
    "gather": lambda torch, x: x.gather(1, torch.tensor([[0, 2], [1, 1]])) ** 2,
    "index": lambda torch, x: x[:, [0, 0, 2]] ** 3,
    "cross_entropy": lambda torch, x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 2])),
    "mse": lambda torch, x: torch.nn.functional.mse_loss(x, x.detach() * 2),
    "where": lambda torch, x: torch.where(x > 0, x**3, x**2),
    "cat": lambda torch, x: torch.cat([x, x * x]) ** 2,
    "attention": lambda torch, x: torch.nn.functional.scaled_dot_product_attention(x, x, x),
    "conv": lambda torch, x: torch.nn.functional.conv1d(x[:, None], x[:, None, :2]) ** 2,
    "max": lambda torch, x: x.amax(-1) ** 2,
    "view_write": lambda torch, x: write_first_column(x * x),
}


def write_first_column(x):
    x[:, 0] = x[:, 1] * 2
    return x * x


for name, function in FUNCTIONS.items():

    def second(torch, name=name, function=function):
        x = numbers(torch, name, 2, 3).requires_grad_()
        y = function(torch, x)
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (again,) = torch.autograd.grad((first * first).sum(), x, allow_unused=True)
        return y, first, again

    CASES.append(Case(f"second_{name}", second, grad=False, tolerance="model"))


@script(CASES)
def third_derivative(torch):
    x = leaf(torch, 0.7, -0.4)
    seen, y = [], (x**4).sum()
    for _ in range(3):
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        seen.append(g)
        y = g.sum()
    return seen


@script(CASES)
def backward_creates_graph(torch):
    x = leaf(torch, 2.0)
    (x**3).sum().backward(create_graph=True)
    g = x.grad.clone()
    x.grad = None
    g.sum().backward()
    return g, x.grad


@script(CASES, tolerance="model")
def gradient_penalty(torch):
    w, x = numbers(torch, "w", 3, 3).requires_grad_(), numbers(torch, "x", 4, 3).requires_grad_()
    out = (x @ w).tanh().sum(1)
    (g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    ((g.norm(dim=1) - 1) ** 2).mean().backward()
    return w.grad, x.grad
