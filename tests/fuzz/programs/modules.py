"""What may change about a module between two calls of a step that calls it."""

from dataclasses import dataclass

from tests.fuzz.programs.program import Program


@dataclass(frozen=True, slots=True)
class Edit:
    """`setup` makes `m$`, which takes (3, 4) to (3, 4); `edits` are statements that change what it does."""

    name: str
    setup: str
    edits: tuple[str, ...]


MLP = "m$ = mlp()"
LIST = """
class M$(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([linear(0), linear(1)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x).tanh()
        return x
m$ = M$()"""
DICT = """
class M$(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({'a': linear(0), 'b': linear(1)})
    def forward(self, x):
        for name, layer in self.layers.items():
            x = layer(x) * len(name)
        return x
m$ = M$()"""
NET = """
class Base$(nn.Module):
    gain = 1.0
    def body(self, x):
        return self.fc(x) * self.scale + self.shift * self.gain
class M$(Base$):
    table = {'gain': 1.0}
    def __init__(self):
        super().__init__()
        self.fc = linear(0)
        self.act = torch.tanh
        self.scale = 0.5
        self.shift = 1
        self.options = {'scale': 1.0, 'deep': {'list': [1.0, 2.0]}}
        self.sizes = [1, 2]
        self.config = types.SimpleNamespace(scale=1.0, inner=types.SimpleNamespace(scale=1.0))
        self.name = 'a'
        self.register_buffer('mean', data(5, 4))
        self.register_parameter('none', None)
        self.plain = data(6, 4)
        self.skip = None
    def forward(self, x):
        x = self.act(self.body(x)) + self.mean + self.plain
        x = x * self.options['scale'] * self.options['deep']['list'][0] + sum(self.sizes)
        x = x * self.config.scale + self.config.inner.scale + len(self.name) * self.table['gain']
        x = x * 2 if self.training else x
        x = x + self.none if self.none is not None else x
        return x if self.skip is None else self.skip(x)
    @property
    def twice(self):
        return self.scale * 2
m$ = M$()"""


def _on(setup: str, **edits: str | tuple[str, ...]) -> tuple[Edit, ...]:
    return tuple(Edit(name, setup, (edit,) if isinstance(edit, str) else edit) for name, edit in edits.items())


EDITS = (
    *_on(
        MLP,
        replaced_by_index=("m$[1] = nn.ReLU()", "m$[1] = nn.Sigmoid()"),
        replaced_by_setattr="setattr(m$, '1', nn.ReLU())",
        replaced_in_modules="m$._modules['1'] = nn.ReLU()",
        replaced_layer=("m$[0] = linear(5, 3, 4)", "m$[2] = linear(7, 4, 3)"),
        appended=("m$.append(nn.ReLU())", "m$.append(linear(3))"),
        extended="m$.extend([nn.ReLU(), nn.Tanh()])",
        inserted=("m$.insert(0, linear(3))", "m$.insert(1, nn.Sigmoid())"),
        popped="m$.append(nn.Tanh()); m$.pop(1)",
        deleted="del m$[1]",
        added_by_name="m$.add_module('last', nn.ReLU())",
        registered="m$.register_module('last', nn.ReLU())",
        reordered="m$._modules['0'], m$._modules['x'] = m$._modules.pop('0'), nn.ReLU(); m$._modules.move_to_end('0', last=False)"
                  " if hasattr(m$._modules, 'move_to_end') else m$._modules.update({k: m$._modules.pop(k) for k in ('1', '2', 'x')})",
        swapped="m$[1] = nn.Sequential(m$[1], nn.ReLU())",
        wrapped="m$ = nn.Sequential(m$, nn.Tanh())",
        replaced_wholly=("m$ = linear(4)", "m$ = mlp()"),
        forward="m$.forward = lambda x: x * 2",
        forward_of_a_child=("m$[1].forward = torch.relu", "m$[1].forward = torch.sigmoid", "del m$[1].forward"),
        call_of_a_child="m$[1].__class__ = nn.Sigmoid",
        evaluated=("m$.eval()", "m$.train()"),
        weight_in_place="with torch.no_grad():\n    m$[0].weight.mul_(2.0)",
        weight_by_data="m$[0].weight.data = data(9, 3, 4)",
        weight_data_in_place="m$[0].weight.data.mul_(3.0)",
        weight_data_item="m$[0].weight.data[0] = 1.0",
        weight_replaced="m$[0].weight = nn.Parameter(data(9, 3, 4))",
        weight_in_parameters="m$[0]._parameters['weight'] = nn.Parameter(data(9, 3, 4))",
        weight_of_another_shape="m$[0] = linear(1, 5, 4); m$[2] = linear(1, 4, 5)",
        bias_removed="m$[0].bias = None",
        bias_registered_anew="m$[0].register_parameter('bias', None)",
        bias_deleted_and_made="del m$[0].bias; m$[0].bias = param(4, 3)",
        tied="m$.append(m$[0]); m$[2] = linear(4, 4, 3); m$.append(linear(5, 4, 3))",
        loaded="m$.load_state_dict({k: v * 2 for k, v in m$.state_dict().items()})",
        loaded_by_assignment="m$.load_state_dict({k: (v * 2).detach() for k, v in m$.state_dict().items()}, assign=True)",
        copied="m$ = copy.deepcopy(m$); m$[0].weight.data.mul_(2.0)",
        frozen=("m$.requires_grad_(False)", "m$[0].requires_grad_(True)", "m$.requires_grad_(True)"),
        frozen_weight="m$[0].weight.requires_grad = False",
        converted=("m$.to(torch.float64).to(torch.float32)",),
        applied="m$.apply(lambda one: one.weight.data.fill_(0.1) if hasattr(one, 'weight') else None)",
        weight_by_init="nn.init.constant_(m$[0].weight, 0.2)",
        forward_hook=("m$.user = m$[0].register_forward_hook(lambda m, a, out: out * 2)", "m$.user.remove()"),
        forward_hook_with_kwargs="m$[0].register_forward_hook(lambda m, a, k, out: out * 2, with_kwargs=True)",
        forward_pre_hook="m$[0].register_forward_pre_hook(lambda m, a: (a[0] * 2,))",
        backward_hook="m$[0].register_full_backward_hook(lambda m, i, o: None)",
        instance_attribute_of_a_library_class="m$[1] = nn.LeakyReLU(0.1)",
    ),
    *_on(LIST,
        list_replaced="m$.layers[0] = linear(4)",
        list_appended="m$.layers.append(linear(2))",
        list_inserted="m$.layers.insert(0, linear(2))",
        list_deleted="del m$.layers[0]",
        list_popped="m$.layers.pop(0)",
        list_reversed="m$.layers = nn.ModuleList(reversed(list(m$.layers)))",
        list_slice="m$.layers = m$.layers[:1]",
        list_shared="m$.layers.append(m$.layers[0])",
        list_emptied="m$.layers = nn.ModuleList()",
        list_by_modules="m$._modules['layers'] = nn.ModuleList([linear(3)])",
        list_by_dict="m$.layers._modules['0'] = linear(3)",
        list_for_a_list="del m$.layers; m$.__dict__['layers'] = [linear(3)]",
    ),
    *_on(DICT,
        dict_replaced="m$.layers['a'] = linear(4)",
        dict_added="m$.layers['long'] = linear(2)",
        dict_deleted="del m$.layers['a']",
        dict_popped="m$.layers.pop('b')",
        dict_reordered="m$.layers['a'] = m$.layers.pop('a')",
        dict_cleared="m$.layers.clear()",
        dict_updated="m$.layers.update({'a': linear(3), 'ccc': linear(5)})",
        dict_renamed="m$.layers['long'] = m$.layers.pop('b')",
    ),
    *_on(NET,
        act=("m$.act = torch.relu", "m$.act = torch.sigmoid", "m$.act = lambda x: x * 3"),
        act_that_is_a_module=("m$.act = nn.ReLU()",),
        net_forward="m$.forward = lambda x: x * 3",
        net_forward_of_the_class="_old$ = M$.forward; M$.forward = lambda self, x: _old$(self, x) * 3",
        method_of_the_class="M$.body = lambda self, x: self.fc(x)",
        method_of_the_base="Base$.body = lambda self, x: self.fc(x) * 3",
        method_of_the_instance="m$.body = lambda x: x * 3",
        class_of_the_instance="class N$(M$):\n    def forward(self, x):\n        return self.fc(x)\nm$.__class__ = N$",
        float_attribute=("m$.scale = 2.0", "m$.scale = 2", "m$.scale = -1.0"),
        float_attribute_by_dict="m$.__dict__['scale'] = 2.0",
        float_attribute_by_vars="vars(m$).update(scale=2.0)",
        float_attribute_by_object="object.__setattr__(m$, 'scale', 2.0)",
        int_attribute=("m$.shift = 3", "m$.shift = 3.0"),
        text_attribute="m$.name = 'long'",
        class_attribute=("M$.gain = 3.0", "m$.gain = 4.0", "Base$.gain = 7.0"),
        class_attribute_of_the_base="Base$.gain = 3.0",
        class_table="M$.table['gain'] = 3.0",
        dict_attribute=("m$.options['scale'] = 3.0", "m$.options = {'scale': 4.0, 'deep': {'list': [1.0]}}"),
        deep_attribute=("m$.options['deep']['list'][0] = 3.0", "m$.options['deep']['list'].insert(0, 4.0)"),
        list_attribute=("m$.sizes.append(3)", "m$.sizes[0] = 5", "m$.sizes = (7, 8)"),
        config_attribute=("m$.config.scale = 3.0", "m$.config.inner.scale = 4.0", "m$.config.inner = m$.config"),
        flag="m$.training = False",
        buffer_in_place=("m$.mean.add_(1.0)", "m$.mean[0] = 5.0"),
        buffer_replaced="m$.mean = data(9, 4)",
        buffer_in_buffers="m$._buffers['mean'] = data(9, 4)",
        buffer_registered_anew="m$.register_buffer('mean', data(9, 4), persistent=False)",
        buffer_of_another_shape="m$.mean = data(9, 1)",
        buffer_by_data="m$.mean.data = data(9, 4)",
        tensor_attribute=("m$.plain = data(9, 4)", "m$.plain.mul_(2.0)"),
        tensor_attribute_by_dict="m$.__dict__['plain'] = data(9, 4)",
        parameter_that_was_none=("m$.none = param(3)", "m$.none = None"),
        parameter_in_parameters="m$._parameters['none'] = param(3)",
        module_that_was_none=("m$.skip = linear(3)", "m$.skip = nn.Tanh()"),
        module_in_modules="m$._modules['skip'] = nn.Tanh(); m$.__dict__.pop('skip', None)",
        function_that_was_none="m$.skip = lambda x: x * 3",
        child_replaced="m$.fc = linear(3)",
        child_for_a_function="del m$.fc; m$.fc = lambda x: x * 3",
        state="m$.__setstate__({**m$.__dict__, 'scale': 3.0})",
        many=("m$.scale = 2.0; m$.act = torch.relu; m$.mean.add_(1.0)", "m$.eval(); m$.sizes.append(1)"),
    ),
    Edit("dropout_rate", "m$ = nn.Sequential(linear(), nn.Dropout(0.0))\nm$.eval()", ("m$[1].p = 1.0; m$.train()", "m$[1].p = 0.0")),
    Edit("norm_momentum", "m$ = nn.BatchNorm1d(4)", ("m$.momentum = 0.5", "m$.eval()", "m$.running_mean.fill_(0.3)")),
    Edit("norm_statistics", "m$ = nn.BatchNorm1d(4)", ("m$.reset_running_stats()", "m$.running_var = torch.ones(4) * 2", "m$.train()")),
    Edit("norm_epsilon", "m$ = nn.LayerNorm(4)", ("m$.eps = 0.5", "m$.bias = None")),
    Edit("negative_slope", "m$ = nn.LeakyReLU(0.1)", ("m$.negative_slope = 0.5",)),
    Edit("padding_of_an_embedding", "m$ = nn.Sequential(linear(), nn.Hardtanh(-1.0, 1.0))", ("m$[1].max_val = 0.2", "m$[1].min_val = -0.1")),
    Edit("property_of_a_module", NET + "\nM$.forward = lambda self, x: x * self.twice", ("m$.scale = 2.0", "M$.twice = 7.0")),
    Edit("name_inside_forward", "k$ = 0.5\nclass M$(nn.Module):\n    def forward(self, x):\n        return x * k$\nm$ = M$()", ("k$ = 2.0", "k$ = 3.0")),
    Edit("function_inside_forward", "def f$(x):\n    return x * 2\nclass M$(nn.Module):\n    def forward(self, x):\n        return f$(x)\nm$ = M$()",
         ("def f$(x):\n    return x * 3",)),
    Edit("list_of_functions", "class M$(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fs = [torch.tanh]\n"
         "    def forward(self, x):\n        for f in self.fs:\n            x = f(x)\n        return x\nm$ = M$()",
         ("m$.fs.append(torch.sigmoid)", "m$.fs[0] = torch.relu")),
    Edit("getattr_of_a_module", "class M$(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.table = {'k': 0.5}\n"
         "    def __getattr__(self, name):\n        table = self.__dict__.get('table', {})\n"
         "        return table[name] if name in table else super().__getattr__(name)\n"
         "    def forward(self, x):\n        return x * self.k\nm$ = M$()", ("m$.table['k'] = 2.0", "m$.table = {'k': 3.0}")),
    Edit("module_that_is_chosen", "parts$ = [linear(0), linear(1)]\nat$ = 0\ndef m$(x):\n    return parts$[at$](x)",
         ("at$ = 1", "parts$.reverse()", "parts$.append(linear(3)); at$ = 2")),
    Edit("module_in_a_dict", "parts$ = {'a': linear(0)}\ndef m$(x):\n    for part in parts$.values():\n        x = part(x)\n    return x",
         ("parts$['b'] = linear(1)", "parts$['a'] = linear(3)", "del parts$['b']")),
    Edit("module_in_an_object", "a$ = types.SimpleNamespace(net=linear(0))\ndef m$(x):\n    return a$.net(x)", ("a$.net = linear(3)", "a$.net = torch.tanh")),
    Edit("module_by_getattr", "h$ = nn.Module()\nh$.a, h$.b = linear(0), linear(1)\nname$ = 'a'\ndef m$(x):\n    return getattr(h$, name$)(x)",
         ("name$ = 'b'", "h$.b = linear(3)")),
    Edit("modules_by_walk", MLP + "\ng$ = m$\ndef m$(x):\n    return x * len(list(g$.modules())) + sum(p.sum() for p in g$.parameters())",
         ("g$.append(linear(2))", "g$[0].bias = None")),
    Edit("children_by_walk", MLP + "\ng$ = m$\ndef m$(x):\n    for child in g$.children():\n        x = child(x)\n    return x",
         ("g$.append(nn.ReLU())", "g$[1] = nn.Sigmoid()")),
    Edit("named_parameters", MLP + "\ng$ = m$\ndef m$(x):\n    return x * sum(p.sum() * len(n) for n, p in g$.named_parameters())",
         ("g$[0].extra = param(1, 2)", "g$.append(linear(1))")),
    Edit("shared_twice", "one$ = linear(0)\nm$ = nn.Sequential(one$, nn.Tanh(), one$)", ("one$.weight.data.mul_(2.0)", "m$[2] = linear(1)", "one$.bias = None")),
    Edit("functional_weights", "ws$ = {'a': param(0, 4, 4)}\ndef m$(x):\n    return F.linear(x, ws$['a'])", ("ws$['a'] = param(3, 4, 4)", "ws$['a'].data.zero_()")),
    Edit("custom_function", "class Twice$(torch.autograd.Function):\n    k = 2.0\n    @staticmethod\n    def forward(ctx, x):\n        return x * Twice$.k\n"
         "    @staticmethod\n    def backward(ctx, g):\n        return g * Twice$.k\nfc$ = linear()\ndef m$(x):\n    return Twice$.apply(fc$(x))",
         ("Twice$.k = 3.0", "Twice$.k = 4.0")),
)  # fmt: skip

FORWARD = """
def step(x):
    with torch.no_grad():
        return m(x)
"""
TRAIN = """
w = param(2)  # None is near 0: such a column, once normalized, would be rounding alone.
opt = optim.SGD([w], lr=0.1, momentum=0.9)
def step(x):
    opt.zero_grad()
    loss = (m(x * w)).square().mean()
    loss.backward()
    opt.step()
    return loss.detach()
"""


def program(kind: str, edit: Edit, step: str) -> Program:
    edits = edit.edits
    changes = {at: edits[n] for n, at in enumerate((4, 6, 7)[: len(edits)])}
    setup = (edit.setup.strip("\n") + step).replace("$", "")
    changes = {at: text.replace("$", "") for at, text in changes.items()}
    return Program(f"module_{kind}_{edit.name}", setup, changes)


PROGRAMS = (
    *(program("forward", edit, FORWARD) for edit in EDITS),
    *(program("train", edit, TRAIN) for edit in EDITS),
)
