"""Private modules and names of PyTorch that libraries import: the same programs print the same under both."""

import importlib
import warnings
from typing import Any

import pytest
import torch as theirs

import pywebgpu


def _error(kind: type[Exception], call: Any, *args: Any) -> str:
    """The text of what a call raises."""
    with pytest.raises(kind) as error:
        call(*args)
    return str(error.value)


def _foreach(torch: Any) -> list[Any]:
    a, b = [torch.arange(1.0, 4.0), torch.ones(2) * 2], [torch.ones(3) * 3, torch.ones(2)]
    results = [
        torch._foreach_add(a, 1), torch._foreach_add(a, b, alpha=2), torch._foreach_mul(a, [2.0, 3.0]),
        torch._foreach_addcmul(a, a, b, value=0.5), torch._foreach_addcdiv(a, a, b, [1.0, 2.0]),
        torch._foreach_addcmul(a, a, b, torch.tensor([1.0, 3.0])), torch._foreach_lerp(a, b, 0.25),
        torch._foreach_pow(2.0, a), torch._foreach_pow(a, [1, 2]), torch._foreach_maximum(a, 1.5),
        torch._foreach_minimum(a, b), torch._foreach_norm(a), torch._foreach_norm(a, 1), torch._foreach_sqrt(a),
        torch._foreach_max(a), torch._foreach_sign(a), torch._foreach_clamp_min(a, 2),
    ]  # fmt: skip
    torch._foreach_mul_(a, 2.0)
    torch._foreach_sub_(a, b, alpha=3)
    torch._foreach_copy_(b, a)
    torch._foreach_addcdiv_(b, a, a, value=2)
    torch._foreach_zero_(a[:1])
    return [*results, a, b, torch._foreach_neg_(b)]


def _foreach_refusals(torch: Any) -> list[Any]:
    a = [torch.ones(2)]
    calls = (
        lambda: torch._foreach_add([], 1),
        lambda: torch._foreach_add(a, [torch.ones(2), torch.ones(2)]),
        lambda: torch._foreach_mul(a, [1.0, 2.0]),
    )
    return [_error(RuntimeError, call) for call in calls]


def _checks(torch: Any) -> list[Any]:
    texts = []
    for check, kind in (
        (torch._check, RuntimeError), (torch._check_index, IndexError), (torch._check_value, ValueError),
        (torch._check_type, TypeError), (torch._check_not_implemented, NotImplementedError),
    ):  # fmt: skip
        check(True, lambda: "no")
        texts.append(_error(kind, check, False, lambda: "words"))
    torch._check_tensor_all(torch.ones(2) > 0)
    texts.append(_error(RuntimeError, torch._check_tensor_all, torch.ones(2) < 0, lambda: "all"))
    return texts


def _optimizer_hooks(torch: Any) -> list[Any]:
    log: list[str] = []
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    module = importlib.import_module(f"{torch.__name__}.optim.optimizer")
    handles = [
        module.register_optimizer_step_pre_hook(lambda *args: log.append("before all")),
        module.register_optimizer_step_post_hook(lambda *args: log.append("after all")),
        optimizer.register_step_pre_hook(lambda *args: log.append("before")),
        optimizer.register_step_post_hook(lambda *args: log.append("after")),
        optimizer.register_state_dict_pre_hook(lambda *args: log.append("second")),
        optimizer.register_state_dict_pre_hook(lambda *args: log.append("first"), prepend=True),
    ]
    parameter.grad = torch.ones(2)
    optimizer.step()
    optimizer.state_dict()
    for handle in handles:
        handle.remove()
    optimizer.step()
    required = module.required
    refusal = _error(ValueError, torch.optim.Optimizer, [parameter], {"lr": required})
    return [log, str(required), refusal, isinstance(handles[0], torch.utils.hooks.RemovableHandle)]


def _constraints(torch: Any) -> list[Any]:
    constraints, utils = torch.distributions.constraints, torch.distributions.utils

    class Whole(constraints._Real):  # type: ignore[misc, name-defined]
        def check(self, value: Any) -> Any:
            return value % 1 == 0

    class Mine(constraints.Constraint):  # type: ignore[misc, name-defined]
        pass

    transform = torch.distributions.transforms.ExpTransform()
    torch.distributions.biject_to.register(Mine, lambda constraint: transform)
    vector = torch.arange(6.0)
    return [
        sorted(constraints.__all__), sorted(torch.distributions.transforms.__all__),
        isinstance(constraints.positive, constraints.greater_than),
        Whole().check(torch.tensor([1.0, 1.5])), torch.distributions.biject_to(Mine()) is transform,
        repr(constraints.unit_interval),
        constraints.integer_interval(0, 2).check(torch.tensor([1.0, 3.0, 0.5])), utils.vec_to_tril_matrix(vector),
        utils.vec_to_tril_matrix(vector, -1), utils.tril_matrix_to_vec(vector[:4].reshape(2, 2)),
        torch.distributions.transforms._clipped_sigmoid(torch.tensor([-200.0, 0.0, 200.0])),
    ]  # fmt: skip


def _batches(torch: Any) -> list[Any]:
    class Row:
        def __init__(self, value: float) -> None:
            self.value = value

    private = torch.utils.data._utils
    rows = {Row: lambda batch, *, collate_fn_map=None: torch.tensor([row.value for row in batch])}
    private.collate.default_collate_fn_map.update(rows)
    try:
        batch = torch.utils.data.default_collate([{"a": Row(1.0), "b": (1, "x")}, {"a": Row(2.0), "b": (2, "y")}])
    finally:
        del private.collate.default_collate_fn_map[Row]
    loader = torch.utils.data.DataLoader(range(5), batch_size=2)
    iterator = iter(loader)
    kinds = [isinstance(iterator, torch.utils.data.dataloader._BaseDataLoaderIter), next(iterator), len(iterator)]
    return [batch, kinds, private.worker._generate_state(1 << 40, 3), private.worker.get_worker_info()]


def _trees(torch: Any) -> list[Any]:
    tree = torch.utils._pytree
    return [
        tree._dict_flatten({"a": 1, "b": 2}), tree._dict_unflatten([1, 2], ["a", "b"]), tree._list_flatten([1, 2]),
        tree._get_node_type([1]), tree.tree_is_leaf(3), tree.is_structseq(3),
        [str(key) for key, _ in tree._dict_flatten_with_keys({"a": 1})[0]],
    ]  # fmt: skip


def _others(torch: Any) -> list[Any]:
    with torch._dynamo.config.patch(suppress_errors=True):
        inside = torch._dynamo.config.suppress_errors
    weak = torch.utils.weak.WeakIdKeyDictionary()
    keys = [torch.ones(2), torch.ones(2)]
    for at, key in enumerate(keys):
        weak[key] = at
    flat = torch._utils._flatten_dense_tensors(keys)
    block = torch.utils._contextlib.context_decorator(lambda: torch.no_grad(), lambda: torch.is_grad_enabled())
    return [
        inside, [weak[key] for key in keys], flat, torch._utils._unflatten_dense_tensors(flat, keys), block(),
        torch._C._nn._parse_to("cpu", torch.float64, non_blocking=True)[1:3],
        torch._C._is_alias_of(keys[0], keys[0][:1]),
        torch.nn.init._calculate_correct_fan(torch.ones(3, 5), "fan_out"),
        torch._utils._get_device_index("cpu", allow_cpu=True),
    ]  # fmt: skip


def _functorch(torch: Any) -> list[Any]:
    make = importlib.import_module(f"{torch.__name__}._functorch.make_functional")
    transforms = importlib.import_module(f"{torch.__name__}._functorch.eager_transforms")
    nets = [torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).eval() for _ in range(2)]
    with torch.no_grad():
        for number, weight in enumerate(weight for net in nets for weight in net.parameters()):
            weight.fill_(number / 4)
    x = torch.arange(6.0).reshape(3, 2)
    call, weights = make.make_functional(nets[0][0])
    whole, params, buffers = make.make_functional_with_buffers(nets[0], disable_autograd_tracking=True)
    joined, many, states = make.combine_state_for_ensemble(nets)
    first, function, names = make.functional_init(torch.nn.Linear, (3,))(2, 2)
    return [
        call(weights, x), [weight.requires_grad for weight in (*weights, *params)], whole(params, buffers, x),
        torch.vmap(joined, (0, 0, None))(many, states, x), [list(weight.shape) for weight in first],
        torch.vmap(function, (0, None))(first, (x,)).shape == (3, 3, 2), names,
        _error(RuntimeError, make.make_functional, nets[0]).split(".")[0],
        transforms._slice_argnums((1, [2], 3), (-1, 0)), transforms._slice_argnums((1, [2], 3), 1, as_tuple=False),
    ]  # fmt: skip


def _higher_order_operators(torch: Any) -> list[Any]:
    ops = importlib.import_module(f"{torch.__name__}._ops")

    class Twice(ops.HigherOrderOperator):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__("twice_of_a_test")

        def __call__(self, function: Any, x: Any) -> Any:
            return super().__call__(function, x)

    twice = Twice()
    twice.py_impl(torch._C.DispatchKey.AutogradCPU)(lambda function, x: function(function(x)))
    twice.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)(lambda function, x: function(x))
    x = torch.ones(2, requires_grad=True)
    return [twice(torch.exp, x), torch.autograd.grad(twice(torch.exp, x).sum(), x), twice.name(), str(twice)]


def _equal_calls(torch: Any) -> list[Any]:
    passes = importlib.import_module(f"{torch.__name__}.fx.passes.dialect.common.cse_pass")

    def function(x: Any) -> Any:
        return x.sin() + torch.cos(x) + torch.cos(x) * torch.rand_like(x) - torch.rand_like(x) + torch.sum(x, dim=0)

    graph = torch.fx.symbolic_trace(function)
    first = passes.CSEPass(banned_ops={torch.rand_like})(graph)
    second = passes.CSEPass(banned_ops={torch.rand_like})(first.graph_module)
    names = [node.name for node in first.graph_module.graph.nodes]
    return [names, first.modified, second.modified, passes.CSEPass()(graph).modified]


def _older_orders(torch: Any) -> list[Any]:
    a = torch.arange(1.0, 4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            a.add(2, a), torch.add(a, 2, a), a.clone().add_(0.5, a), a.addcmul(2, a, a), torch.addcdiv(a, 3, a, a),
            a.clone().addcmul_(-1, a, a), _error(TypeError, a.addcmul, a, a, a) != "",
        ]  # fmt: skip


def _bases(torch: Any) -> list[Any]:
    """Classes that tools of models look layers up by."""
    nn = torch.nn
    layers = [
        nn.Conv2d(1, 1, 1), nn.ConvTranspose1d(1, 1, 1), nn.MaxPool2d(2), nn.MaxUnpool2d(2), nn.AvgPool3d(2),
        nn.LPPool2d(2, 2), nn.Dropout2d(), nn.BatchNorm1d(1), nn.InstanceNorm1d(1),
    ]  # fmt: skip
    bases = [
        nn.modules.conv._ConvNd, nn.modules.conv._ConvTransposeNd, nn.modules.pooling._MaxPoolNd,
        nn.modules.pooling._MaxUnpoolNd, nn.modules.pooling._AvgPoolNd, nn.modules.pooling._LPPoolNd,
        nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm, nn.modules.batchnorm._NormBase,
    ]  # fmt: skip
    return [[isinstance(layer, base) for base in bases] for layer in layers]


def _expanded_subclass(torch: Any) -> list[Any]:
    class Shifted(torch.distributions.Normal):  # type: ignore[misc, name-defined]
        def __init__(self, shift: Any) -> None:
            self.shift = shift
            super().__init__(shift, torch.ones_like(shift))

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Shifted, _instance)
            new.shift = self.shift + 1
            return super().expand(batch_shape, new)

    class Further(Shifted):
        def __init__(self) -> None:
            super().__init__(torch.zeros(1))

    new = Shifted(torch.zeros(1)).expand((2,))
    return [
        type(new) is Shifted, new.shift, new.loc, list(new.batch_shape), new.log_prob(torch.ones(2)),
        _error(NotImplementedError, Further().expand, (2,)),
    ]  # fmt: skip


def _names_of_libraries(torch: Any) -> list[Any]:
    stateless = torch.nn.utils.stateless
    layer, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    with stateless._reparametrize_module(layer, {"weight": torch.eye(2) * 3, "bias": torch.zeros(2)}):
        inside = layer(x)
    foreach_utils = torch.utils._foreach_utils
    groups = foreach_utils._group_tensors_by_device_and_dtype(
        [[x, x.double(), x + 1], [None, x, None]], with_indices=True
    )
    a = [torch.ones(2), torch.ones(1) * 4]
    torch._foreach_maximum_(a, 2.0)
    torch._foreach_minimum_(a, [torch.ones(2), torch.ones(1) * 3])
    with torch.cuda.nvtx.range("a part") if torch is pywebgpu else torch.no_grad():  # Theirs asks for CUDA.
        pass
    return [
        inside, sorted((str(dtype), plain(parts)) for (_, dtype), parts in groups.items()), a,
        torch._shape_as_tensor(x), torch._cast_Long(x), torch.profiler.ProfilerActivity.XPU is not None,
        torch.ops.aten._convolution(
            torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1, False, False, True, True
        ),
        str(layer.load_state_dict({}, strict=False)), torch.utils.data.dataloader._collate_fn_t is not None,
        [torch.distributed.ReduceOp.SUM is not None, torch.distributed.ReduceOp.MAX is not None],
        torch.nn.modules.module._IncompatibleKeys([], ["x"]),
    ]  # fmt: skip


PROGRAMS = (_older_orders, _bases, _expanded_subclass, _names_of_libraries,
    _foreach, _foreach_refusals, _checks, _optimizer_hooks, _constraints, _batches, _trees, _others, _functorch,
    _higher_order_operators, _equal_calls,
)  # fmt: skip


def plain(value: Any) -> Any:
    """Tensors as numbers, in whatever holds them."""
    if isinstance(value, pywebgpu.Tensor | theirs.Tensor):
        return [str(value.dtype), plain(value.double().tolist())]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, float):
        return f"{value:.5g}"
    return [plain(part) for part in value] if isinstance(value, list | tuple) else str(value)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.strip("_"))
def test_a_program_of_private_names_says_what_it_says_under_pytorch(program: Any) -> None:
    with pywebgpu.device("cpu"):
        assert plain(program(pywebgpu)) == plain(program(theirs))


def test_modules_have_no_private_names_that_programs_may_want() -> None:
    """A class of a program derives from Module, and has its own `_step`, `_call`, `_forward`."""
    wanted = "_step _call _forward _run _compute _compiled _cast _at _named _check _mask _key _loss _shared _computed"
    assert not [name for name in wanted.split() if hasattr(pywebgpu.nn.Module, name)]
