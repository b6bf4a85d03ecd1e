"""torch.func and forward-mode gradients give what PyTorch's give, and are as connected to the rest of the graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pywebgpu

Function = Callable[..., Any]
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch warns of its own parts when these are first used.


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).randn(*shape).astype("float32")


A, B, V = draw(4, 3), draw(4, 3, seed=1), draw(3, seed=2)
ROWS = np.array([[0, 1], [2, 2], [1, 0], [0, 0]])


def network(t: Any) -> Any:
    net = t.nn.Sequential(t.nn.Linear(3, 5), t.nn.LayerNorm(5), t.nn.GELU(), t.nn.Linear(5, 2))
    with t.no_grad():
        for seed, p in enumerate(net.parameters()):
            p.copy_(t.from_numpy(draw(*p.shape, seed=seed)))
    return net


def sample_gradients(t: Any, x: Any, y: Any) -> Any:
    net = network(t)
    weights = {name: p.detach() for name, p in net.named_parameters()}

    def loss(weights: Any, x: Any, y: Any) -> Any:
        out = t.func.functional_call(net, weights, (x.unsqueeze(0),))
        return t.nn.functional.cross_entropy(out, y.unsqueeze(0))

    return t.func.vmap(t.func.grad(loss), in_dims=(None, 0, 0))(weights, x, y)


def ensemble(t: Any, x: Any) -> Any:
    nets = [network(t), network(t)]
    weights, buffers = t.func.stack_module_state(nets)
    call = lambda w, b, x: t.func.functional_call(nets[0], (w, b), (x,))  # noqa: E731
    return t.func.vmap(call, in_dims=(0, 0, None))(weights, buffers, x)


def convolution(t: Any, x: Any) -> Any:
    w = t.full((2, 3, 3, 3), 0.1)
    pooled = lambda a: t.nn.functional.max_pool2d(t.nn.functional.conv2d(a, w).relu(), 2).pow(2).sum()  # noqa: E731
    return t.func.vmap(t.func.grad(pooled))(x)


def through_pooling(t: Any, x: Any) -> Any:
    """The gradient, to what samples have in common, of gradients of samples."""
    p = t.ones(1, 4).requires_grad_()
    first = t.func.grad(lambda p, x: (t.nn.functional.max_pool1d(p * x, 2) ** 3).sum())
    squares = t.vmap(lambda x: first(p, x[None]).pow(2).sum())(x)
    return t.autograd.grad(squares.sum(), p)


def unrecorded(t: Any, x: Any) -> Any:
    x = x.clone().requires_grad_()
    with t.no_grad():
        return t.func.grad(lambda a: (a * x).sum())(x), t.func.vjp(lambda a: a * x, x)[1](x)


def through_another(t: Any, q: Any) -> Any:
    q = q.clone().requires_grad_()
    gradient = t.func.grad(lambda x: (x * q).sin().sum())(t.ones(3))
    gradient.sum().backward()
    return gradient, q.grad


def dual(t: Any, x: Any, v: Any) -> Any:
    ad = t.autograd.forward_ad
    with ad.dual_level():
        y = ad.make_dual(x, v)
        z = (y.sin() * y).sum(0)
        return ad.unpack_dual(z), ad.unpack_dual(y)


def own_gradient(t: Any, x: Any) -> Any:
    class Double(t.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 5

    return t.func.grad(lambda x: Double.apply(x).sum())(x)


CASES: dict[str, tuple[Function, tuple[np.ndarray, ...]]] = {
    "vmap": (lambda t, a, b: t.vmap(t.dot)(a, b), (A, B)),
    "vmap_common": (lambda t, a, b: t.func.vmap(t.dot, in_dims=(0, None))(a, b), (A, V)),
    "vmap_of_vmap": (lambda t, a: t.vmap(t.vmap(t.mul, in_dims=(0, None)), in_dims=(None, 0))(a, a), (A,)),
    "vmap_axes": (lambda t, a: t.vmap(lambda x: (x, x.sum()), in_dims=1, out_dims=(1, 0))(a), (A,)),
    "vmap_nested": (lambda t, a: t.vmap(lambda d: {"y": d["x"][0] + d["x"][1]})({"x": (a, a)}), (A,)),
    "vmap_chunks": (lambda t, a: t.vmap(t.sum, chunk_size=3)(a), (A,)),
    "vmap_constant": (lambda t, a: t.vmap(lambda x: t.ones(2))(a), (A,)),
    "vmap_keywords": (lambda t, a: t.vmap(lambda x, y=None: x * y)(a, y=a), (A,)),
    "vmap_of_one_in_a_tuple": (lambda t, a: t.vmap(lambda x: x.outer(x), out_dims=(2,))(a), (A,)),
    "vmap_result_in_common": (
        lambda t, a: t.vmap(lambda x: (x, t.ones(2)), out_dims=(0, None))(a), (A,)),
    "hessian_of_eigenvalues": (
        lambda t, a: t.func.hessian(lambda x: t.linalg.eigvalsh(x.T @ x).pow(2).sum())(a), (A,)),
    "vmap_inverse": (lambda t, a: t.vmap(t.linalg.inv)(a), (draw(4, 3, 3),)),
    "vmap_rows": (lambda t, a, i: t.vmap(lambda x, j: x[j])(a, i), (A, ROWS)),
    "vmap_common_rows": (lambda t, a, i: t.vmap(lambda x, j: x[j], in_dims=(None, 0))(a, i), (A, ROWS)),
    "vmap_write": (lambda t, a: t.vmap(lambda x: t.zeros_like(x).add_(x))(a), (A,)),
    "vmap_row_gradients": (
        lambda t, a, i: t.vmap(t.func.grad(lambda x, j: x[j].pow(2).sum()))(a, i), (A, ROWS)),
    "vmap_attention": (
        lambda t, q: t.vmap(lambda q: t.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True))(q),
        (draw(2, 2, 5, 4),)),
    "sample_gradients": (sample_gradients, (A, np.array([0, 1, 1, 0]))),
    "ensemble": (ensemble, (A,)),
    "convolution": (convolution, (draw(4, 3, 8, 8),)),
    "grad": (lambda t, a: t.func.grad(lambda x: x.sin().sum())(a), (A,)),
    "grad_of_grad": (lambda t, a: t.func.grad(t.func.grad(lambda x: x.sin()))(a.sum()), (A,)),
    "grad_argnums": (lambda t, a, b: t.func.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(a, b), (A, B)),
    "grad_aux": (lambda t, a: t.func.grad(lambda x: ((x**2).sum(), x * 2), has_aux=True)(a), (A,)),
    "grad_and_value": (lambda t, a: t.func.grad_and_value(lambda x: ((x**2).sum(), x), has_aux=True)(a), (A,)),
    "grad_through_pooling": (through_pooling, (draw(3, 4),)),
    "grad_without_history": (unrecorded, (V,)),
    "grad_through_another": (through_another, (V,)),
    "grad_of_function": (own_gradient, (A,)),
    "vjp": (lambda t, a, b: t.func.vjp(lambda x: x.sin(), a)[1](b), (A, B)),
    "jvp": (lambda t, a, b: t.func.jvp(lambda x: (x.sin(), x.cumsum(0)), (a,), (b,)), (A, B)),
    "jvp_of_grad": (lambda t, a, b: t.func.jvp(t.func.grad(lambda x: x.sin().sum()), (a,), (b,)), (A, B)),
    "linearize": (lambda t, a, b: t.func.linearize(lambda x: x.sin(), a)[1](b), (A, B)),
    "jacrev": (lambda t, a: t.func.jacrev(lambda d: {"y": d["x"] * d["x"].sum()})({"x": a}), (V,)),
    "jacfwd": (lambda t, a: t.func.jacfwd(lambda x, y: (x * y, x.sum()), argnums=(0, 1))(a, a * 2), (V,)),
    "hessian": (lambda t, a: t.func.hessian(lambda x: t.nn.functional.softmax(x, -1).pow(2).sum())(a), (A,)),
    "batched_jacobian": (lambda t, a: t.vmap(t.func.jacrev(lambda x: x.softmax(0)))(a), (A,)),
    "dual": (dual, (A, B)),
    "grads_batched": (
        lambda t, a: (lambda x: t.autograd.grad(x.sin(), x, t.ones(2, 3), is_grads_batched=True))(
            a.requires_grad_()), (V,)),
}  # fmt: skip


def flat(result: Any) -> list[Any]:
    if isinstance(result, dict):
        result = list(result.values())
    return [leaf for item in result for leaf in flat(item)] if isinstance(result, list | tuple) else [result]


@pytest.mark.parametrize("name", CASES)
def test_functions_of_functions_match_torch(name: str, device: str, default_device: None) -> None:
    function, arrays = CASES[name]
    found = flat(function(pywebgpu, *[pywebgpu.from_numpy(array) for array in arrays]))
    wanted = flat(function(torch, *[torch.from_numpy(array) for array in arrays]))
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.requires_grad == theirs.requires_grad
        expected = theirs.detach().numpy()
        np.testing.assert_allclose(ours.detach().cpu().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_draws_of_samples_are_as_asked() -> None:
    x = pywebgpu.zeros(100, 3, device="cpu")

    def noisy(row: Any) -> Any:
        return row + pywebgpu.randn(3, device="cpu")

    same = pywebgpu.vmap(noisy, randomness="same")(x)
    different = pywebgpu.vmap(noisy, randomness="different")(x)
    assert (same == same[0]).all()
    assert 0.5 < different.std().item() < 1.5
    assert len(set(different[:, 0].tolist())) == 100
    with pytest.raises(RuntimeError, match="randomness error mode"):
        pywebgpu.vmap(noisy)(x)


def test_draws_of_a_generator_of_its_own_are_as_asked() -> None:
    own = pywebgpu.Generator(device="cpu").manual_seed(3)
    noisy = lambda row: row + pywebgpu.randn(3, device="cpu", generator=own)  # noqa: E731
    draws = pywebgpu.vmap(noisy, randomness="different")(pywebgpu.zeros(4, 3, device="cpu"))
    assert len({tuple(row) for row in draws.tolist()}) == 4
    with pytest.raises(RuntimeError, match="randomness"):
        pywebgpu.vmap(noisy)(pywebgpu.zeros(4, 3, device="cpu"))


@pytest.mark.parametrize(
    "draw_of",
    [
        lambda g: pywebgpu.poisson(pywebgpu.full((50,), 3.0), generator=g),
        lambda g: pywebgpu.poisson(pywebgpu.full((50,), 30.0), generator=g),
        lambda g: pywebgpu.binomial(pywebgpu.full((50, 1), 9.0), pywebgpu.full((2,), 0.5), generator=g),
        lambda g: pywebgpu._standard_gamma(pywebgpu.full((50,), 0.7), generator=g),
        lambda g: pywebgpu._sample_dirichlet(pywebgpu.ones(5, 3), generator=g),
        lambda g: pywebgpu.vmap(
            lambda n: pywebgpu.binomial(n, pywebgpu.full((20,), 0.5), generator=g), 0, 0, "different"
        )(pywebgpu.full((4, 20), 9.0)),
    ],
)
def test_draws_are_of_the_generator_that_is_named(draw_of: Function) -> None:
    pywebgpu.set_default_device("cpu")
    drawn = [draw_of(pywebgpu.Generator("cpu").manual_seed(seed)) for seed in (1, 1, 2)]
    assert pywebgpu.equal(drawn[0], drawn[1])
    assert not pywebgpu.equal(drawn[0], drawn[2])


def test_what_is_written_in_place_is_given_back() -> None:
    x = pywebgpu.ones(4, 3, device="cpu")
    assert pywebgpu.vmap(lambda row: row.add_(1))(x) is x
    assert pywebgpu.vmap(lambda row: row.add_(1), in_dims=1, out_dims=1)(x).tolist() == x.tolist() == [[3] * 3] * 4


def test_values_that_are_read_are_read_of_each_sample() -> None:
    x = pywebgpu.tensor([1.0, -2.0], device="cpu")
    assert pywebgpu.vmap(lambda v: v * 2 if v.item() > 0 else v)(x).tolist() == [2.0, -2.0]


def test_what_does_not_depend_on_a_sample_may_be_read_inside() -> None:
    x, kept = pywebgpu.ones(2, device="cpu"), []

    def call(v: Any) -> Any:
        constant = pywebgpu.ones(3, device="cpu") * 2
        kept.append(constant)
        return v * constant.sum().item()

    assert pywebgpu.vmap(call)(x).tolist() == [6.0, 6.0]
    assert len(kept) == 1
    assert kept[0].tolist() == [2.0] * 3


def saved_on_cpu(library: Any, call: Function) -> Any:
    with library.autograd.graph.save_on_cpu():
        return call()


def squares(library: Any, kind: str = "rule") -> Any:
    """A Function that squares by NumPy, with a rule for batches of a kind."""

    class Squares(library.autograd.Function):  # type: ignore[misc]
        generate_vmap_rule = kind == "both"

        if kind != "own context":

            @staticmethod
            def forward(x: Any) -> Any:
                return library.from_numpy(x.detach().numpy() ** 2)

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.save_for_backward(*inputs)

        else:

            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0] * 2

        if kind not in ("no rule", "own context"):

            @staticmethod
            def vmap(info: Any, in_dims: Any, x: Any) -> Any:
                result = Squares.apply(x)
                if kind == "one result":
                    return result
                return result, in_dims if kind == "other axes" else in_dims[0]

    return Squares


RULES: dict[str, Function] = {
    "own rule": lambda t, x: t.vmap(squares(t).apply)(x),
    "last axis": lambda t, x: t.vmap(squares(t).apply, in_dims=-1, out_dims=1)(x),
    "of what was computed": lambda t, x: t.vmap(lambda a: squares(t).apply(a.sin()) + a)(x),
    "nested": lambda t, x: t.vmap(t.vmap(squares(t).apply), in_dims=1)(x),
    "gradient of each sample": lambda t, x: t.vmap(t.func.grad(lambda a: squares(t).apply(a).sum()))(x),
    "gradient of all": lambda t, x: t.func.grad(lambda a: t.vmap(squares(t).apply)(a).sum())(x),
    "factors": lambda t, x: t.vmap(lambda a: t.linalg.eigvalsh(t.outer(a, a)) + t.linalg.det(t.outer(a, a)))(x),
    "inverses": lambda t, x: t.vmap(lambda a: t.linalg.solve(t.outer(a, a) + t.eye(3), a))(x),
    "gradients of factors": lambda t, x: t.vmap(t.func.grad(lambda a: t.linalg.svdvals(t.outer(a, a)).sum()))(x),
    "written numbers": lambda t, x: t.vmap(lambda a: a.fill_(2.0), in_dims=1, out_dims=1)(x),
}


@pytest.mark.parametrize("name", RULES)
def test_what_computes_batches_itself_is_called_once(name: str) -> None:
    values = np.random.RandomState(0).rand(4, 3).astype("float32") + 0.5
    pywebgpu.set_default_device("cpu")
    before, pywebgpu.func.batch.fallback.allowed = pywebgpu.func.batch.fallback.allowed, False
    try:
        result = RULES[name](pywebgpu, pywebgpu.from_numpy(values.copy()))
    finally:
        pywebgpu.func.batch.fallback.allowed = before
    np.testing.assert_allclose(result.detach().numpy(), RULES[name](torch, torch.from_numpy(values)).detach().numpy(),
                               rtol=1e-4, atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("library", [torch, pywebgpu], ids=["torch", "pywebgpu"])
def test_views_of_samples_are_views_of_the_batch(library: Any) -> None:
    x = library.ones(2, 6, 4, device="cpu")
    views = library.vmap(lambda a: (a.T, a[1:3], a.reshape(3, 2, 4), a[0].expand(5, 4)))(x)
    assert all(view._base is x for view in views)
    assert library.vmap(lambda a: a.reshape(8), in_dims=1)(x)._base is None
    doubled = library.vmap(library.vmap(lambda a: a.mul_(2), in_dims=1), in_dims=1, out_dims=1)(x)
    doubled.add_(1)
    assert x.unique().tolist() == [3.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, x: t.vmap(lambda a: 3)(x), "must only return Tensors"),
        (lambda t, x: t.vmap(t.add)(x, x[:1]), "same size"),
        (lambda t, x: t.vmap(t.sin, in_dims=None)(x), "must be|mapped|in_dims"),
        (lambda t, x: t.vmap(t.sin, in_dims=4)(x), "dimensionality"),
        (lambda t, x: t.vmap(t.sin, in_dims=(0, 0))(x), "not compatible"),
        (lambda t, x: t.vmap(lambda a, b: a.add_(b), in_dims=(None, 0))(x[0].clone(), x), "inplace|output with"),
        (lambda t, x: t.vmap(t.sin, randomness="some")(x), "randomness"),
        (lambda t, x: t.func.grad(t.sin)(x), "scalar"),
        (lambda t, x: t.func.grad(t.sum, argnums=2)(x), "argnum|positional"),
        (lambda t, x: t.func.grad(t.sum, argnums=0.5)(x), "must be int"),
        (lambda t, x: t.func.grad(lambda x: x.sum(), has_aux=True)(x), "should be a tuple: .output, aux."),
        (lambda t, x: t.func.vjp(lambda x: (x, 1), x, has_aux=True), "unsupported type"),
        (lambda t, x: t.func.vjp(lambda x: None, x), "non-empty output"),
        (lambda t, x: t.func.vjp(lambda x: 1.0, x), "return only tensors"),
        (lambda t, x: t.func.vjp(lambda x: [x], x)[1](x), "pytree structure of cotangents"),
        (lambda t, x: t.func.jvp(lambda x: (), (x,), (x,)), "non-empty output"),
        (lambda t, x: t.func.jvp(t.sin, x, x), "Expected primals to be a tuple"),
        (lambda t, x: t.func.jvp(t.sin, (x,), [x]), "same python structure"),
        (lambda t, x: t.func.jvp(t.sin, (), ()), "at least one Tensor"),
        (lambda t, x: t.func.jvp(t.sin, (1.0,), (1.0,)), "only contain Tensors"),
        (lambda t, x: t.func.jacrev(t.sin, chunk_size=0), "greater than 0"),
        (lambda t, x: t.func.jacfwd(t.sin)(x.to(t.complex64)), "to be real"),
        (
            lambda t, x: t.func.stack_module_state([t.nn.Linear(1, 1), t.nn.Linear(1, 1).requires_grad_(False)]),
            "same .requires_grad",
        ),
        (lambda t, x: t.func.jvp(t.sin, (x,), (x[:1],)), "shape|size"),
        (lambda t, x: t.autograd.forward_ad.make_dual(x, x), "level"),
        (lambda t, x: t.func.grad(lambda a: a.requires_grad_().sum())(x), "requires_grad_"),
        (lambda t, x: t.vmap(lambda a: t.autograd.functional.vjp(t.sum, a))(x), "autograd.functional"),
        (lambda t, x: t.func.grad(lambda a: squares(t, "own context").apply(a).sum())(x), "setup_context"),
        (lambda t, x: t.vmap(squares(t, "no rule").apply)(x), "does not have vmap support"),
        (lambda t, x: t.vmap(squares(t, "both").apply)(x), "generate_vmap_rule=True and"),
        (lambda t, x: t.vmap(squares(t, "one result").apply)(x), "to have two returns"),
        (lambda t, x: t.vmap(squares(t, "other axes").apply)(x), "returned an incompatible"),
        (lambda t, x: saved_on_cpu(t, lambda: t.func.grad(t.sum)(x)), "saved tensor hooks"),
        (lambda t, x: t.func.vjp(lambda a: saved_on_cpu(t, a.sin), x), "saved tensor hooks"),
        (lambda t, x: t.vmap(t.bernoulli, randomness="same")(x), "same randomness"),
        (lambda t, x: t.vmap(lambda a: t.normal(a, 1.0), randomness="same")(x), "same randomness"),
        (lambda t, x: t.vmap(t.poisson, randomness="same")(x), "same randomness"),
        (lambda t, x: t.vmap(lambda a: t.multinomial(a, 1), randomness="same")(x), "same randomness"),
        (lambda t, x: t.vmap(lambda a: x.normal_(), randomness="different")(x), "different inplace randomness"),
    ],
)
def test_errors_are_of_torchs_type(call: Function, text: str) -> None:
    raised = []
    for library in (torch, pywebgpu):
        with pytest.raises(Exception, match=text) as error:
            call(library, library.ones(2, 3, device="cpu"))
        raised.append(error.type)
    assert issubclass(raised[1], raised[0])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t: t.func.functional_call(t.nn.Linear(2, 2), {"other.weight": t.ones(2, 2)}, t.ones(1, 2)),
        lambda t: t.vmap(lambda x: x, in_dims=[0])(t.ones(2)),
        lambda t: t.vmap(lambda x: x, out_dims=None)(t.ones(2)),
    ],
)
def test_wrong_use_is_refused_as_by_torch(wrong: Function) -> None:
    pywebgpu.set_default_device("cpu")
    with pytest.raises((AttributeError, ValueError)) as wanted:
        wrong(torch)
    with pytest.raises(wanted.type):
        wrong(pywebgpu)
