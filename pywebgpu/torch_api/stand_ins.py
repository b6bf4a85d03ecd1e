"""PyTorch's modules that are not here: they can be imported and asked, and say why when they are used.

A name of such a module is a class, so that it may stand in annotations, in isinstance and as a base; making one, or
calling it, raises NotImplementedError. What is here under another name (torch.nn.modules.linear) is that.
"""

from __future__ import annotations

import contextlib
import enum
import importlib.machinery
import os
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from pywebgpu import devices
from pywebgpu.ir.graph import thread_state
from pywebgpu.tensor import host_memory
from pywebgpu.torch_api import _jit_internal, backends

_COMPILED = "it is inside of PyTorch's compiler: torch.compile captures steps by itself"
_INSIDE = "it is a private module of PyTorch's: use the public functions"
# Modules of the torch namespace: why they are not here, and what is near.
REASONS = {
    **dict.fromkeys(("_dynamo", "_functorch", "_inductor", "_higher_order_ops"), _COMPILED),
    **dict.fromkeys(("_guards", "_lazy", "_prims"), _COMPILED),
    **dict.fromkeys(("_library", "_logging", "_ops", "_prims_common", "_refs", "_subclasses", "_utils"), _INSIDE),
    "_utils_internal": _INSIDE,
    "_vmap_internals": "use torch.vmap",
    "ao": "models are not quantised here",
    "compiler": "torch.compile captures steps by itself",
    "contrib": "it is not part of this library: use tensors",
    "cpu": "torch.cpu has what programs ask of it",
    "distributed": "there is one process and its devices: leave out what joins processes, or ask is_available first",
    "export": "torch.export is a function here: docs/guides/export.md",
    "functional": "its functions stand in torch itself",
    "futures": "nothing runs in other processes: use concurrent.futures",
    "fx": "of torch.fx what traces, rewrites and runs graphs is here",
    "hub": "download the source and weights of a model, and torch.load them",
    "jit": "programs run as Python: use torch.compile, or torch.save_program for files",
    "library": "operators are functions of tensors in Python",
    "monitor": "use torch.profiler and torch.memory.stats()",
    "mps": 'the device is "webgpu": use torch.webgpu and torch.profiler',
    "mtia": 'the device is "webgpu": use torch.webgpu',
    "multiprocessing": "tensors are not shared between processes: threads may share them",
    "nativert": "it runs PyTorch's own exports: use torch.save_program",
    "nested": "pad rows to one length",
    "numa": "it is about PyTorch's own processes: there is one here",
    "onnx": "use torch.save_program, or write safetensors",
    "package": "save a state_dict by torch.save, and the program as files",
    "quantization": "models are not quantised here",
    "quasirandom": "use torch.rand, or qmc.Sobol of scipy.stats",
    "serialization": "use torch.save and torch.load",
    "sparse": "sparse tensors are coordinates and values here (torch.sparse_coo_tensor)",
    "testing": "use torch.testing.assert_close and make_tensor",
    "torch_version": "use torch.__version__",
    "types": "use torch.Tensor, torch.dtype and torch.device",
    "xpu": 'the device is "webgpu": use torch.webgpu',
}
# Submodules of what is here, whose names stand in the module above them.
INSIDE = {
    "distributed": "algorithms autograd checkpoint constants device_mesh distributed_c10d elastic fsdp launch launcher "
    "nn optim pipelining remote_device rendezvous rpc run tensor utils _composable _functional_collectives _tensor",
    "distributed.fsdp": "api fully_sharded_data_parallel sharded_grad_scaler wrap",
    "distributed.tensor": "debug device_mesh experimental parallel placement_types",
    "accelerator": "graphs memory",
    "amp": "autocast_mode grad_scaler",
    "autograd._functions": "tensor utils",
    "nn.parallel._functions": "",
    "autograd": "_functions anomaly_mode forward_ad function functional grad_mode gradcheck graph profiler "
    "profiler_legacy profiler_util variable",
    "_C": "_distributed_c10d _functions _functorch _nn _profiler",
    "_dynamo": "_trace_wrapped_higher_order_op decorators eval_frame exc external_utils trace_rules utils "
    "test_case",
    "functorch": "experimental",
    "fx": "config",
    "jit": "_recursive _state",
    "fx.experimental": "_config accelerator_partitioner const_fold graph_gradual_typechecker merge_matmul "
    "meta_tracer migrate_gradual_types normalize optimization partitioner_utils proxy_tensor recording "
    "refinement_types schema_type_annotation shape_inference sym_node symbolic_shapes unification unify_refinements "
    "validator",
    "fx.experimental.shape_inference": "infer_shape infer_symbol_values",
    "fx.passes": "annotate_getitem_nodes backends dialect fake_tensor_prop graph_drawer graph_manipulation "
    "graph_transform_observer net_min_base operator_support param_fetch pass_manager reinplace runtime_assert "
    "split_module split_utils splitter_base tools_common",
    "fx.passes.dialect": "common",
    "fx.passes.dialect.common": "cse_pass",
    "fx.passes.infra": "partitioner",
    "fx.passes.utils": "common fuser_utils matcher_with_name_node_map_utils source_matcher_utils",
    "functorch.experimental": "control_flow",
    "_functorch": "eager_transforms make_functional utils vmap",
    "_higher_order_ops": "cond invoke_subgraph",
    "_inductor": "config test_case utils",
    "_lazy": "metrics ts_backend",
    "_library": "custom_ops",
    "_logging": "_internal scribe",
    "_refs": "_conversions fft linalg nn special",
    "_refs.nn": "functional",
    "_subclasses": "fake_tensor meta_utils schema_check_mode",
    "ao": "nn ns pruning quantization",
    "ao.nn": "intrinsic qat quantizable quantized sparse",
    **dict.fromkeys(("ao.nn.qat", "ao.nn.quantizable", "ao.nn.quantized"), "dynamic modules"),
    "backends": "cpu cuda cudnn cusparselt kleidiai mha miopen mkl mkldnn mps nnpack openmp opt_einsum python_native "
    "quantized xeon xnnpack",
    "cuda": "amp comm gds graphs green_contexts jiterator memory nccl nvtx profiler random sparse streams tunable",
    "cpu": "amp",
    "distributions": "bernoulli beta binomial categorical cauchy chi2 constraint_registry constraints "
    "continuous_bernoulli dirichlet distribution exp_family exponential fishersnedecor gamma generalized_pareto "
    "geometric gumbel half_cauchy half_normal independent inverse_gamma kl kumaraswamy laplace lkj_cholesky log_normal "
    "logistic_normal lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal negative_binomial "
    "normal one_hot_categorical pareto poisson relaxed_bernoulli relaxed_categorical studentT transformed_distribution "
    "transforms uniform utils von_mises weibull wishart",
    "distributed.rpc": "api",
    "masked": "maskedtensor",
    "mps": "event profiler",
    "nn": "attention backends common_types cpp functional grad init intrinsic modules parallel parameter qat "
    "quantizable quantized utils",
    "optim": "adadelta adagrad adam adamax adamw asgd lbfgs lr_scheduler nadam optimizer radam rmsprop rprop sgd "
    "sparse_adam swa_utils",
    "profiler": "itt profiler python_tracer",
    "utils": "_contextlib _content_store _cxx_pytree _foreach_utils _mode_utils _python_dispatch _triton backcompat "
    "backend_registration benchmark bundled_inputs checkpoint collect_env cpp_backtrace "
    "cpp_extension data debug_log deterministic dlpack file_baton flop_counter hipify hooks jit mkldnn "
    "mobile_optimizer model_dump model_zoo module_tracker serialization show_pickle tensorboard throughput_benchmark "
    "viz weak",
    "signal.windows": "windows",
    "utils.data": "_utils backward_compatibility dataloader dataset datapipes distributed graph graph_settings sampler",
    "nn.utils": "clip_grad convert_parameters fusion init memory_format parametrizations parametrize prune rnn "
    "spectral_norm stateless weight_norm",
    "nn.modules": "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold "
    "instancenorm lazy linear linear_cross_entropy linear_cross_entropy_options loss module normalization padding "
    "pixelshuffle pooling rnn sparse transformer upsampling utils",
    "nn.parallel": "_functions comm data_parallel distributed parallel_apply replicate scatter_gather",
}  # fmt: skip


class _Unchanged(contextlib.ContextDecorator):
    """Settings of a compiler that is not here, as a context and a decorator: they change nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def _refusing(path: str) -> Callable[..., NoReturn]:
    """A function that can be had, and not called."""

    def refuse(*args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(f"torch.{path} compiles for CUDA, and the device is webgpu: use functions of tensors")

    return refuse


def _batch() -> Any:
    return importlib.import_module("pywebgpu.func.batch")


# What programs ask before they use a module, and what holds here.
ANSWERS: dict[str, Any] = {
    "_inductor.config.patch": lambda *changes, **options: _Unchanged(),
    "_dynamo.trace_rules._as_posix_path": lambda path: path.replace("\\", "/"),
    "_inductor.utils.GPU_TYPES": ["cuda", "xpu"],
    "_logging.scribe.open_source_signpost": lambda subsystem, name, parameters: None,
    "_utils_internal.IS_FBSOURCE": False,
    **dict.fromkeys(("_utils_internal.get_file_path", "_utils_internal.get_file_path_2"), os.path.join),
    "utils._triton.has_triton": lambda: False,
    "utils._triton.has_triton_package": lambda: False,
    "utils._foreach_utils._get_foreach_kernels_supported_devices": lambda: ["cuda", "xpu"],
    "utils._foreach_utils._get_fused_kernels_supported_devices": lambda: ["cpu", "cuda", "mps", "xpu"],
    "_C._functorch._is_vmap_fallback_enabled": lambda: _batch().fallback.allowed,
    "_C._functorch._set_vmap_fallback_enabled": lambda enabled: setattr(_batch().fallback, "allowed", enabled),
    **{f"_C._functorch.{name}": lambda tensor: False for name in ("is_batchedtensor", "is_gradtrackingtensor")},
    "_C._functorch.TransformType": enum.Enum("TransformType", "Torch Vmap Grad Jvp Functionalize"),
    "_vmap_internals._vmap": lambda func, in_dims=0, out_dims=0, *passed: _batch().vmap(func, in_dims, out_dims),
    "functorch.experimental.chunk_vmap": lambda *args, **options: _batch().chunk_vmap(*args, **options),
    # Ranges of a profiler of NVIDIA's, which see nothing.
    "cuda.nvtx.range": lambda msg, *args, **options: _Unchanged(),
    **dict.fromkeys((f"cuda.nvtx.range_{end}" for end in ("start", "end", "push", "pop")), lambda *args: 0),
    "cuda.nvtx.mark": lambda msg: None,
    "jit._recursive.ConcreteTypeStore": type("ConcreteTypeStore", (), {}),  # of TorchScript's compiler
    "jit._state._clear_class_state": lambda: None,
    "cuda.jiterator._create_jit_fn": lambda code_string, **options: _refusing("cuda.jiterator"),
    "cuda.jiterator._create_multi_output_jit_fn": lambda code_string, num_outputs, **opts: _refusing("cuda.jiterator"),
    "autograd._profiler_enabled": lambda: thread_state.origins is not None,
    "autograd._disable_profiler": lambda: None,
    "distributed.is_available": lambda: False,
    "distributed.ReduceOp": enum.Enum("ReduceOp", "SUM AVG PRODUCT MIN MAX BAND BOR BXOR PREMUL_SUM"),
    "distributed.is_initialized": lambda: False,
    "distributed.rpc.api._require_initialized": lambda function: function,  # What it calls refuses.
    "distributed.is_torchelastic_launched": lambda: False,
    "mps.is_available": lambda: False,
    "xpu.is_available": lambda: False,
    "mtia.is_available": lambda: False,
    "mps.device_count": lambda: 0,
    "xpu.device_count": lambda: 0,
    "onnx.is_in_onnx_export": lambda: False,
    **{f"jit.annotations.{name}": getattr(_jit_internal, name) for name in _jit_internal.TYPES},
    # Rules of exporters can be given; none is here that would ask for them.
    "onnx.symbolic_helper.parse_args": lambda *kinds: lambda function: function,
    "onnx.register_custom_op_symbolic": lambda *args: None,
    "onnx.unregister_custom_op_symbolic": lambda *args: None,
    "compiler.is_compiling": lambda: False,
    "compiler.is_dynamo_compiling": lambda: False,
    "compiler.disable": lambda function=None, **options: function or (lambda inner: inner),
    **dict.fromkeys((f"Tensor.is_{kind}" for kind in ("ipu", "maia", "mkldnn", "mtia")), False),
    **dict.fromkeys((f"Tensor.is_{kind}" for kind in ("sparse_csr", "vulkan", "xla")), False),
    ".set_warn_always": lambda b: host_memory.always_warns.__setitem__(0, bool(b)),
    ".is_warn_always_enabled": lambda: host_memory.always_warns[0],
    ".set_flush_denormal": lambda mode: False,
    ".is_vulkan_available": lambda: False,
    ".compiled_with_cxx11_abi": lambda: True,
    "compiler.is_exporting": lambda: False,
    "compiler.compile": lambda *args, **options: importlib.import_module("pywebgpu").compile(*args, **options),
    "compiler.allow_in_graph": lambda function: function,
    "compiler.assume_constant_result": lambda function: function,
    "compiler.cudagraph_mark_step_begin": lambda: None,
    "compiler.list_backends": lambda **options: [],
    "compiler.reset": lambda: None,
    "multiprocessing.set_start_method": lambda method, force=False: None,
    "multiprocessing.set_sharing_strategy": lambda strategy: None,
    "multiprocessing.get_sharing_strategy": lambda: "file_descriptor",
    "multiprocessing.get_all_sharing_strategies": lambda: {"file_descriptor", "file_system"},
    "nn.functional.GRID_SAMPLE_INTERPOLATION_MODES": {"bilinear": 0, "nearest": 1, "bicubic": 2},
    "nn.functional.GRID_SAMPLE_PADDING_MODES": {"zeros": 0, "border": 1, "reflection": 2},
    "types.Device": devices.device | str | int | None,
    "types.Number": int | float | bool,
    "profiler.itt.is_available": lambda: False,
    "profiler.kineto_available": lambda: False,
    "._running_with_deploy": lambda: False,
    "._nnpack_available": lambda: False,
    "._disable_dynamo": lambda fn=None, recursive=True: fn or (lambda inner: inner),
    "autograd.kineto_available": lambda: False,
    ".is_distributed": lambda input: False,
    "Tensor.is_distributed": lambda: False,
    "Tensor.volatile": False,
}  # fmt: skip


class Absent:
    """The base of the names that are not here."""

    def __new__(cls, *args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(cls.__doc__)

    def __class_getitem__(cls, parameters: object) -> type[Absent]:
        return cls


class StandIn(types.ModuleType):
    """A module of PyTorch's that is not here, or not under this name."""

    __path__: list[str] = []  # noqa: RUF012 - as of a package: it may have submodules
    __file__ = None

    def __init__(self, path: str) -> None:
        super().__init__(f"torch.{path}", f"torch.{path}: {why(path)}.")
        self._path = path
        self.__spec__ = importlib.machinery.ModuleSpec(self.__name__, None, is_package=True)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return _layers() if self._path == "nn.modules" else INSIDE.get(self._path, "").split()
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.{self._path}' has no attribute {name!r}")
        path = f"{self._path}.{name}"
        value = ANSWERS.get(path)
        if value is None and name in INSIDE.get(self._path, "").split():
            own = f"{self._path.rpartition('.')[0]}.{name}"  # nn.modules.conv is nn.conv here.
            is_own = _is_here(own) and own != "nn.utils"
            value = importlib.import_module(f"pywebgpu.{own}") if is_own else module(path)
        if value is None:
            value = _elsewhere(self._path, name)
        if value is None:
            text = f"torch.{path} is not here: {why(path)}"
            value = type(name, (Absent,), {"__doc__": text, "__module__": f"torch.{self._path}"})
        setattr(self, name, value)
        return value


def _layers() -> list[str]:
    """The names of torch.nn.modules that PyTorch calls public: its layers."""
    nn = importlib.import_module("pywebgpu.nn")
    others = {"DataParallel", "LazyModuleMixin", "NonDynamicallyQuantizableLinear"}
    values = {name: getattr(nn, name) for name in nn.__all__ if name not in others}
    return [name for name, value in values.items() if isinstance(value, type) and issubclass(value, nn.Module)]


def why(path: str) -> str:
    return REASONS.get(path.partition(".")[0], "docs/torch.md says what is")


def module(path: str) -> types.ModuleType | None:
    """The module of a name below torch; None where PyTorch has no such module."""
    name = f"torch.{path}"
    known = sys.modules.get(name)
    if known is not None and sys.modules.get("torch") is sys.modules["pywebgpu"]:  # and not PyTorch's own
        return known
    try:
        return importlib.import_module(f"pywebgpu.{path}")
    except ModuleNotFoundError as error:
        if not f"pywebgpu.{path}".startswith(str(error.name)):
            raise
    above, _, last = path.rpartition(".")
    if above in ("backends", "cuda"):
        member = vars(importlib.import_module(f"pywebgpu.{above}")).get(last)
        if isinstance(member, types.ModuleType | backends.Backend):
            return member  # type: ignore[return-value]  # It stands for one.
    return _STAND_INS.setdefault(path, StandIn(path)) if _is_known(path) else None


def _is_known(path: str) -> bool:
    """Whether PyTorch has a module of this name, as far as the lists above go."""
    above, _, last = path.rpartition(".")
    if path.partition(".")[0] in REASONS or last in INSIDE.get(above, "").split():
        return True
    if "." not in above or above in INSIDE or not _is_known(above):
        return False
    if _is_here(above):  # What it has of that name is no module: a class, a function.
        return last not in dir(importlib.import_module(f"pywebgpu.{above}"))
    return isinstance(_elsewhere(above, last), types.ModuleType | None)


_STAND_INS: dict[str, StandIn] = {}


def _elsewhere(path: str, name: str) -> object:
    """What is here under another module: the nearest one above that has the name."""
    absent = importlib.import_module("pywebgpu.torch_api.absent")
    for module, file, names in absent.ELSEWHERE:
        if module == path and name in names.split():
            return getattr(importlib.import_module(f"pywebgpu.{file}"), name)
    if path.partition(".")[0] == "_refs":
        inner = path.removeprefix("_refs").removesuffix("._conversions")
        public = getattr(importlib.import_module(f"pywebgpu{inner}"), name, None)
        is_cast = path.endswith("_conversions") and not isinstance(public, types.FunctionType)
        return getattr(importlib.import_module("pywebgpu").Tensor, name) if is_cast else public
    if path == "nn.modules.utils" and name in _TIMES:
        return _repeater(_TIMES[name])
    if path == "autograd.profiler" and name in ("profile", "record_function"):
        own = getattr(importlib.import_module("pywebgpu.profiler"), name)
        return own if name == "record_function" else _older(own)
    if path.startswith("nn.parallel") and name == "DataParallel":
        return importlib.import_module("pywebgpu.nn").DataParallel
    if path == "multiprocessing" and not name.startswith("_"):  # PyTorch has all of Python's names there.
        return getattr(importlib.import_module("multiprocessing"), name, None)
    if path == "_C._nn" and not name.startswith("_"):
        return getattr(importlib.import_module("pywebgpu.nn.functional"), name, None)
    places = [path.rsplit(".", n)[0] for n in range(1, path.count(".") + 1)] + [""]
    if path.startswith("nn.modules."):
        places.insert(0, f"nn.{path.removeprefix('nn.modules.')}")
    for place in places:
        holder = importlib.import_module(f"pywebgpu.{place}".rstrip(".")) if _is_here(place) else None
        value = getattr(holder, name, None)
        if value is not None and not isinstance(value, StandIn):
            return value
    if path.startswith("nn.modules") and name.startswith("_"):
        for family in ("norm", "channel_norm", "conv", "loss", "pooling", "recurrent", "spatial", "dropout"):
            value = getattr(importlib.import_module(f"pywebgpu.nn.{family}"), name, None)
            if value is not None:
                return value
    return None


def _older(profile: Callable[..., object]) -> object:
    """torch.autograd.profiler.profile, which can be switched off and was told of devices."""

    ignored = ("use_cpu", "use_cuda", "use_device", "use_kineto")  # It sees the devices that there are.

    def made(enabled: bool = True, **options: Any) -> object:
        kept = {name: value for name, value in options.items() if name not in ignored}
        return profile(**kept) if enabled else contextlib.nullcontext()

    return made


def _is_here(place: str) -> bool:
    try:
        importlib.import_module(f"pywebgpu.{place}".rstrip("."))
    except ModuleNotFoundError:
        return False
    return True


_TIMES = {"_single": 1, "_pair": 2, "_triple": 3, "_quadruple": 4}


def _repeater(count: int) -> object:
    def repeated(x: object) -> tuple[object, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * count

    return repeated
