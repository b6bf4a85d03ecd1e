"""Short programs about gradients, functions of functions and modules at their edges; see programs.py."""

import collections
import importlib
import warnings

from tests.cases.programs import program
from tests.cases.programs_of_values import attempts

nan, inf = float("nan"), float("inf")


@program
def segments_whose_largest_are_several(torch, x, say):
    def gradient(values, reduce, **options):
        a = torch.tensor(values).requires_grad_()
        out = torch.segment_reduce(a, reduce, **options)
        (out * torch.arange(1.0, 1 + out.numel()).reshape(out.shape)).sum().backward()
        say(reduce, out, a.grad)

    lengths = torch.tensor([2, 3])
    for reduce in ("max", "min", "sum", "mean", "prod"):
        for values in (
            [1.0, 2, 3, 3, 1],
            [nan, 2, 3, nan, nan],
            [1.0, 1, 1, 1, 1],
            [0.0, 0, 2, 0, 4],
            [inf, 1, -inf, 1, 1],
        ):
            if reduce == "prod" and values[0] != values[0]:
                continue  # Of another factor PyTorch takes the others' product, which has no NaN.
            for options in ({}, {"initial": 1.0}, {"initial": 3}):
                gradient(values, reduce, lengths=lengths, **options)
        gradient([1.0, 2], reduce, lengths=torch.tensor([0, 2]), initial=2.0)
        gradient([[1.0, 2], [3, 2], [3, 0]], reduce, lengths=torch.tensor([1, 2]))
        gradient([1.0, 2, 3, 3, 1], reduce, offsets=torch.tensor([0, 2, 5]))


@program
def dtypes_of_tensors_and_imaginary_numbers(torch, x, say):
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.bool, torch.uint8):
        for shape in ((), (2,)):
            a = torch.ones(shape, dtype=dtype)
            for number in (1j, 1.5, 2, True):
                attempts(
                    say,
                    lambda: (a + number).dtype,
                    lambda: (number * a).dtype,
                    lambda: torch.result_type(a, number),
                    lambda: (a + torch.tensor(number)).dtype,
                    lambda: (torch.tensor([number]) + a).dtype,
                    lambda: torch.where(a > 0, a, number).dtype,
                    lambda: (a == number).dtype,
                )


@program
def complex_numbers_are_drawn_in_both_parts(torch, x, say):
    for make in (torch.randn, torch.rand):
        for dtype in (torch.complex64,):
            torch.manual_seed(0)
            out = torch.zeros(500, dtype=dtype)
            made = make(500, out=out)
            part = 1 / 2**0.5 if make is torch.randn else 12**-0.5
            say(made is out, out.dtype, *(bool(abs(p.std() - part) < 0.1) for p in (out.real, out.imag)))
            for n in (make(500, dtype=dtype), getattr(torch, f"{make.__name__}_like")(out)):
                say(n.dtype, *(bool(abs(p.std() - part) < 0.1) for p in (n.real, n.imag)))
    half = torch.zeros(4, dtype=torch.float16)
    say(torch.randn(4, out=half).dtype, torch.rand(4, out=half).dtype)
    whole = torch.zeros(4, dtype=torch.int64)
    say(torch.randint(5, (4,), out=whole).dtype, torch.randperm(4, out=whole).dtype)
    float_ = torch.zeros(4)
    attempts(say, lambda: torch.randint(5, (4,), out=float_).dtype, lambda: torch.randperm(4, out=float_).dtype)
    attempts(say, lambda: torch.randn(4, out=whole), lambda: torch.rand(4, out=whole))
    attempts(say, lambda: torch.normal(0.0, 1.0, (4,), out=half).dtype, lambda: torch.zeros(4, out=whole).dtype)
    attempts(say, lambda: torch.ones(4, out=half).dtype, lambda: torch.full((4,), 1.5, out=half).dtype)
    attempts(say, lambda: torch.eye(2, out=half).dtype, lambda: torch.empty(4, out=half).dtype)
    attempts(say, lambda: torch.linspace(0, 1, 3, out=half).dtype, lambda: torch.arange(3, out=half).dtype)
    attempts(
        say, lambda: torch.arange(3, out=half, dtype=torch.float32), lambda: torch.ones(2, out=half, dtype=torch.int64)
    )
    z = torch.zeros(2, dtype=torch.complex64)
    say(torch.full((2,), 1j, out=z), torch.ones(2, out=z), torch.eye(2, out=z))


@program
def hessians_of_outputs_of_one_element(torch, x, say):
    def f(a):
        return (a**3).sum().reshape(1)

    F = torch.autograd.functional
    a = x(2)
    say(F.hessian(f, a), F.hessian(lambda a: f(a)[0], a), F.hessian(lambda a, b: (a * b).sum().reshape(1), (a, a + 1)))
    say(torch.func.hessian(f)(a), torch.func.hessian(lambda a: f(a)[0])(a), F.jacobian(f, a))
    say(F.hessian(f, a, vectorize=True), F.hvp(f, a, a), F.vhp(f, a, a))
    attempts(say, lambda: F.hessian(lambda a: a, a), lambda: F.hessian(lambda a: f(a).reshape(1, 1), a))
    attempts(say, lambda: torch.func.grad(f)(a), lambda: torch.func.hessian(lambda a: f(a).reshape(1, 1))(a).shape)


@program
def jacobians_of_an_argument_twice(torch, x, say):
    def f(a, b):
        return a * b

    a, b = x(2), x(2) + 1
    attempts(
        say,
        lambda: torch.func.jacrev(f, argnums=(0, 0))(a, b),
        lambda: torch.func.jacfwd(f, argnums=(0, 0))(a, b),
        lambda: torch.func.grad(lambda a, b: (a * b).sum(), argnums=(0, 0))(a, b),
        lambda: torch.func.jacrev(f, argnums=(0, -2))(a, b),
        lambda: torch.func.jacfwd(f, argnums=(0, -2))(a, b),
        lambda: torch.func.grad(lambda a, b: (a * b).sum(), argnums=(1, -1))(a, b),
        lambda: torch.func.jacrev(f, argnums=(1, 0))(a, b),
        lambda: torch.func.jacrev(f, argnums=2)(a, b),
        lambda: torch.func.grad(lambda a, b: (a * b).sum(), argnums=())(a, b),
        lambda: torch.func.jacrev(f, argnums=())(a, b),
        lambda: torch.func.jacrev(f, argnums=1.0)(a, b),
        lambda: torch.func.hessian(lambda a, b: (a * b).sum(), argnums=(0, 1))(a, b),
        lambda: torch.func.jacrev(f, argnums=(True, 0))(a, b),
    )


@program
def the_same_draw_for_all_chunks(torch, x, say):
    for chunk in (None, 1, 2, 3, 4):
        for draw in (
            lambda a: a * 0 + torch.randn(2),
            lambda a: torch.nn.functional.dropout(a * 0 + 1, 0.5),
            lambda a: a * 0 + torch.rand_like(a),
        ):
            rows = torch.func.vmap(draw, randomness="same", chunk_size=chunk)(torch.zeros(4, 2))
            say(chunk, bool((rows == rows[0]).all()))
            rows = torch.func.vmap(lambda a: a * 0 + torch.rand(16), randomness="different", chunk_size=chunk)(
                torch.zeros(4, 16)
            )
            say(len({tuple(row) for row in rows.tolist()}))


@program
def inference_mode_keeps_who_wants_gradients(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    with torch.inference_mode():
        v = b.view(3, 1)
        say(v.requires_grad, v.is_inference(), v.grad_fn is None, v.is_leaf)
        say(b[0].requires_grad, b.t().requires_grad, b.detach().requires_grad, b.unbind()[0].requires_grad)
        say(a.requires_grad, a.view(3, 1).requires_grad, (a * 2).requires_grad, a[1:].requires_grad)
        b.add_(1)
        say(b.requires_grad, b.is_inference(), b.is_leaf)
        n = x(3)
        say(n.requires_grad, n.view(3, 1).requires_grad)
    say(b.requires_grad, v.requires_grad, b)
    c = a * 3
    with torch.inference_mode():
        c.add_(1)
        c[0] = 5
    say(c.requires_grad)
    c.sum().backward()
    say(a.grad)
    leaf = x(3).requires_grad_()
    with torch.inference_mode():
        leaf.add_(1)
        leaf[0].mul_(3)
        say(leaf.requires_grad, leaf.is_leaf)
    say(leaf, leaf.requires_grad)
    (leaf * leaf).sum().backward()
    say(leaf.grad)
    d = x(3).clone()
    with torch.inference_mode():
        d.add_(1)
        w = d.view(3, 1)
        say(w.is_inference(), w.requires_grad)
    d.requires_grad_()
    say((d * 2).requires_grad)
    attempts(
        say, lambda: w.mul_(d[:, None]), lambda: v.mul_(2), lambda: w.mul_(2), lambda: (w * d[:, None]).requires_grad
    )


@program
def views_of_no_grad_keep_who_wants_gradients(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    with torch.no_grad():
        v, w = b.view(3, 1), a.view(3, 1)
        say(v.requires_grad, w.requires_grad, b.detach().requires_grad, b[0].requires_grad)
    say(v.requires_grad, w.requires_grad, v.is_leaf, w.is_leaf)
    with torch.no_grad():
        b.add_(1)
        a.add_(1)
        say(b.requires_grad, a.requires_grad)


@program
def gradients_of_views_that_were_written(torch, x, say):
    a = x(4).requires_grad_()
    b = a * 2
    v, w = b[:2], b[2:]
    w.retain_grad()
    v.retain_grad()
    b.retain_grad()
    v.mul_(3)
    (b * x(4)).sum().backward()
    say(v.grad, w.grad, b.grad, a.grad)
    a.grad = None
    b = a * 2
    v, w = b[:2], b[2:]
    v.mul_(3)
    w.retain_grad()
    v.retain_grad()
    ((b * x(4)).sum() + (w * 2).sum() + v.sum()).backward()
    say(v.grad, w.grad, a.grad)
    a.grad = None
    b = a * 2
    v, w = b[:2], b[1:]
    v.retain_grad()
    w.retain_grad()
    v.mul_(3)
    w.mul_(2)
    (w * x(3)).sum().backward()
    say(v.grad, w.grad, a.grad)
    a.grad = None
    b = a * 2
    v = b[:2]
    w = b[2:]
    v.mul_(3)
    w.retain_grad()
    (w * x(2)).sum().backward()
    say(w.grad, a.grad)


@program
def gradients_of_other_views_than_the_written(torch, x, say):
    def view(a, n):
        return (a[:2], a[1:3], a.view(2, 2), a.view(4, 1), a.view(4), a[:1])[n]

    a = x(4).requires_grad_()
    for one in range(6):
        for other in range(6):
            for early in (True, False):
                a.grad = None
                b = a.clone()
                v, w = view(b, one), view(b, other)
                if early:
                    w.retain_grad()
                v.mul_(3)
                if not early:
                    w.retain_grad()
                ((b * x(4)).sum() + (w * w).sum()).backward()
                say(one, other, w.grad, a.grad)
                b = a.clone()
                v, w = view(b, one), view(b, other)
                w.retain_grad()
                v.mul_(2)
                w.mul_(3)
                u = w.exp()
                v.mul_(4)
                (u.sum() + (v * 2).sum()).backward()
                say(one, other, w.grad, v.grad, a.grad)


@program
def views_from_before_a_tensor_wanted_gradients(torch, x, say):
    for view in (
        lambda a: a[0],
        lambda a: a.view(-1),
        lambda a: a.t(),
        lambda a: a.detach(),
        lambda a: a.data,
        lambda a: a[:, 1:][0],
    ):
        a = x(2, 3).clone()
        v = view(a)
        a.requires_grad_()
        attempts(
            say, lambda: v.mul_(2).requires_grad, lambda: v.fill_(1).requires_grad, lambda: v.requires_grad, lambda: a
        )
        with torch.no_grad():
            v.add_(1)
        say(a, a.requires_grad, v.requires_grad)
        loss = (a * a).sum()
        loss.backward()
        say(a.grad)
    a = x(2, 3).clone()
    v = a[0]
    p = torch.nn.Parameter(a)
    attempts(say, lambda: v.mul_(2), lambda: a.mul_(2), lambda: p)
    a = x(2, 3).clone()
    v = a[0]
    a.requires_grad_()
    a.requires_grad_(False)
    attempts(say, lambda: v.mul_(2), lambda: a)
    a = x(3).requires_grad_()
    b = x(2, 3).clone()
    v = b[0]
    b.requires_grad_()
    attempts(say, lambda: v.mul_(a), lambda: v.copy_(a), lambda: b)


@program
def sparse_tensors_are_transposed_in_place(torch, x, say):
    s = x(2, 3).to_sparse()
    same = s.transpose_(0, 1)
    say(same is s, tuple(s.shape), s.to_dense(), s.is_sparse)
    t = x(2, 3).to_sparse()
    say(t.t_() is t, tuple(t.shape), t.to_dense(), t.transpose(0, 1).to_dense(), t.t().is_sparse)
    attempts(
        say,
        lambda: x(2, 3).to_sparse().mul_(2).to_dense(),
        lambda: x(2, 3).to_sparse().zero_().to_dense(),
        lambda: x(2, 3).to_sparse().add_(x(2, 3).to_sparse()).to_dense(),
        lambda: x(2, 3).to_sparse().div_(2).to_dense(),
        lambda: x(2, 3).to_sparse().neg_().to_dense(),
        lambda: x(2, 3).to_sparse().abs_().to_dense(),
        lambda: x(2, 3).to_sparse().sqrt_().to_dense(),
        lambda: x(2, 3).to_sparse().sin_().to_dense(),
        lambda: x(2, 3).to_sparse().pow_(2).to_dense(),
        lambda: x(2, 3).to_sparse().copy_(x(2, 3).to_sparse()).to_dense(),
        lambda: x(2, 3).to_sparse().sub_(x(2, 3).to_sparse()).to_dense(),
        lambda: x(2, 1).to_sparse().squeeze_().to_dense(),
        lambda: x(2, 3).to_sparse().unsqueeze_(0).to_dense(),
        lambda: x(2, 3).to_sparse().fill_(2).to_dense(),
        lambda: x(2, 3).to_sparse().swapaxes_(0, 1).to_dense(),
        lambda: x(2, 3).to_sparse().resize_as_(x(3, 3).to_sparse()).shape,
        lambda: x(2, 3).to_sparse().requires_grad_().requires_grad,
        lambda: x(2, 3).to_sparse().detach_().to_dense(),
        lambda: x(2, 3).to_sparse().relu_().to_dense(),
    )


@program
def margins_of_single_samples(torch, x, say):
    F = torch.nn.functional
    for reduction in ("none", "mean", "sum"):
        attempts(
            say,
            lambda: F.multi_margin_loss(x(3), torch.tensor(1), reduction=reduction),
            lambda: F.multi_margin_loss(x(1)[0], torch.tensor(0), reduction=reduction),
            lambda: F.multi_margin_loss(x(3), torch.tensor([1]), reduction=reduction),
            lambda: F.multi_margin_loss(x(1), torch.tensor([0]), reduction=reduction),
            lambda: F.multi_margin_loss(x(1), torch.tensor(0), reduction=reduction),
            lambda: F.multi_margin_loss(x(1)[0], torch.tensor([0]), reduction=reduction),
            lambda: F.multi_margin_loss(x(2, 3), torch.tensor([1, 0]), reduction=reduction),
            lambda: torch.nn.MultiMarginLoss(reduction=reduction)(x(1)[0], torch.tensor(0)),
            lambda: F.multilabel_margin_loss(x(3), torch.tensor([1, -1, 0]), reduction=reduction),
            lambda: F.multilabel_margin_loss(x(1)[0], torch.tensor(0), reduction=reduction),
            lambda: F.multilabel_margin_loss(x(2, 3), torch.tensor([[1, -1, 0], [0, 1, -1]]), reduction=reduction),
            lambda: F.multilabel_soft_margin_loss(x(3), torch.ones(3), reduction=reduction),
            lambda: F.nll_loss(x(3), torch.tensor(1), reduction=reduction),
            lambda: F.cross_entropy(x(3), torch.tensor(1), reduction=reduction),
            lambda: F.soft_margin_loss(x(1)[0], torch.tensor(1.0), reduction=reduction),
            lambda: F.hinge_embedding_loss(x(1)[0], torch.tensor(1.0), reduction=reduction),
            lambda: F.margin_ranking_loss(x(1)[0], x(1)[0], torch.tensor(1.0), reduction=reduction),
            lambda: F.cosine_embedding_loss(x(3), x(3), torch.tensor(1), reduction=reduction),
            lambda: F.triplet_margin_loss(x(3), x(3), x(3), reduction=reduction),
        )
        a = x(1)[0].clone().requires_grad_()
        F.multi_margin_loss(a, torch.tensor(0), reduction=reduction).sum().backward()
        say(a.grad)


@program
def softplus_of_no_slope(torch, x, say):
    F = torch.nn.functional
    a = (x(4) - 0.4).requires_grad_()
    for beta, threshold in (
        (0, 20),
        (0.0, -1),
        (1e-30, 20),
        (-1, 20),
        (2, 0),
        (inf, 20),
        (1, -inf),
        (1, inf),
        (nan, 20),
    ):
        a.grad = None
        out = F.softplus(a, beta, threshold)
        out.sum().backward()
        say(beta, out, a.grad)
    say(torch.nn.Softplus(beta=0)(x(2)), torch.nn.Softplus(beta=0, threshold=-1)(x(2)))
    for name, call in {
        "elu": lambda: F.elu(a, 0.0), "celu": lambda: F.celu(a, 0.0), "leaky": lambda: F.leaky_relu(a, 0.0),
        "hardtanh": lambda: F.hardtanh(a, 0.0, 0.0),
        "shrink": lambda: F.softshrink(a, 0.0),
        "hardshrink": lambda: F.hardshrink(a, 0.0), "threshold": lambda: F.threshold(a, 0.0, nan),
        "hardtanh nan": lambda: F.hardtanh(a, 1.0, -1.0), "elu nan": lambda: F.elu(a, nan),
        "elu inf": lambda: F.elu(a, inf),
        "elu negative": lambda: F.elu(a, -1.0), "celu negative": lambda: F.celu(a, -1.0),
        "huber": lambda: F.huber_loss(a, a * 0, delta=1e-30),
        "smooth 0": lambda: F.smooth_l1_loss(a, a * 0, beta=0.0), "gumbel": lambda: F.softmin(a, 0),
        "rrelu": lambda: F.rrelu(a, 0.5, 0.5), "logit 0": lambda: torch.logit(a, 0.0),
        "logit 1": lambda: torch.logit(a, 0.6),
    }.items():  # fmt: skip
        a.grad = None
        try:
            out = call()
            out.sum().backward()
            say(name, out, a.grad)
        except Exception as error:
            say(name, error)


@program
def reparametrized_complex_weights(torch, x, say):
    z = torch.complex(x(3, 2), x(3, 2).flip(0) * 2)
    for name in ("spectral_norm", "orthogonal"):
        layer = torch.nn.Linear(2, 3, bias=False, dtype=torch.complex64)
        with torch.no_grad():
            layer.weight.copy_(z)
        torch.manual_seed(0)
        try:
            getattr(torch.nn.utils.parametrizations, name)(
                layer, **({"n_power_iterations": 50} if name[0] == "s" else {})
            )
            w = layer.weight
            if name == "spectral_norm":
                say(torch.linalg.matrix_norm(w, 2), w.abs() / w.abs().max())
            else:
                say(w.mH @ w)
            (w.abs() ** 2).sum().backward()
        except Exception as error:
            say(name, error)
    for shape in ((2, 3), (3, 3), (4, 2)):
        for kind in ("matrix_exp", "cayley", "householder"):
            layer = torch.nn.Linear(shape[1], shape[0], bias=False, dtype=torch.complex64)
            try:
                torch.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind)
                w = layer.weight
                say(
                    torch.allclose(
                        w.mH @ w if shape[0] >= shape[1] else w @ w.mH, torch.eye(min(shape), dtype=w.dtype), atol=1e-4
                    )
                )
            except Exception as error:
                say(kind, shape, error)
    q = torch.nn.init.orthogonal_(torch.empty(3, 3))
    say(torch.allclose(q @ q.t(), torch.eye(3), atol=1e-4))


@program
def masked_statistics_of_complex_numbers(torch, x, say):
    z = torch.complex(x(2, 3), x(2, 3).flip(1) * 3)
    some = torch.tensor([[True, False, True], [True, True, True]])
    masked = torch.masked
    for mask in (some, None):
        for name in ("sum", "mean", "prod", "var", "std", "norm", "cumsum", "normalize"):
            extra = (2.0,) if name in ("norm", "normalize") else ()
            attempts(say, lambda: getattr(masked, name)(z, *extra, dim=1, mask=mask))
            attempts(say, lambda: getattr(masked, name)(x(2, 3), *extra, dim=1, mask=mask))
        for unbiased in (True, False):
            attempts(
                say,
                lambda: masked.var(z, dim=(0, 1), unbiased=unbiased, mask=mask),
                lambda: masked.std(z, dim=0, mask=mask),
            )
        attempts(say, lambda: masked.var(z, 0, True, mask=mask))


@program
def least_squares_with_any_rcond(torch, x, say):
    a = torch.tensor([[1.0, 2, 0], [2, 4.5, 1], [0, 1, 3], [1, 1, 1]])
    b = x(4, 2)
    for driver in ("gelsy", "gelss", "gelsd", "gels"):
        for rcond in (None, 1e-9, 0.3, 1.0, 2.0, -1.0):
            if driver != "gelsy" or rcond is None or rcond < 0.1:  # Which column it takes first, PyTorch leaves open.
                attempts(say, lambda: torch.linalg.lstsq(a, b, rcond=rcond, driver=driver).solution)
                attempts(say, lambda: torch.linalg.lstsq(a, b, rcond=rcond, driver=driver).rank)
            attempts(say, lambda: torch.linalg.lstsq(a, b, rcond=rcond, driver=driver).singular_values)
            attempts(say, lambda: torch.linalg.lstsq(a, b, rcond=rcond, driver=driver).residuals)
    for rcond in (0.3, 1.0, 2.0):
        attempts(say, lambda: torch.linalg.pinv(a, rtol=rcond), lambda: torch.linalg.matrix_rank(a, rtol=rcond))
        attempts(say, lambda: torch.linalg.pinv(a, atol=rcond), lambda: torch.linalg.matrix_rank(a, atol=rcond))


@program
def conditions_of_singular_matrices(torch, x, say):
    singular = torch.tensor([[1.0, 2], [2, 4]])
    zero, two = torch.zeros(2, 2), torch.stack([singular, torch.eye(2)])
    for p in (None, 2, -2, 1, -1, inf, -inf, "fro", "nuc"):
        attempts(
            say,
            lambda: torch.linalg.cond(zero, p),
            lambda: torch.linalg.cond(torch.tensor([[1.0, 0], [0, 0]]), p),
            lambda: torch.linalg.cond(torch.eye(2) * 3, p),
            lambda: torch.linalg.cond(torch.stack([zero, torch.eye(2)]), p),
            lambda: torch.linalg.cond(torch.ones(2, 3), p).shape,
            lambda: torch.linalg.cond(torch.zeros(0, 2, 2), p).shape,
            lambda: torch.linalg.cond(torch.zeros(0, 0), p),
        )
    attempts(say, lambda: torch.linalg.cond(two, 1))
    attempts(say, lambda: torch.linalg.det(zero), lambda: torch.linalg.slogdet(zero), lambda: torch.logdet(zero))


@program
def containers_are_trees_of_leaves(torch, x, say):
    trees = importlib.import_module(f"{torch.__name__}.utils._pytree")
    pair = collections.namedtuple("Pair", "a b")
    tree = {
        "x": [1, (2, None)], "y": pair(3, {"z": 4}), "d": collections.deque([5, 6], maxlen=3), "e": [], "t": (),
        "o": collections.OrderedDict(b=7, a=8), "f": collections.defaultdict(list, k=9),
    }  # fmt: skip
    leaves, spec = trees.tree_flatten(tree)
    say(leaves, spec.num_leaves, spec.num_nodes, spec.num_children, spec == trees.tree_structure(tree))
    say(repr(trees.tree_unflatten([leaf and leaf * 10 for leaf in leaves], spec)))
    say(repr(trees.tree_map(lambda a, b: (a, b), {"a": 1, "b": [2, 3]}, {"b": [4, (5, 6)], "a": 7})))
    say(repr(trees.tree_map_only(int, lambda leaf: -leaf, tree)["y"]), trees.tree_any(lambda leaf: leaf == 4, tree))
    say([(trees.keystr(path), leaf) for path, leaf in trees.tree_leaves_with_path(tree)])
    say(trees._broadcast_to_and_flatten([1, 2], trees.tree_structure([(0, 0), [0]])))
    say(
        trees._broadcast_to_and_flatten((1, 2), trees.tree_structure([0, 0])), trees.arg_tree_leaves(1, [2], k={"a": 3})
    )

    class Box:
        def __init__(self, *values):
            self.values = values

    trees.register_pytree_node(Box, lambda box: ([*box.values], None), lambda leaves, context: Box(*leaves))
    say(trees.tree_map(lambda leaf: leaf + 1, Box(1, 2)).values, trees.tree_leaves([Box(1), 2]))
    say(trees.tree_leaves([1, [2, 3]], is_leaf=lambda part: part == [2, 3]), trees.tree_structure(1).is_leaf())
    for call in (
        lambda: trees.tree_unflatten([1], spec), lambda: trees.tree_map(max, [1, 2], [1]),
        lambda: trees.tree_map(max, {"a": 1}, {"b": 1}), lambda: trees.tree_map(max, [1], (1,)),
        lambda: trees.register_pytree_node(Box, None, None),
    ):  # fmt: skip
        try:
            call()
        except ValueError:
            say("ValueError")


@program
def sparse_tensors_through_their_class(torch, x, say):
    def sparse(coalesced=True):
        s = torch.sparse_coo_tensor(torch.tensor([[0, 2, 2]]), torch.tensor([0.5, 0.25, -0.5]), (3,))
        return s.coalesce() if coalesced else s

    for name in ("atan", "tanh", "ceil", "neg", "relu"):
        s = sparse()
        say(getattr(torch.Tensor, f"{name}_")(s) is s, s.to_dense(), s.is_sparse)
        for call in (getattr(torch.Tensor, f"{name}_"), lambda s, name=name: getattr(s, f"{name}_")()):
            attempts(say, lambda call=call: call(sparse(coalesced=False)).to_dense())
    leaf = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1]]), torch.tensor([0.5, 0.25, -0.5]), (2,)).requires_grad_()
    leaf.sum().abs().backward()
    say(leaf.grad.to_dense() if leaf.grad.is_sparse else leaf.grad)


@program
def sparse_tensors_are_made_and_refused(torch, x, say):
    positions, values = torch.tensor([[0, 2]]), torch.tensor([1.0, 2.0])
    s = torch.sparse_coo_tensor(positions, values, (3,))
    for other in (
        s.new(positions, values),
        s.new(positions, values, (4,)),
        s.new(2, 3),
        s.new(torch.Size([2])),
        s.new(),
    ):
        say(tuple(other.shape), other._nnz(), other.sparse_dim(), other.dense_dim())
    empty = torch.sparse_coo_tensor(torch.empty([3, 0]), torch.empty([0, 2, 4, 0]))
    say(tuple(empty.shape), tuple(empty._indices().shape))
    for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        meta = x(2, 3).to_sparse(layout=layout).to("meta")
        say(tuple(meta.shape), meta._nnz(), meta.layout is layout, meta.is_meta)
    scale = torch.tensor(2.0).to_sparse()
    say((x(2, 3).to_sparse() * scale).to_dense(), (scale * x(2, 3).to_sparse()).to_dense())
    attempts(
        say,
        lambda: s.new([6]),
        lambda: s.norm(keepdim=True),
        lambda: s.norm(0, dtype=torch.float64),
        lambda: torch.sparse_coo_tensor(torch.tensor([[1, 2], [0, 2]]), torch.ones(2, 3), (3, 3, 2)),
    )


@program
def cells_and_grids_that_are_refused(torch, x, say):
    F = torch.nn.functional
    for kind in (torch.nn.RNNCell, torch.nn.GRUCell, torch.nn.LSTMCell):
        cell = kind(3, 4)

        def state(*shape, cell=cell):
            return (x(*shape), x(*shape)) if isinstance(cell, torch.nn.LSTMCell) else x(*shape)

        attempts(
            say,
            lambda cell=cell: cell(x(2, 5)),
            lambda cell=cell, state=state: cell(x(2, 3), state(2, 5)),
            lambda cell=cell, state=state: cell(x(2, 3), state(1, 4)),
            lambda cell=cell, state=state: cell(x(2, 3), state(1, 1, 2, 4)),
        )
    attempts(
        say,
        lambda: F.affine_grid(x(2, 3), (1, 1, 2, 2), align_corners=False),
        lambda: F.affine_grid(x(1, 2, 3), (1, 1, 2), align_corners=False),
        lambda: F.affine_grid(x(1, 3, 4), (1, 1, 2, 2), align_corners=False),
    )


@program
def hooks_that_always_run_may_fail(torch, x, say):
    class Failing(torch.nn.Module):
        def forward(self, value):
            raise RuntimeError("in forward")

    def fail(module, args, result):
        raise RuntimeError("in the hook")

    module = Failing()
    module.register_forward_hook(fail, always_call=True)
    module.register_forward_hook(lambda *args: say("it runs"), always_call=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        attempts(say, lambda: module(x(2)))
    say([str(warning.message) for warning in caught])


@program
def biases_are_not_added_to_given_keys(torch, x, say):
    layer, q = torch.nn.MultiheadAttention(4, 2, add_bias_kv=True), x(3, 1, 4)
    weights = (layer.in_proj_weight, layer.in_proj_bias, layer.bias_k, layer.bias_v, False, 0.0)
    for name in ("static_k", "static_v"):
        try:
            torch.nn.functional.multi_head_attention_forward(
                q, q, q, 4, 2, *weights, layer.out_proj.weight, layer.out_proj.bias, **{name: x(2, 3, 2)}
            )
        except AssertionError as error:
            say(str(error))


@program
def products_at_places_of_batches(torch, x, say):
    places, values = (torch.tensor([0, 1, 2]), torch.tensor([1, 0])), torch.tensor([2.0, 3.0])
    one = torch.sparse_csr_tensor(*places, values, (2, 2))
    several = torch.sparse_csr_tensor(*(part.expand(2, -1).clone() for part in (*places, values)), (2, 2, 2))
    for input, first, other in (
        (one, x(2, 2, 3), x(2, 3, 2)),
        (several, x(2, 2, 3), x(2, 3, 2)),
        (one, x(2, 3), x(3, 2)),
    ):
        result = torch.sparse.sampled_addmm(input, first, other, beta=0.5, alpha=2)
        say(tuple(result.shape), result.to_dense())
    leaf = one.detach().requires_grad_()
    leaf.sum().backward()
    say(leaf.grad.layout is torch.sparse_csr or leaf.grad.layout is torch.strided)
