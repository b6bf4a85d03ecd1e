"""Short programs at the edges of gradients; see programs.py."""

import copy

from tests.cases.programs import program


@program
def graphs_are_walked_once(torch, x, say):
    a = x(3).requires_grad_()
    b = (a * a).sum()
    b.backward()
    b.backward()


@program
def graphs_that_saved_nothing_are_walked_twice(torch, x, say):
    a = x(3).requires_grad_()
    b = (a + 1).sum()
    b.backward()
    b.backward()
    say(a.grad)


@program
def complex_parameters_are_optimized(torch, x, say):
    rules = [
        "SGD",
        "Adam",
        "AdamW",
        "Adagrad",
        "Adadelta",
        "Adamax",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
        "ASGD",
        "LBFGS",
    ]
    for name in rules:
        weight = torch.complex(x(3, 2), x(2, 3).t().contiguous()).requires_grad_()
        other = x(4).requires_grad_()
        optimizer = getattr(torch.optim, name)([weight, other], lr=0.1)

        def loss(optimizer=optimizer, weight=weight, other=other):
            optimizer.zero_grad()
            found = (weight - 1j).abs().square().sum() + (weight * weight).real.sum() * 0.1 + (other * other).sum()
            found.backward()
            return found

        for _ in range(3):
            optimizer.step(loss)
        say(name, torch.view_as_real(weight.detach()), other)


@program
def third_derivatives(torch, x, say):
    a = x(3).requires_grad_()
    y = (a**3 * a.sin()).sum()
    (g,) = torch.autograd.grad(y, a, create_graph=True)
    (h,) = torch.autograd.grad(g.pow(2).sum(), a, create_graph=True)
    (k,) = torch.autograd.grad(h.sum(), a)
    say(g, h, k)


@program
def second_derivatives_of_writes(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    b.mul_(a)
    b[0] = a[1] * a[2]
    (g,) = torch.autograd.grad(b.prod(), a, create_graph=True)
    g.sum().backward()
    say(a.grad)


@program
def second_derivatives_of_views(torch, x, say):
    a = x(2, 3).requires_grad_()
    y = (a.t().reshape(-1)[1:5].view(2, 2) @ a[:, :2]).exp().sum()
    (g,) = torch.autograd.grad(y, a, create_graph=True)
    g.square().sum().backward()
    say(a.grad)


@program
def unused_inputs_are_refused(torch, x, say):
    a = x(3).requires_grad_()
    b = x(3).requires_grad_()
    torch.autograd.grad((a * 2).sum(), [a, b])


@program
def unused_inputs_are_allowed(torch, x, say):
    a = x(3).requires_grad_()
    b = x(3).requires_grad_()
    say(torch.autograd.grad((a * 2).sum(), [a, b], allow_unused=True))
    say(torch.autograd.grad((a * 2).sum(), [a, b], materialize_grads=True))


@program
def only_numbers_need_no_seed(torch, x, say):
    a = x(3).requires_grad_()
    (a * 2).backward()


@program
def seeds_fit(torch, x, say):
    a = x(3).requires_grad_()
    (a * 2).backward(x(2))


@program
def seeds_are_cast(torch, x, say):
    a = x(3).requires_grad_()
    (a * 2).backward(torch.ones(3))
    say(a.grad)
    (a * 2).backward(gradient=torch.ones(3).long())


@program
def no_backward_without_history(torch, x, say):
    x(3).sum().backward()


@program
def whole_numbers_want_no_gradient(torch, x, say):
    torch.tensor([1, 2]).requires_grad_()


@program
def history_is_not_switched_off(torch, x, say):
    a = x(3).requires_grad_()
    (a * 2).requires_grad_(False)


@program
def gradients_of_masked_writes(torch, x, say):
    a = x(4).requires_grad_()
    b = a * 2
    m = b > 0.5
    b[m] = b[m] ** 2
    b.sum().backward()
    say(a.grad, b)


@program
def gradients_of_what_was_not_chosen(torch, x, say):
    a = torch.tensor([0.0, 1.0, 4.0]).requires_grad_()
    torch.where(a > 0, a.sqrt(), torch.zeros(3)).sum().backward()
    say(a.grad)


@program
def gradients_of_ties(torch, x, say):
    a = torch.tensor([1.0, 3.0, 3.0, 2.0]).requires_grad_()
    a.max().backward()
    say(a.grad)
    a.grad = None
    a.amax(0).backward()
    say(a.grad)
    a.grad = None
    a.max(0)[0].backward()
    say(a.grad)
    a.grad = None
    a.median().backward()
    say(a.grad)
    a.grad = None
    torch.maximum(a, a.detach().flip(0)).sum().backward()
    say(a.grad)
    a.grad = None
    a.clamp(1, 3).sum().backward()
    say(a.grad)
    a.grad = None
    a.relu().sum().backward()
    say(a.grad)
    a.grad = None
    (a - 1).abs().sum().backward()
    say(a.grad)


@program
def gradients_of_norms_at_zero(torch, x, say):
    a = torch.zeros(3).requires_grad_()
    a.norm().backward()
    say(a.grad)
    a.grad = None
    a.norm(1).backward()
    say(a.grad)
    a.grad = None
    a.std().backward()
    say(a.grad)


@program
def gradients_of_powers_at_zero(torch, x, say):
    a = torch.tensor([0.0, 1.0, 2.0]).requires_grad_()
    (a**0).sum().backward()
    say(a.grad)
    a.grad = None
    (a**2).sum().backward()
    say(a.grad)
    a.grad = None
    (a ** a.detach()).sum().backward()
    say(a.grad)
    a.grad = None
    (2**a).sum().backward()
    say(a.grad)
    a.grad = None
    (0**a).sum().backward()
    say(a.grad)


@program
def gradients_of_products_with_zeros(torch, x, say):
    a = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0]]).requires_grad_()
    a.prod(1).sum().backward()
    say(a.grad)
    a.grad = None
    a.cumprod(1).sum().backward()
    say(a.grad)
    a.grad = None
    a.prod().backward()
    say(a.grad)


@program
def functions_that_write(torch, x, say):

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            a.mul_(2)
            ctx.mark_dirty(a)
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 2

    a = x(3).requires_grad_()
    b = a * 1
    c = F.apply(b)
    say(c is b, c._version)
    c.sum().backward()
    say(a.grad)
    F.apply(a)


@program
def functions_return_as_many_gradients(torch, x, say):

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, g):
            return g

    F.apply(x(3).requires_grad_(), x(3)).sum().backward()


@program
def functions_return_fitting_gradients(torch, x, say):

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g[:2]

    F.apply(x(3).requires_grad_()).sum().backward()


@program
def functions_without_gradients(torch, x, say):

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, k):
            ctx.k = k
            ctx.set_materialize_grads(False)
            return (a * k, a + k)

        @staticmethod
        def backward(ctx, g, h):
            say(g, h, ctx.needs_input_grad)
            return (None, None)

    a = x(3).requires_grad_()
    F.apply(a, 2)[0].sum().backward()
    say(a.grad)


@program
def functions_notice_what_was_overwritten(torch, x, say):

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return 2 * a * g

    a = x(3).requires_grad_()
    b = a * 1
    c = F.apply(b)
    b.add_(1)
    c.sum().backward()


@program
def functions_are_differentiated_again(torch, x, say):

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a * a

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return 3 * a * a * g

    a = x(3).requires_grad_()
    (g,) = torch.autograd.grad(F.apply(a).sum(), a, create_graph=True)
    g.sum().backward()
    say(a.grad)


@program
def functions_that_return_what_they_got(torch, x, say):

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 7

    a = x(3).requires_grad_()
    b = F.apply(a)
    say(b is a, b.requires_grad, b.is_leaf)
    b.sum().backward()
    say(a.grad)


@program
def inference_tensors_are_not_written_outside(torch, x, say):
    with torch.inference_mode():
        a = x(3)
    say(a + 1)
    a.add_(1)


@program
def inference_tensors_count_no_versions(torch, x, say):
    with torch.inference_mode():
        a = x(3)
    say(a._version)


@program
def gradient_modes_nest(torch, x, say):
    a = x(3).requires_grad_()
    with torch.no_grad():
        b = a * 2
        with torch.enable_grad():
            c = a * 3

        @torch.enable_grad()
        def f():
            return a * 4

        d = f()
    say(b.requires_grad, c.requires_grad, d.requires_grad)

    @torch.no_grad()
    def g():
        yield (a * 2).requires_grad
        yield torch.is_grad_enabled()

    say(list(g()), torch.is_grad_enabled())
    torch.set_grad_enabled(False)
    say((a * 2).requires_grad)
    torch.set_grad_enabled(True)


@program
def gradients_of_fills(torch, x, say):
    a = x(3, 3).requires_grad_()
    b = a * 1
    b.fill_diagonal_(0)
    b.triu_()
    b.masked_fill_(b > 1, 2.0)
    b.index_fill_(0, torch.tensor([2]), 4.0)
    b.sum().backward()
    say(a.grad)


@program
def gradients_are_added_in_place(torch, x, say):
    a = x(3).requires_grad_()
    (a * 2).sum().backward()
    g = a.grad
    (a * 3).sum().backward()
    say(g, a.grad is g)
    a.grad = None
    (a * 1).sum().backward()
    say(g)


@program
def gradients_of_gradients_add_up(torch, x, say):
    a = x(3).requires_grad_()
    (a * a).sum().backward(create_graph=True)
    say(a.grad.requires_grad)
    a.grad.sum().backward()
    say(a.grad)


@program
def hooks_know_the_mode(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    with torch.no_grad():
        b.register_hook(lambda g: say(g, torch.is_grad_enabled(), g.requires_grad))
    b.sum().backward(create_graph=True)


@program
def only_leaves_are_copied_deeply(torch, x, say):
    a = x(3).requires_grad_()
    (a * 2).sum().backward()
    b = copy.deepcopy(a)
    say(b, b.grad, b.requires_grad)
    copy.deepcopy(a * 2)


@program
def gradients_of_repeats(torch, x, say):
    a = x(3).requires_grad_()
    (a.repeat_interleave(torch.tensor([1, 0, 2])) * x(3)).sum().backward()
    say(a.grad)
    b = x(2, 2).requires_grad_()
    (b.unfold(1, 2, 1) * 3).sum().backward()
    (b.as_strided((3, 2), (1, 1)) * x(3, 2)).sum().backward()
    say(b.grad)


@program
def gradients_of_scatters(torch, x, say):
    a = x(3).requires_grad_()
    s = x(4).requires_grad_()
    i = torch.tensor([0, 2, 2, 0])
    for r in ("sum", "prod", "mean", "amax", "amin"):
        a.grad = s.grad = None
        a.scatter_reduce(0, i, s, r).mul(x(3)).sum().backward()
        say(a.grad, s.grad)
    a.scatter_add(0, i, s).prod().backward()
    say(a.grad)


# Sparse gradients


@program
def rows_that_were_looked_up_have_a_sparse_gradient(torch, x, say):
    functional = torch.nn.functional
    weight = (x(5, 2) / 10).requires_grad_()
    rows = torch.tensor([[3, 1], [1, 0]])
    (functional.embedding(rows, weight, sparse=True) * x(2, 2, 2)).sum().backward()
    grad = weight.grad
    say(grad.is_sparse, grad.shape, grad._nnz(), grad._indices(), grad._values(), grad.coalesce().indices())
    say(grad.to_dense(), grad.is_coalesced())
    functional.embedding(rows[0], weight, padding_idx=1, sparse=True).sum().backward()
    say(weight.grad.is_sparse, weight.grad.to_dense())
    (weight * 2).sum().backward()
    say(weight.grad.is_sparse, weight.grad.to_dense() if weight.grad.is_sparse else weight.grad)
    functional.embedding(rows[0], weight, sparse=True).sum().backward()
    say(weight.grad.is_sparse, weight.grad)
    (found,) = torch.autograd.grad(functional.embedding(rows, weight, sparse=True).sum(), weight)
    say(found.is_sparse, found.to_dense(), functional.embedding(rows, weight, sparse=True).grad_fn.name())
    twice = (
        functional.embedding(rows, weight, sparse=True).sum() + functional.embedding(rows[0], weight, sparse=True).sum()
    )
    (found,) = torch.autograd.grad(twice, weight)
    say(found.is_sparse, found._nnz(), found.to_dense())
    both = functional.embedding(rows, weight, sparse=True).sum() + weight.sum()
    say(torch.autograd.grad(both, weight)[0].is_sparse)


@program
def optimizers_take_sparse_gradients_or_refuse_them(torch, x, say):
    for name in ("SGD", "Adagrad", "SparseAdam", "Adam", "AdamW", "RMSprop", "Adadelta", "NAdam"):
        layer = torch.nn.Embedding(6, 2, padding_idx=2, sparse=True)
        layer.weight.data.copy_(x(6, 2))
        optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.1)
        try:
            for rows in ([3, 1, 3], [0, 2, 1]):
                optimizer.zero_grad()
                (layer(torch.tensor(rows)) * x(3, 2)).sum().backward()
                optimizer.step()
            say(name, (layer.weight * 1e4).round().long())
        except RuntimeError:
            say(name, "refused")
    bag = torch.nn.EmbeddingBag(5, 2, mode="sum", sparse=True)
    bag(torch.tensor([[1, 2], [2, 4]])).sum().backward()
    say(bag.weight.grad.is_sparse, bag.weight.grad.to_dense())


@program
def functions_with_forward_rules_of_their_own(torch, x, say):
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, factor):
            ctx.save_for_backward(a, b)
            ctx.save_for_forward(a, b)
            ctx.factor = factor
            return a * b * factor, a.clone()

        @staticmethod
        def jvp(ctx, a_tangent, b_tangent, _):
            a, b = ctx.saved_tensors
            return (b * a_tangent + a * b_tangent) * ctx.factor, a_tangent * 10

        @staticmethod
        def vjp(ctx, grad, other):
            a, b = ctx.saved_tensors
            return grad * b * ctx.factor + other, grad * a * ctx.factor, None

    a, b = x(3).requires_grad_(), x(3).requires_grad_()
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        product, copy_of = Product.apply(forward.make_dual(a, torch.ones(3)), b, 4)
        say(forward.unpack_dual(product * 2).tangent, forward.unpack_dual(copy_of).tangent)
        (product.sum() + copy_of.sum()).backward()
    say(a.grad, b.grad)


@program
def what_grad_fn_shows(torch, x, say):
    a = x(3).requires_grad_()

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            ctx.save_for_backward(value)
            ctx.number = 2
            return value * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    y = Double.apply(a)
    say(y.grad_fn.number, y.grad_fn.saved_tensors[0] is a, type(y.grad_fn) is Double._backward_cls)
    say([function.name() for function, _ in y.grad_fn.next_functions])
    say((a * a).grad_fn._saved_self is a, a.exp().grad_fn._saved_result, hasattr((a + 1).grad_fn, "_saved_self"))
    y.grad_fn.metadata["key"] = 3
    say(y.grad_fn.metadata)


@program
def coroutines_keep_their_mode(torch, x, say):
    seen = []

    @torch.no_grad()
    def steps():
        while True:
            try:
                seen.append(torch.is_grad_enabled())
                yield len(seen)
            except ValueError:
                seen.append("thrown")
            except GeneratorExit:
                seen.append(torch.is_grad_enabled())
                raise

    coroutine = steps()
    say(next(coroutine), coroutine.throw(ValueError()), coroutine.send(1))
    coroutine.close()
    say(seen, torch.is_grad_enabled())


@program
def tangents_are_shown_and_not_written_to(torch, x, say):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(torch.ones(2), torch.ones(2))
        say("tangent=" in repr(dual), "tangent=" in repr(torch.ones(2)))
        for call in (lambda: torch.add(dual, 1, out=torch.ones(2)), lambda: torch.add(torch.ones(2), 1, out=dual)):
            try:
                call()
            except RuntimeError as error:
                say(error)


@program
def gradients_of_convolutions_by_name(torch, x, say):
    for rank in (1, 2, 3):
        image, weight = x(1, 2, *(4,) * rank), x(2, 1, *(2,) * rank)
        convolution = getattr(torch.nn.functional, f"conv{rank}d")
        grad = torch.ones_like(convolution(image, weight, None, 2, 1, 1, 2))
        names = torch.nn.functional.grad
        say(getattr(names, f"conv{rank}d_input")(image.shape, weight, grad, 2, 1, 1, 2))
        say(getattr(names, f"conv{rank}d_weight")(image, weight.shape, grad, stride=2, padding=1, groups=2))


@program
def functions_of_a_graph_are_objects(torch, x, say):
    node = torch.autograd.graph.Node
    a = x(2).requires_grad_()
    b = a.exp()
    c = b + 5
    say(c.grad_fn.next_functions[0][0] is b.grad_fn, len(c.grad_fn.next_functions), c.grad_fn.next_functions[1][0])
    say([len(f.grad_fn.next_functions) for f in (b * 2, b / 2, b - 1, 3 - b, b * a, b.exp())])
    say(isinstance(c.grad_fn, node), issubclass(type(c.grad_fn), node), node in type(c.grad_fn).mro())
    say(isinstance(b.grad_fn.next_functions[0][0], node), isinstance(1, node), issubclass(node, node))
    say(issubclass(torch.autograd.function.BackwardCFunction, node))

    class Copy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            say(isinstance(ctx, node))
            return value.clone()

        @staticmethod
        def backward(ctx, grad):
            say(isinstance(ctx, node))
            return grad

    out = Copy.apply(a)
    say(isinstance(out.grad_fn, node), issubclass(type(out.grad_fn), node))
    out.sum().backward()


@program
def hooks_of_functions_see_all_that_was_read(torch, x, say):
    a = x(2).requires_grad_()
    b = a * 2
    seen = []
    end = b.grad_fn.next_functions[0][0]
    handles = [
        end.register_hook(lambda grads, outputs: seen.append(("after", len(grads), len(outputs)))),
        end.register_prehook(lambda grads: seen.append(("before", len(grads)))),
        b.grad_fn.register_hook(lambda grads, outputs: seen.append(("of b", len(grads), grads[1]))),
        a.register_post_accumulate_grad_hook(lambda leaf: seen.append(("added", leaf.grad.tolist()))),
    ]
    loss = b.sum()
    for walk in (
        lambda: loss.backward(retain_graph=True),
        lambda: loss.backward(inputs=(a,), retain_graph=True),
        lambda: loss.backward(inputs=(a, b), retain_graph=True),
        lambda: torch.autograd.grad(loss, (a, b), retain_graph=True),
    ):
        walk()
        say(seen)
        seen.clear()
    say(a.grad, b.grad)
    for handle in handles:
        handle.remove()


@program
def hooks_of_a_view_are_of_what_it_was(torch, x, say):
    base = x(3).requires_grad_().clone()
    view, other = base[:], base[1:]
    for tensor in (view, other):
        tensor.register_hook(lambda grad: say("before", grad))
    view.mul_(2)
    say(other.grad_fn is not None)
    other.register_hook(lambda grad: say("other", grad))
    view.register_hook(lambda grad: say("view", grad))
    (view.sum() * 3 + other.sum()).backward()


@program
def sparse_gradients_are_added_where_they_are(torch, x, say):
    def sparse():
        return torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.tensor([1.0, 1.0]), (2,))

    for create_graph in (False, True):
        for make in (sparse, lambda: x(2) + 1):
            leaf = x(2).requires_grad_()
            leaf.grad = first = make()
            leaf.backward(sparse(), create_graph=create_graph)
            say(leaf.grad is first, leaf.grad.is_sparse, leaf.grad.to_dense() if leaf.grad.is_sparse else leaf.grad)
    leaf = x(2).requires_grad_()
    leaf.backward(sparse())
    say(leaf.grad.is_sparse, leaf.grad.to_dense())


@program
def values_that_hooks_keep_are_shown(torch, x, say):
    a = x(3).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda value: value * 2, lambda value: value / 2):
        y = a * a
    say(y.grad_fn._saved_self, y.grad_fn._saved_other)
    y.sum().backward()
    say(a.grad)
    try:
        say(y.grad_fn._saved_self)
    except RuntimeError as error:
        say(error)
