"""What a step may read of the package's own objects, of files, and of Python itself, each with how it changes between calls."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Own:
    """setup: statements. statement: inside the step, which may set x. sets: statements between the calls.

    writes: it leaves something that outlives the call. refuses: a value may be needed on the host, which a step refuses.
    """

    name: str
    setup: str
    statement: str
    sets: tuple[str, ...]
    writes: bool = False
    refuses: bool = False
    modules: dict[str, str] = field(default_factory=dict)


_NORMAL = "d$ = torch.distributions.Normal(torch.zeros(4), torch.ones(4))"
_NORMAL_SETS = (
    "d$.loc = data(9, 4)", "d$.loc.add_(1.0)", "d$.scale = torch.full((4,), 2.0)", "d$.scale.mul_(2.0)", "d$ = torch.distributions.Normal(1.0, 2.0)", "d$.loc = 0.5",
    "d$.log_prob = lambda v: v * 2", "d$.__class__ = torch.distributions.Laplace", "d$ = torch.distributions.Laplace(torch.zeros(4), torch.ones(4))",
)  # fmt: skip
_AFFINE = "t$ = torch.distributions.transforms.AffineTransform(0.5, 2.0)"
_AFFINE_SETS = (
    "t$.loc = 1.5",
    "t$.scale = 3.0",
    "t$ = torch.distributions.transforms.TanhTransform()",
    "t$.loc = data(5, 4)",
    "t$ = t$.inv",
)
_SCALER = "s$ = torch.amp.GradScaler('cpu', init_scale=4.0)"
_FILE = "_p$ = os.path.join(tempfile.mkdtemp(), 'k')\ndef put$(v):\n    {put}\nput$(0.5)"
_PUTS = ("put$(2.0)", "put$(-1.5)", "put$(0.5)")
_SELF = "class O$(torch.autograd.Function):\n    k = 2.0\n    @staticmethod\n    def forward(ctx, x):\n        return x * O$.k\n    @staticmethod\n    def backward(ctx, g):\n        return g * O$.k"
_HELPER = "k = 0.5\ndef f():\n    return k\nclass A:\n    k = 0.5\n"


def _file(name: str, put: str, get: str, *sets: str, **more: bool) -> Own:
    return Own(f"file_{name}", _FILE.format(put=put), f"x = x * {get}", sets or _PUTS, **more)


OBJECTS = (
    Own("log_prob", _NORMAL, "x = x + d$.log_prob(x)", _NORMAL_SETS),
    Own("mean", _NORMAL, "x = x + d$.mean + d$.variance + d$.stddev", _NORMAL_SETS),
    Own("cdf", _NORMAL, "x = x + d$.cdf(x) + d$.entropy()", _NORMAL_SETS),
    Own("parameter_of_a_distribution", _NORMAL, "x = x + d$.loc * d$.scale", _NORMAL_SETS),
    Own("shape_of_a_distribution", _NORMAL, "x = x * (sum(d$.batch_shape) + 1)", (*_NORMAL_SETS, "d$._batch_shape = torch.Size([7])")),
    Own("distribution_by_number", "d$ = torch.distributions.Normal(0.0, 1.0)", "x = x + d$.log_prob(x)", ("d$.loc = torch.tensor(0.5)", "d$.scale.fill_(2.0)", "d$.loc = 1.5")),
    Own("independent", f"{_NORMAL}\ni$ = torch.distributions.Independent(d$, 1)", "x = x + i$.log_prob(x).unsqueeze(-1)", (*_NORMAL_SETS, "i$.base_dist = torch.distributions.Laplace(torch.zeros(4), torch.ones(4))")),
    Own("categorical", "c$ = torch.distributions.Categorical(logits=data(3, 4))", "x = x * c$.probs + c$.logits", ("c$.logits = data(9, 4)", "c$.logits.add_(1.0)", "c$.logits[0] = 2.0", "c$.__dict__.pop('probs', None)", "c$ = torch.distributions.Categorical(logits=data(5, 4))")),
    Own("bernoulli", "c$ = torch.distributions.Bernoulli(probs=torch.full((4,), 0.25))", "x = x * c$.probs + c$.logits", ("c$.probs = torch.full((4,), 0.5)", "c$.probs.mul_(2.0)", "c$.__dict__.pop('logits', None)")),
    Own("transformed", f"{_NORMAL}\n{_AFFINE}\ne$ = torch.distributions.TransformedDistribution(d$, [t$])", "x = x + e$.log_prob(x * 0.5 + 0.6)", (*_NORMAL_SETS[:4], *_AFFINE_SETS[:2], "e$.transforms.append(torch.distributions.transforms.AffineTransform(0.0, 2.0))", "e$.transforms.clear()", "e$.base_dist = torch.distributions.Laplace(torch.zeros(4), torch.ones(4))")),
    Own("divergence", f"{_NORMAL}\ne$ = torch.distributions.Normal(torch.ones(4), torch.ones(4))", "x = x + torch.distributions.kl_divergence(d$, e$)", (*_NORMAL_SETS[:4], "e$.loc.mul_(2.0)", "e$.scale = torch.full((4,), 0.5)")),
    Own("validation", "_g$ = torch.distributions.Distribution", "x = x * (2.0 if torch.distributions.Normal(0.0, 1.0)._validate_args else 3.0)", ("_g$.set_default_validate_args(False)", "_g$.set_default_validate_args(True)")),
    Own("mixture", "m$ = torch.distributions.MixtureSameFamily(torch.distributions.Categorical(logits=data(3, 2)), torch.distributions.Normal(data(1, 4, 2), torch.ones(4, 2)))", "x = x + m$.log_prob(x)",
        ("m$._mixture_distribution.logits = data(9, 2)", "m$._component_distribution.loc.add_(1.0)", "m$._component_distribution = torch.distributions.Normal(data(7, 4, 2), torch.ones(4, 2))")),
    Own("transform", _AFFINE, "x = t$(x)", _AFFINE_SETS),
    Own("transform_inverse", _AFFINE, "x = t$.inv(x * 0.1)", _AFFINE_SETS[:4]),
    Own("transform_jacobian", _AFFINE, "x = x + t$.log_abs_det_jacobian(x, t$(x))", _AFFINE_SETS[:3]),
    Own("transforms_composed", f"{_AFFINE}\nu$ = torch.distributions.transforms.ComposeTransform([t$, torch.distributions.transforms.TanhTransform()])", "x = u$(x)", (*_AFFINE_SETS[:2], "u$.parts.append(t$)", "u$.parts.pop()", "u$.parts[0] = torch.distributions.transforms.ExpTransform()")),
    Own("scale_of_a_scaler", _SCALER, "x = s$.scale(x)", ("s$.update(8.0)", "s$._scale = torch.tensor(3.0)", "s$._enabled = False", "s$._enabled = True", "s$ = torch.amp.GradScaler('cpu', init_scale=2.0)", "s$.load_state_dict({**s$.state_dict(), 'scale': 16.0})", "s$ = torch.amp.GradScaler('cpu', enabled=False)")),
    Own("growth_of_a_scaler", _SCALER, "x = x * s$.get_growth_factor()", ("s$.set_growth_factor(3.0)", "s$.set_growth_factor(5.0)", "s$._growth_factor = 7.0")),
    Own("backoff_of_a_scaler", _SCALER, "x = x * s$.get_backoff_factor() * s$.get_growth_interval()", ("s$.set_backoff_factor(0.25)", "s$.set_growth_interval(3)", "s$._growth_interval = 7")),
    Own("scaler_that_is_enabled", _SCALER, "x = x * (2.0 if s$.is_enabled() else 3.0)", ("s$._enabled = False", "s$._enabled = True", "s$ = torch.amp.GradScaler('cpu', enabled=False)")),
    Own("precision_of_products", "", "x = x * len(torch.get_float32_matmul_precision())", ("torch.set_float32_matmul_precision('high')", "torch.set_float32_matmul_precision('medium')", "torch.set_float32_matmul_precision('highest')")),
    Own("precision_by_backends", "", "x = x * (2.0 if torch.backends.cuda.matmul.allow_tf32 else 3.0)", ("torch.backends.cuda.matmul.allow_tf32 = True", "torch.set_float32_matmul_precision('high')", "torch.backends.cuda.matmul.allow_tf32 = False")),
    Own("deterministic", "", "x = x * (2.0 if torch.are_deterministic_algorithms_enabled() else 3.0)", ("torch.use_deterministic_algorithms(True)", "torch.use_deterministic_algorithms(False)")),
    Own("flag_of_cudnn", "", "x = x * (2.0 if torch.backends.cudnn.benchmark else 3.0)", ("torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.benchmark = False")),
    Own("number_of_threads", "_w$ = torch.get_num_threads()", "x = x * (2.0 if torch.get_num_threads() == _w$ else 3.0)", ("torch.set_num_threads(_w$ + 1)", "torch.set_num_threads(_w$)")),
    Own("default_dtype_of_a_number", "", "x = x * len(str(torch.get_default_dtype()))", ("torch.set_default_dtype(torch.float16)", "torch.set_default_dtype(torch.float32)")),
    Own("default_device", "", "x = x * len(str(torch.get_default_device()))", ()),
    Own("hook_of_all_modules", "m$ = linear(1)\n_h$ = []", "x = m$(x).detach()", ("_h$.append(nn.modules.module.register_module_forward_hook(lambda m, a, out: out * 2))", "_h$.pop().remove()", "_h$.append(nn.modules.module.register_module_forward_pre_hook(lambda m, a: (a[0] * 3,)))")),
    Own("hook_of_all_modules_by_name", "m$ = linear(1)\nk$ = 2.0\n_h$ = [nn.modules.module.register_module_forward_hook(lambda m, a, out: out * k$)]", "x = m$(x).detach()", ("k$ = 3.0", "k$ = -1.5", "_h$.pop().remove()")),
    Own("method_of_tensors", "torch.Tensor.user$ = lambda self: self * 2", "x = x.user$()", ("torch.Tensor.user$ = lambda self: self * 3", "torch.Tensor.user$ = torch.Tensor.tanh")),
    Own("method_of_tensors_that_may_be_there", "", "x = x.user$() if hasattr(x, 'user$') else x", ("torch.Tensor.user$ = lambda self: self * 3", "del torch.Tensor.user$")),
    Own("method_of_tensors_replaced", "_w$ = torch.Tensor.tanh", "x = x.tanh()", ("torch.Tensor.tanh = lambda self: self * 3", "torch.Tensor.tanh = _w$", "torch.Tensor.tanh = torch.Tensor.sin")),
    Own("operator_of_tensors_replaced", "_w$ = torch.Tensor.__mod__", "x = x % 2.0", ("torch.Tensor.__mod__ = lambda self, other: self + other", "torch.Tensor.__mod__ = _w$")),
    Own("item_of_tensors_replaced", "_w$ = torch.Tensor.__getitem__", "x = x + x[0]", ("torch.Tensor.__getitem__ = lambda self, at: _w$(self, 1)", "torch.Tensor.__getitem__ = _w$")),
    Own("property_of_tensors_replaced", "", "x = x * x.user$", ("torch.Tensor.user$ = property(lambda self: 3.0)", "torch.Tensor.user$ = 2.0", "torch.Tensor.user$ = property(lambda self: len(self))")),
    Own("function_of_the_library_replaced", "_w$ = torch.tanh", "x = torch.tanh(x)", ("torch.tanh = torch.sin", "torch.tanh = lambda x: x * k$", "torch.tanh = _w$")),
    Own("functional_replaced", "_w$ = F.relu", "x = F.relu(x)", ("F.relu = torch.tanh", "F.relu = lambda x: x * 2", "F.relu = _w$")),
    Own("functional_that_a_layer_calls", "_w$ = F.mse_loss\nm$ = nn.MSELoss()", "x = x + m$(x, x * 2)", ("F.mse_loss = lambda *_, **__: torch.ones(())", "F.mse_loss = _w$")),
    Own("class_attribute_of_a_layer", "class L$(nn.LeakyReLU):\n    negative_slope, inplace = 0.1, False\n    def __init__(self):\n        nn.Module.__init__(self)\nm$ = L$()", "x = m$(x)", ("L$.negative_slope = 0.5", "L$.negative_slope = -1.0", "m$.negative_slope = 2.0", "L$.forward = lambda self, x: x * 2")),
    Own("graph_from_outside", "p$ = param(1)\nh$ = p$ * 2", "(g,) = torch.autograd.grad((h$ * x.detach()).sum(), p$, retain_graph=True); x = x + g", ("h$ = p$ * 3", "h$.grad_fn.register_hook(lambda a, b: (a[0] * 3, *a[1:]))", "h$.register_hook(lambda g: g * 2)")),
    Own("number_of_a_schedule", "p$ = param(1)\no$ = optim.SGD([p$], lr=0.5)\ns$ = optim.lr_scheduler.StepLR(o$, 2)", "o$.step(); s$.step(); x = x * s$.last_epoch", ("s$.last_epoch = 0", "s$.gamma = 0.5"), writes=True),
    Own("forward_of_a_class_replaced", "_w$ = nn.Tanh.forward\nm$ = nn.Tanh()", "x = m$(x)", ("nn.Tanh.forward = lambda self, x: x * 2", "nn.Tanh.forward = _w$")),
    Own("step_of_a_class_replaced", "_w$ = optim.SGD.step\np$ = param(1)\no$ = optim.SGD([p$], lr=0.1)", "o$.zero_grad(); (p$ * x.detach()).sum().backward(); o$.step(); x = x * p$.detach()", ("optim.SGD.step = lambda self: None", "optim.SGD.step = _w$", "o$.param_groups[0]['lr'] = 0.3")),
    Own("function_of_autograd", _SELF, "x = O$.apply(x)", ("O$.k = 3.0", "O$.forward = staticmethod(lambda ctx, x: x * 5)", "O$.k = -1.0")),
    Own("gradient_of_a_function", f"{_SELF}\np$ = param(1)", "(g,) = torch.autograd.grad(O$.apply(p$ * x.detach()).sum(), p$); x = x + g", ("O$.k = 3.0", "O$.backward = staticmethod(lambda ctx, g: g * 7)", "p$.data.mul_(2.0)")),
    Own("attribute_of_ctx", "class O$(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, box):\n        ctx.k = box[0]\n        return x * ctx.k\n    @staticmethod\n    def backward(ctx, g):\n        return g * ctx.k, None\nbox$ = [2.0]",
        "x = O$.apply(x, box$)", ("box$[0] = 3.0", "box$[0] = -1.0")),
    Own("checkpoint", "m$ = linear(1)\nk$ = 2.0", "x = torch.utils.checkpoint.checkpoint(lambda y: m$(y) * k$, x, use_reentrant=False).detach()", ("k$ = 3.0", "m$.bias = None", "m$ = linear(3)")),
    Own("function_of_a_gradient", "k$ = 2.0\ndef f$(y):\n    return (y * y * k$).sum()", "x = x + torch.func.grad(f$)(x)", ("k$ = 3.0", "f$ = lambda y: y.sum()")),
    Own("function_over_rows", "k$ = 2.0", "x = torch.func.vmap(lambda row: row * k$)(x)", ("k$ = 3.0", "k$ = -1.0")),
    Own("functional_call", "m$ = linear(1)\np$ = {'weight': data(5, 4, 4)}", "x = torch.func.functional_call(m$, p$, (x,)).detach()", ("p$['weight'] = data(7, 4, 4)", "p$['bias'] = data(8, 4)", "p$.clear()", "m$.bias = None")),
    Own("parametrized", "m$ = linear(1)\nclass P$(nn.Module):\n    k = 2.0\n    def forward(self, w):\n        return w * self.k\ntorch.nn.utils.parametrize.register_parametrization(m$, 'weight', P$())",
        "x = m$(x).detach()", ("m$.parametrizations.weight[0].k = 3.0", "P$.k = -1.0", "m$.parametrizations.weight.original.data.mul_(2.0)", "torch.nn.utils.parametrize.remove_parametrizations(m$, 'weight')")),
    Own("weight_norm", "m$ = torch.nn.utils.parametrizations.weight_norm(linear(1))", "x = m$(x).detach()", ("m$.parametrizations.weight.original0.data.mul_(2.0)", "m$.bias = None")),
    Own("parameters_in_a_list", "m$ = nn.ParameterList([param(1), param(2)])", "x = x * sum(p.detach() for p in m$)", ("m$.append(param(3))", "m$[0] = param(4)", "m$[0].data.mul_(2.0)", "m$.user = 1")),
    Own("parameters_in_a_dict", "m$ = nn.ParameterDict({'a': param(1)})", "x = x * sum(p.detach() for p in m$.values())", ("m$['b'] = param(3)", "m$['a'] = param(4)", "m$.pop('a')", "m$.clear()")),
    Own("data_set", "d$ = torch.utils.data.TensorDataset(data(1, 5, 4))", "x = x + d$[1][0] + len(d$)", ("d$.tensors = (data(9, 6, 4),)", "d$.tensors[0].add_(1.0)", "d$ = torch.utils.data.TensorDataset(data(3, 3, 4))")),
    Own("loader", "d$ = torch.utils.data.TensorDataset(data(1, 4, 4))\nl$ = torch.utils.data.DataLoader(d$, batch_size=2)", "x = x + sum(b[0].sum(0) for b in l$)", ("d$.tensors[0].add_(1.0)", "l$ = torch.utils.data.DataLoader(d$, batch_size=4)", "l$.dataset.tensors = (data(9, 4, 4),)")),
    Own("schedule", "o$ = optim.SGD([param(1)], lr=0.5)\ns$ = optim.lr_scheduler.StepLR(o$, 1, 0.5)", "x = x * s$.get_last_lr()[0] * s$.gamma", ("o$.step(); s$.step()", "s$.gamma = 0.25", "s$._last_lr = [3.0]", "s$.step_size = 7", "s$.base_lrs[0] = 5.0")),
    Own("schedule_by_a_function", "k$ = 0.5\no$ = optim.SGD([param(1)], lr=0.5)\ns$ = optim.lr_scheduler.LambdaLR(o$, lambda n: k$ ** n)", "x = x * s$.lr_lambdas[0](2)", ("k$ = 0.25", "s$.lr_lambdas[0] = lambda n: 3.0")),
    Own("average_of_a_model", "m$ = linear(1)\na$ = optim.swa_utils.AveragedModel(m$)", "x = a$(x).detach()", ("a$.update_parameters(m$)", "m$.weight.data.mul_(2.0); a$.update_parameters(m$)", "a$.module = linear(3)", "a$.module.bias = None", "a$.n_averaged.zero_()")),
    Own("average_inside", "m$ = linear(1)\na$ = optim.swa_utils.AveragedModel(m$, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9))", "m$.weight.data.mul_(0.9); a$.update_parameters(m$); x = a$(x).detach()",
        ("a$.multi_avg_fn = optim.swa_utils.get_ema_multi_avg_fn(0.5)", "a$.multi_avg_fn = None", "a$.n_averaged.zero_()", "m$.weight.data.mul_(3.0)"), refuses=True),
    Own("average_by_a_function", "m$ = linear(1)\nk$ = 0.5\na$ = optim.swa_utils.AveragedModel(m$, avg_fn=lambda a, b, n: a * k$ + b * (1 - k$))", "m$.weight.data.mul_(0.9); a$.update_parameters(m$); x = a$(x).detach()", ("k$ = 0.25", "a$.avg_fn = lambda a, b, n: b"), refuses=True),
    Own("quasi_newton", "p$ = param(1)\no$ = optim.LBFGS([p$], lr=0.1, max_iter=2)\ndef f$():\n    o$.zero_grad()\n    loss = (p$ * p$).sum()\n    loss.backward()\n    return loss", "o$.step(f$); x = x * p$.detach()",
        ("o$.param_groups[0]['lr'] = 0.5", "o$.param_groups[0]['max_iter'] = 1", "o$.state.clear()", "p$.data.mul_(2.0)"), refuses=True),
    Own("version_of_the_library", "_w$ = torch.__version__", "x = x * (2.0 if str(torch.__version__) == str(_w$) else 3.0)", ("torch.__version__ = 'user'", "torch.__version__ = _w$")),
    Own("kind_of_a_tensor", "w$ = data(1, 4)", "x = x * w$.user if hasattr(w$, 'user') else x", ("w$.user = 2.0", "w$.user = 3.0", "del w$.user")),
    Own("name_of_a_weight", "m$ = linear(1)", "x = x * len([n for n, p in m$.named_parameters() if p.requires_grad])", ("m$.weight.requires_grad_(False)", "m$.bias = None", "m$.extra = param(5)", "m$.weight.requires_grad_(True)")),
    Own("text_of_a_module", "m$ = mlp()", "x = x * len(repr(m$)) * 0.1", ("m$[1] = nn.ReLU()", "m$.append(nn.Tanh())", "m$[0].in_features = 100")),
    Own("state_of_a_module", "m$ = linear(1)", "x = x + m$.state_dict()['weight'].sum() + len(m$.state_dict())", ("m$.weight.data.mul_(2.0)", "m$.register_buffer('b', data(1, 4))", "m$.bias = None")),
    Own("extra_state", "class M$(nn.Module):\n    k = 2.0\n    def get_extra_state(self):\n        return {'k': self.k}\nm$ = M$()", "x = x * m$.state_dict()['_extra_state']['k']", ("m$.k = 3.0", "M$.k = 4.0")),
    Own("modules_by_class", "m$ = mlp()", "x = x * (1 + sum(isinstance(one, nn.Tanh) for one in m$.modules()))", ("m$[1] = nn.ReLU()", "m$.append(nn.Tanh())", "m$[1].__class__ = nn.Sigmoid")),
    Own("hooks_by_kwargs", "m$ = linear(1)\n_h$ = []\nk$ = 2.0", "x = m$(x).detach()", ("_h$.append(m$.register_forward_pre_hook(lambda m, a, k: ((a[0] * k$,), k), with_kwargs=True))", "k$ = 3.0", "_h$.pop().remove()")),
    Own("hook_of_the_optimizer", "p$ = param(1)\no$ = optim.SGD([p$], lr=0.1)\nk$ = 1.0\n_h$ = [o$.register_step_pre_hook(lambda o, a, b: p$.grad.mul_(k$) and None)]", "p$.grad = None; (p$ * x.detach()).sum().backward(); o$.step(); x = x * p$.detach()",
        ("k$ = 0.5", "_h$.pop().remove()", "k$ = 2.0"), refuses=True),
    Own("hook_of_all_optimizers", "p$ = param(1)\no$ = optim.SGD([p$], lr=0.1)\n_h$ = []", "p$.grad = None; (p$ * x.detach()).sum().backward(); o$.step(); x = x * p$.detach()",
        ("_h$.append(torch.optim.optimizer.register_optimizer_step_pre_hook(lambda o, a, b: o.param_groups[0].update(lr=0.3)))", "_h$.pop().remove()", "o$.param_groups[0]['lr'] = 0.2"), writes=True),
)  # fmt: skip

FILES = (
    _file("loaded", "torch.save(torch.tensor(v), _p$)", "torch.load(_p$)"),
    _file("loaded_state", "torch.save({'k': v}, _p$)", "torch.load(_p$)['k']"),
    _file("loaded_into_a_module", "m$ = linear(1)\n    m$.weight.data.mul_(v)\n    torch.save(m$.state_dict(), _p$)", "torch.load(_p$)['weight'].sum()"),
    _file("by_numpy", "np.save(_p$ + '.npy', np.array([v]))", "float(np.load(_p$ + '.npy')[0])"),
    _file("by_a_map", "np.full(2, v).tofile(_p$)", "float(np.memmap(_p$, 'f8')[0])"),
    _file("by_fromfile", "np.full(2, v).tofile(_p$)", "float(np.fromfile(_p$)[0])"),
    _file("by_json", "json.dump({'k': v}, open(_p$, 'w'))", "json.load(open(_p$))['k']"),
    _file("by_pickle", "pickle.dump(v, open(_p$, 'wb'))", "pickle.load(open(_p$, 'rb'))"),
    _file("by_path", "__import__('pathlib').Path(_p$).write_text(str(v))", "float(__import__('pathlib').Path(_p$).read_text())"),
    _file("by_bytes", "open(_p$, 'wb').write(str(v).encode())", "float(open(_p$, 'rb').read())"),
    _file("by_io", "open(_p$, 'w').write(str(v))", "float(io.open(_p$).read())"),
    _file("by_os", "open(_p$, 'w').write(str(v))", "float(os.read(os.open(_p$, os.O_RDONLY), 10))"),
    _file("size", "open(_p$, 'w').write('a' * int(abs(v) * 10))", "os.path.getsize(_p$)"),
    _file("stat", "open(_p$, 'w').write('a' * int(abs(v) * 10))", "os.stat(_p$).st_size"),
    _file("names", "open(_p$ + str(v), 'w').close()", "len(os.listdir(os.path.dirname(_p$)))"),
    _file("glob", "open(_p$ + str(v), 'w').close()", "len(__import__('glob').glob(_p$ + '*'))"),
    _file("walk", "open(_p$ + str(v), 'w').close()", "sum(len(f) for _, _, f in os.walk(os.path.dirname(_p$)))"),
    _file("by_path_names", "open(_p$ + str(v), 'w').close()", "len([*__import__('pathlib').Path(_p$).parent.iterdir()])"),
    _file("lines", "open(_p$, 'w').write(str(v))", "float(next(open(_p$)))"),
    _file("csv", "open(_p$, 'w').write(f'{v},1')", "float(next(__import__('csv').reader(open(_p$)))[0])"),
    _file("config", "open(_p$, 'w').write(f'[a]\\nk={v}')", "float((lambda c: (c.read(_p$), c['a']['k'])[1])(__import__('configparser').ConfigParser()))"),
    _file("buffer", "globals().update(b$=io.BytesIO(str(v).encode()))", "float(__import__('program').b$.getvalue())"),
    _file("buffer_loaded", "b = io.BytesIO()\n    torch.save(torch.tensor(v), b)\n    globals().update(b$=b.getvalue())", "torch.load(io.BytesIO(__import__('program').b$))"),
    _file("executed", "open(_p$, 'w').write(f'k = {v}')", "(lambda d: (exec(open(_p$).read(), d), d['k'])[1])({})"),
    _file("imported", "__import__('sys').modules.update(fuzz_new=types.SimpleNamespace(k=v))", "__import__('fuzz_new').k"),
    _file("archive", "(lambda z: (z.writestr('k', str(v)), z.close()))(__import__('zipfile').ZipFile(_p$, 'w'))", "float(__import__('zipfile').ZipFile(_p$).read('k'))"),
    Own("writes_a_file", _FILE.format(put="open(_p$, 'w').write('a' * int(abs(v) * 4))"), "x = x * (1 + os.path.getsize(_p$)); open(_p$, 'a').write('a')", ("put$(2.0)",), writes=True),
    Own("saves", "_p$ = os.path.join(tempfile.mkdtemp(), 'k')\nn$ = [0]", "n$[0] += 1; torch.save({'n': n$[0]}, _p$); x = x * torch.load(_p$)['n']", (), writes=True),
    Own("saves_a_tensor", "_p$ = os.path.join(tempfile.mkdtemp(), 'k')\nw$ = data(1, 4)", "torch.save(w$, _p$); x = x * torch.load(_p$)", ("w$.add_(1.0)", "w$ = data(3, 4)"), writes=True, refuses=True),
    Own("summary", "import importlib\n_t$ = importlib.import_module(torch.__name__ + '.utils.tensorboard')\n_p$ = tempfile.mkdtemp()\n_w$ = _t$.SummaryWriter(_p$)\nk$ = 1.0\nclass S$:\n    @property\n    def __dict__(self):\n        _w$.flush()\n"
        "        return {'size': sum(os.path.getsize(os.path.join(_p$, n)) for n in os.listdir(_p$))}\nseen$ = S$()", "_w$.add_scalar('k', k$, 1); x = x * k$", ("k$ = 2.0", "k$ = 3.0"), writes=True),
)  # fmt: skip

_LOADED = "sys.modules['helper$']"
PYTHON = (
    Own("module_swapped", "_m$ = types.ModuleType('helper$')\n_m$.k = 2.0\ndef f$():\n    import helper$\n    return helper$.k", "x = x * f$()", (f"{_LOADED} = _m$", "_m$.k = 3.0", f"{_LOADED}.k = -1.0", f"{_LOADED} = types.SimpleNamespace(k=4.0)"), modules={"helper$": _HELPER}),
    Own("name_of_a_module_swapped", "_m$ = types.ModuleType('helper$')\n_m$.k = 2.0\ndef f$():\n    from helper$ import k\n    return k", "x = x * f$()", (f"{_LOADED} = _m$", "_m$.k = 3.0", f"{_LOADED}.k = -1.0"), modules={"helper$": _HELPER}),
    Own("submodule_swapped", "_m$ = types.ModuleType('helper$')\nsys.modules['helper$.deep'] = _m$\n_m$.k = 2.0\nhelper$.__path__ = []\nhelper$.deep = _m$\ndef f$():\n    import helper$.deep as deep\n    return deep.k", "x = x * f$()",
        ("_m$.k = 3.0", "helper$.deep = types.SimpleNamespace(k=5.0)", "sys.modules['helper$.deep'] = types.SimpleNamespace(k=6.0)"), modules={"helper$": _HELPER}),
    Own("module_by_a_text", "name$ = 'helper$'", "x = x * __import__(name$).k", (f"{_LOADED} = types.SimpleNamespace(k=4.0)", f"{_LOADED}.k = -1.0"), modules={"helper$": _HELPER}),
    Own("module_that_may_be_there", "def f$():\n    try:\n        import fuzz_new\n    except ImportError:\n        return 1.0\n    return 2.0", "x = x * f$()", ("sys.modules['fuzz_new'] = types.ModuleType('fuzz_new')", "sys.modules.pop('fuzz_new', None)", "sys.modules['fuzz_new'] = None")),
    Own("all_of_a_module", "", "x = x * sum(v for v in vars(helper$).values() if isinstance(v, float))", ("helper$.k = 3.0", "helper$.n = 1.0", "del helper$.k"), modules={"helper$": _HELPER}),
    Own("finalizer", "class P$:\n    pass\n_k$ = P$()\n_b$ = weakref.finalize(_k$, len, ())", "x = x * (2.0 if _b$.alive else 3.0)", ("_k$ = None", "_b$()", "_b$.detach()", "_k$ = P$(); _b$ = weakref.finalize(_k$, len, ())")),
    Own("weak_set", "class P$:\n    pass\n_k$ = [P$(), P$()]\n_b$ = weakref.WeakSet(_k$)", "x = x * len(_b$)", ("_k$.pop()", "_b$.add(P$)", "_k$ = [P$()]; _b$ = weakref.WeakSet(_k$)")),
    Own("weak_keys", "class P$:\n    pass\n_k$ = P$()\n_b$ = weakref.WeakKeyDictionary()\n_b$[_k$] = 2.0", "x = x * sum(_b$.values())", ("_b$[_k$] = 3.0", "_k$ = None", "_k$ = P$(); _b$[_k$] = 4.0")),
    Own("number_of_weak_references", "class P$:\n    pass\n_k$ = P$()\n_h$ = []", "x = x * (1 + weakref.getweakrefcount(_k$))", ("_h$.append(weakref.ref(_k$))", "_h$.append(weakref.proxy(_k$))", "_h$.clear()")),
    Own("subclasses", "class P$:\n    pass\nkeep$ = []", "x = x * (1 + len(P$.__subclasses__()))", ("keep$.append(type('Q', (P$,), {}))", "keep$.append(type('R', (P$,), {}))")),
    Own("subclasses_of_subclasses", "class P$:\n    k = 2.0\nkeep$ = [type('Q', (P$,), {})]", "x = x * sum(q.k for p in P$.__subclasses__() for q in [p, *p.__subclasses__()])", ("keep$.append(type('R', (P$,), {'k': 3.0}))", "keep$.append(type('S', (keep$[0],), {'k': 5.0}))", "keep$[0].k = 7.0")),
    Own("registry_of_subclasses", "class P$:\n    known = {}\n    def __init_subclass__(cls):\n        P$.known[cls.__name__] = cls\nkeep$ = []", "x = x * (1 + len(P$.known))", ("keep$.append(type('Q', (P$,), {}))", "keep$.append(type('R', (P$,), {}))")),
    Own("protocol", "@typing.runtime_checkable\nclass P$(typing.Protocol):\n    def f(self): ...\nclass Q$:\n    pass\n_b$ = Q$()", "x = x * (2.0 if isinstance(_b$, P$) else 3.0)", ("Q$.f = lambda self: 1", "_b$.f = lambda: 1", "del Q$.f", "_b$ = 1")),
    Own("protocol_of_a_number", "@typing.runtime_checkable\nclass P$(typing.Protocol):\n    f: int\nclass Q$:\n    pass\n_b$ = Q$()", "x = x * (2.0 if isinstance(_b$, P$) else 3.0)", ("Q$.f = 1", "_b$.f = 1", "_b$ = Q$()")),
    Own("class_that_checks", "class M$(type):\n    k = True\n    def __instancecheck__(cls, one):\n        return cls.k\nclass P$(metaclass=M$):\n    pass", "x = x * (2.0 if isinstance(1, P$) else 3.0)", ("M$.k = False", "P$.k = 0", "M$.__instancecheck__ = lambda cls, one: one > 5")),
    Own("subclass_hook", "class P$(abc.ABC):\n    @classmethod\n    def __subclasshook__(cls, kind):\n        return t$[0]\nt$ = [True]", "x = x * (2.0 if issubclass(int, P$) else 3.0)", ("P$.register(int)",)),
    Own("abstract_methods", "class P$(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...\nclass Q$(P$):\n    pass\ndef f$():\n    try:\n        Q$()\n    except TypeError:\n        return 2.0\n    return 3.0", "x = x * f$()", ("Q$.f = lambda self: 1; abc.update_abstractmethods(Q$)", "Q$.__abstractmethods__ = frozenset()")),
    Own("precision_of_decimals", "_w$ = decimal.getcontext().prec", "x = x * float(decimal.Decimal(1) / decimal.Decimal(3) * 100)", ("decimal.getcontext().prec = 2", "decimal.getcontext().prec = 1", "decimal.getcontext().prec = _w$")),
    Own("rounding_of_decimals", "_w$ = decimal.getcontext().rounding", "x = x * float(decimal.Decimal('2.5').to_integral_value())", ("decimal.getcontext().rounding = decimal.ROUND_UP", "decimal.getcontext().rounding = _w$")),
    Own("context_of_decimals", "c$ = decimal.Context(prec=3)", "x = x * float(c$.divide(decimal.Decimal(1), decimal.Decimal(3)) * 100)", ("c$.prec = 1", "c$.rounding = decimal.ROUND_UP", "c$ = decimal.Context(prec=2)")),
    Own("errors_of_numpy", "_w$ = np.geterr()['divide']", "x = x * (2.0 if np.geterr()['divide'] == 'ignore' else 3.0)", ("np.seterr(divide='ignore')", "np.seterr(divide='raise')", "np.seterr(divide=_w$)")),
    Own("errors_of_numpy_raised", "_w$ = np.geterr()['divide']\ndef f$():\n    try:\n        np.float64(1.0) / np.zeros(1)\n    except FloatingPointError:\n        return 2.0\n    return 3.0", "x = x * f$()", ("np.seterr(divide='raise')", "np.seterr(divide='ignore')", "np.seterr(divide=_w$)")),
    Own("text_of_numpy", "_w$ = np.get_printoptions()['precision']", "x = x * len(str(np.array([1 / 3]))) * 0.1", ("np.set_printoptions(precision=2)", "np.set_printoptions(precision=4)", "np.set_printoptions(precision=_w$)")),
    Own("filters_of_warnings", "def f$():\n    try:\n        warnings.warn('user')\n    except UserWarning:\n        return 2.0\n    return 3.0", "x = x * f$()", ("warnings.simplefilter('error')", "warnings.simplefilter('ignore')")),
    Own("builtin_replaced", "import builtins\n_w$ = builtins.ascii", "x = x * len(ascii('abc'))", ("builtins.ascii = lambda one: 'another'", "builtins.ascii = _w$")),
    Own("builtin_hidden", "", "x = x * (round(2.4) if True else 1)", ("round = lambda v: 7", "del round")),
    Own("code_of_a_function", "def f$():\n    return 2.0", "x = x * f$()", ("f$.__code__ = (lambda: 3.0).__code__", "f$.__code__ = (lambda: 5.0).__code__")),
    Own("name_of_a_function", "def f$():\n    return 2.0", "x = x * len(f$.__name__) * len(f$.__qualname__)", ("f$.__name__ = 'another'", "f$.__qualname__ = 'another'")),
    Own("document_of_a_function", "def f$():\n    '''Text.'''", "x = x * len(f$.__doc__ or '')", ("f$.__doc__ = 'another text'", "f$.__doc__ = None")),
    Own("signature_of_a_function", "import inspect\ndef f$(a, b=1):\n    return 2.0", "x = x * (1 + len(inspect.signature(f$).parameters))", ("f$.__signature__ = inspect.signature(lambda: 1)", "f$.__defaults__ = None", "f$.__wrapped__ = lambda a: 1", "f$ = lambda: 1")),
    Own("function_with_own_globals", "_g$ = {'k': 2.0, '__builtins__': __builtins__}\nexec('def f():\\n    return k', _g$)\nf$ = _g$['f']", "x = x * f$()", ("_g$['k'] = 3.0", "_g$['f'] = lambda: 7.0", "f$.__globals__['k'] = 5.0")),
    Own("evaluated", "k$, t$ = 2.0, 'k$ * 2'", "x = x * eval(t$, {'k$': k$})", ("k$ = 3.0", "t$ = 'k$ * 5'")),
    Own("annotations", "class P$:\n    a: int = 1", "x = x * (1 + len(typing.get_type_hints(P$)))", ("P$.__annotations__['b'] = int", "P$.__annotations__.clear()")),
    Own("fields_of_a_class", "@dataclasses.dataclass\nclass P$:\n    a: int = 1", "x = x * (1 + len(dataclasses.fields(P$)))", ("P$.__dataclass_fields__['b'] = P$.__dataclass_fields__['a']", "P$ = dataclasses.make_dataclass('P', ['a', 'b', 'c'])")),
    Own("members_of_an_enum", "class E$(enum.Enum):\n    A = 1\n    B = 2", "x = x * sum(e.value for e in E$)", ("E$.A._value_ = 5", "E$ = enum.Enum('E', 'A B C')")),
    Own("value_of_an_enum", "class E$(enum.Enum):\n    A = 1", "x = x * E$.A.value", ("E$.A._value_ = 5", "E$._value2member_map_[7] = E$.A")),
    Own("look_up_of_an_enum", "class E$(enum.Enum):\n    A = 1\n    @classmethod\n    def _missing_(cls, value):\n        return cls.A\n    k = property(lambda self: k$)\nk$ = 2.0", "x = x * E$(9).k", ("k$ = 3.0", "E$._missing_ = None")),
    Own("dispatch", "@functools.singledispatch\ndef f$(v):\n    return 2.0\nv$ = 1", "x = x * f$(v$)", ("f$.register(int, lambda v: 3.0)", "v$ = 'a'", "f$.register(str, lambda v: 5.0)")),
    Own("dispatch_of_a_method", "class P$:\n    @functools.singledispatchmethod\n    def f(self, v):\n        return 2.0\n_b$ = P$()", "x = x * _b$.f(1)", ("P$.f.register(int, lambda self, v: 3.0)", "P$.f = lambda self, v: 5.0")),
    Own("exit_stack", "k$ = 2.0\ndef f$():\n    with contextlib.ExitStack() as s:\n        return s.enter_context(contextlib.nullcontext(k$))", "x = x * f$()", ("k$ = 3.0",)),
    Own("copy_by_a_table", "class P$:\n    k = 2.0\nimport copyreg\n_b$ = P$()", "x = x * copy.copy(_b$).k", ("copyreg.pickle(P$, lambda p: (types.SimpleNamespace, (), {'k': 3.0}))", "_b$.k = 4.0", "P$.__copy__ = lambda self: types.SimpleNamespace(k=5.0)")),
    Own("logging_disabled", "_l$ = logging.getLogger('fuzz$')", "x = x * (2.0 if _l$.isEnabledFor(logging.ERROR) else 3.0)", ("logging.disable(logging.CRITICAL)", "logging.disable(logging.NOTSET)", "_l$.setLevel(logging.CRITICAL)")),
    Own("name_of_a_thread", "_w$ = threading.current_thread().name", "x = x * len(threading.current_thread().name)", ("threading.current_thread().name = 'a'", "threading.current_thread().name = _w$")),
    Own("lock", "_b$ = threading.Lock()", "x = x * (2.0 if _b$.locked() else 3.0)", ("_b$.acquire(False)", "_b$.release()")),
    Own("event", "_b$ = threading.Event()", "x = x * (2.0 if _b$.is_set() else 3.0)", ("_b$.set()", "_b$.clear()")),
    Own("semaphore", "_b$ = threading.Semaphore(3)", "x = x * (1 + _b$._value)", ("_b$.acquire(False)", "_b$.release()")),
    Own("generator_frame", "def g$():\n    k = 2.0\n    while True:\n        k = (yield k) or k\n_b$ = g$()\nnext(_b$)", "x = x * _b$.gi_frame.f_locals['k']", ("_b$.send(3.0)", "_b$.send(5.0)")),
    Own("signal_handler", "import signal\n_w$ = signal.getsignal(signal.SIGUSR1)", "x = x * (2.0 if signal.getsignal(signal.SIGUSR1) == _w$ else 3.0)", ("signal.signal(signal.SIGUSR1, lambda *a: None)", "signal.signal(signal.SIGUSR1, _w$)")),
    Own("arguments_of_the_process", "_w$ = list(sys.argv)", "x = x * (1 + len(sys.argv))", ("sys.argv.append('a')", "sys.argv[:] = _w$")),
    Own("path_of_modules", "_w$ = list(sys.path)", "x = x * (1 + len(sys.path))", ("sys.path.append('/nowhere')", "sys.path[:] = _w$")),
    Own("standard_output", "_w$ = sys.stdout", "x = x * (2.0 if sys.stdout is _w$ else 3.0)", ("sys.stdout = io.StringIO()", "sys.stdout = _w$")),
    Own("length_of_integers", "_w$ = sys.get_int_max_str_digits()", "x = x * (2.0 if sys.get_int_max_str_digits() == _w$ else 3.0)", ("sys.set_int_max_str_digits(1000)", "sys.set_int_max_str_digits(_w$)")),
    Own("interned", "t$ = ''.join(['user', str(len(sys.argv) * 0)])\nu$ = ''.join(['user', '0'])", "x = x * (2.0 if t$ is u$ else 3.0)", ("t$ = u$", "t$ = ''.join(['user', '0'])")),
    Own("identity_of_equals", "a$, b$ = (1, 2.0), tuple([1, 2.0])", "x = x * (2.0 if a$ is b$ else 3.0)", ("b$ = a$", "b$ = tuple([1, 2.0])")),
    Own("identity_of_an_argument", "a$ = [1.0]\ndef f$(one, other):\n    return one is other\nb$ = [1.0]", "x = x * (2.0 if f$(a$, b$) else 3.0)", ("b$ = a$", "b$ = [1.0]")),
    Own("order_of_a_set", "s$ = {'a', 'b', 'c'}", "x = x * len(''.join(s$))", ("s$.add('dd')", "s$.discard('a')")),
    Own("module_of_a_name", "class P$:\n    k = 2.0\n    def f(self):\n        return __class__.k\n_b$ = P$()", "x = x * _b$.f()", ("P$.k = 3.0", "_b$.k = 5.0")),
    Own("base_of_a_class", "class P$:\n    k = 2.0\nclass Q$:\n    k = 3.0\nclass R$(P$):\n    pass", "x = x * R$.k * R$().k", ("R$.__bases__ = (Q$,)", "Q$.k = 5.0", "P$.k = 7.0")),
    Own("bases_of_a_class", "class P$:\n    k = 2.0\nclass R$(P$):\n    pass", "x = x * len(R$.__bases__) * len(R$.__mro__) * len(P$.__name__)", ("P$.__name__ = 'another'", "R$.__bases__ = (P$, collections.abc.Sized)")),
    Own("attribute_of_a_type", "class P$:\n    pass", "x = x * (2.0 if P$.__doc__ else 3.0)", ("P$.__doc__ = 'text'", "P$.__doc__ = None")),
    Own("iterator_of_a_function", "k$ = 2.0\nf$ = iter(lambda: k$, None)", "x = x * next(f$)", ("k$ = 3.0",)),
    Own("repeat", "_r$ = itertools.repeat(2.0)", "x = x * next(_r$)", ("_r$ = itertools.repeat(3.0)",)),
    Own("accumulated", "t$ = [1.0, 2.0]", "x = x * [*itertools.accumulate(t$)][-1]", ("t$.append(3.0)", "t$[0] = 5.0")),
    Own("match_of_a_text", "_m$ = re.match(b'.+', bytearray(b'ab'))", "x = x * len(_m$.group())", ("_m$ = re.match(b'.+', bytearray(b'abcd'))",)),
    Own("match_of_a_buffer", "_t$ = bytearray(b'ab')\n_m$ = re.match(b'.+', _t$)", "x = x * _m$.group()[0]", ("_t$[0] = 65", "_t$[0] = 66")),
    Own("memory_of_an_array", "_t$ = np.array([2.0, 3.0])\n_m$ = memoryview(_t$)", "x = x * _m$[0]", ("_t$[0] = 5.0", "_t$[:] = 7.0")),
    Own("array_from_a_buffer", "_t$ = bytearray(8)\n_m$ = np.frombuffer(_t$, 'u1')", "x = x * (1 + float(_m$.sum()))", ("_t$[0] = 3", "_t$[1] = 5")),
    Own("iterator_of_an_array", "_t$ = np.array([2.0, 3.0])\n_m$ = _t$.flat", "x = x * float(_m$[0])", ("_t$[0] = 5.0",)),
    Own("array_by_an_interface", "class P$:\n    k = 2.0\n    def __array__(self, *a, **k):\n        return np.array([self.k])\n_b$ = P$()", "x = x * float(np.asarray(_b$)[0])", ("_b$.k = 3.0", "P$.k = 5.0", "P$.__array__ = lambda self, *a, **k: np.array([7.0])")),
    Own("struct_of_c", "import ctypes\n_b$ = ctypes.c_double(2.0)", "x = x * _b$.value", ("_b$.value = 3.0", "_b$ = ctypes.c_double(5.0)")),
    Own("array_of_c", "import ctypes\n_b$ = (ctypes.c_double * 2)(1.0, 2.0)", "x = x * _b$[1]", ("_b$[1] = 3.0",)),
    Own("namespace_of_arguments", "import argparse\n_b$ = argparse.Namespace(k=2.0)", "x = x * _b$.k", ("_b$.k = 3.0", "vars(_b$)['k'] = 5.0")),
    Own("template", "_b$ = string.Template('$' 'k')\nk$ = 2.0", "x = x * float(_b$.substitute(k=k$))", ("k$ = 3.0", "_b$.template = '7'")),
    Own("formatter", "class P$(string.Formatter):\n    def get_value(self, key, args, kwargs):\n        return k$\n_b$ = P$()\nk$ = 2.0", "x = x * float(_b$.format('{0}'))", ("k$ = 3.0", "P$.get_value = lambda self, *a: 7.0")),
    Own("comparison_by_a_key", "k$ = 1.0\nf$ = functools.cmp_to_key(lambda a, b: (a - b) * k$)", "x = x * sorted([1.0, 2.0, 3.0], key=f$)[0]", ("k$ = -1.0", "f$ = None")),
    Own("total_ordering", "@functools.total_ordering\nclass P$:\n    def __init__(self, k):\n        self.k = k\n    def __eq__(self, other):\n        return self.k == other.k\n    def __lt__(self, other):\n        return self.k < other.k\na$, b$ = P$(1.0), P$(2.0)", "x = x * (2.0 if a$ >= b$ else 3.0)", ("a$.k = 5.0", "P$.__lt__ = lambda a, b: False")),
    Own("parser", "import ast\nt$ = '2.0'", "x = x * ast.literal_eval(t$)", ("t$ = '3.0'",)),
    Own("interrupted", "stop$ = False\nw$ = data(1, 4)", "w$.mul_(0.5); x = x * stop_(stop$); w$.add_(1.0); x = x * w$", ("stop$ = True", "stop$ = False", "w$.add_(1.0)")),
    Own("interrupted_by_a_signal", "import signal\nstop$ = False\nw$ = data(1, 4)\ndef f$():\n    if stop$:\n        signal.raise_signal(signal.SIGINT)", "w$.mul_(0.5); f$(); w$.add_(1.0); x = x * w$", ("stop$ = True", "stop$ = False", "w$.add_(1.0)")),
    Own("interrupt_that_is_caught", "stop$ = False\ndef f$():\n    try:\n        return stop_(stop$)\n    except KeyboardInterrupt:\n        return 7.0", "x = x * f$()", ("stop$ = True", "stop$ = False")),
    Own("exit_that_is_caught", "stop$ = False\ndef f$():\n    try:\n        if stop$:\n            sys.exit(3)\n    except SystemExit as e:\n        return e.code\n    return 2.0", "x = x * f$()", ("stop$ = True", "stop$ = False")),
    Own("interrupted_while_it_counts", "n$ = [0]\nw$ = data(1, 4)", "n$[0] += 1; w$.add_(1.0); x = x * stop_(n$[0] % 3 == 0) * w$", ("n$[0] = 0", "w$.zero_()"), writes=True),
    Own("interrupted_in_an_update", "p$ = param(1)\no$ = optim.SGD([p$], lr=0.1, momentum=0.9)\nstop$ = False", "o$.zero_grad(); (p$ * x.detach()).sum().backward(); stop_(stop$); o$.step(); x = x * p$.detach()", ("stop$ = True", "stop$ = False", "p$.grad = None")),
)  # fmt: skip

ALL = (*OBJECTS, *OBJECTS, *FILES, *PYTHON)
