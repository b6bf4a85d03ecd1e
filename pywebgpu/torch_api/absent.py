"""Names of PyTorch's that are not here, and why: each can be asked for, and raises when it is used."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

NAMES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        (
            "it is a part of TorchScript and of PyTorch's dispatch: programs run as Python; torch.explain has graphs",
            "AVG AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType Block BoolType BufferDict "
            "CallStack Capsule ClassType Code CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType "
            "ConcreteModuleTypeBuilder DeepCopyMemoTable DeviceObjType DictType "
            "DispatchKey DispatchKeySet EnumType ErrorReport ExcludeDispatchKeyGuard "
            "ExecutionPlan FatalError FileCheck FloatType FunctionSchema Gradient Graph GraphExecutorState "
            "IODescriptor InferredType IntType InterfaceType JITException ListType LiteScriptModule LockingLogger "
            "LoggerBase ModuleDict Node NoneType NoopLogger NumberType OperatorInfo OptionalType PRIVATE_OPS "
            "ParameterDict PyObjectType RRefType SUM ScriptClass ScriptClassFunction ScriptDict "
            "ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator ScriptMethod "
            "ScriptModule ScriptObject ScriptObjectProperty StaticModule StreamObjType StringType SymBoolType "
            "SymIntType Tag TensorType TracingState TupleType Type UnionType Use Value classproperty "
            "import_ir_module import_ir_module_from_buffer init_num_threads merge_type_from_type_comment parse_ir "
            "parse_schema parse_type_comment prepare_multiprocessing_environment "
            "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 unify_type_list",
        ),
        ("memory is that of torch.UntypedStorage", "StorageBase"),
        (
            "models are not quantised here",
            "QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage choose_qparams_optimized "
            "dequantize empty_quantized fake_quantize_per_channel_affine fake_quantize_per_tensor_affine "
            "fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight "
            "fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 "
            "fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant int_repr "
            "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point "
            "quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm "
            "quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d "
            "quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell",
        ),
        (
            "there is no such dtype here: torch.uint8, int8 to int64 and the floats are",
            "bit bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2 int1 int2 int3 int4 int5 int6 int7 uint1 "
            "uint2 uint3 uint4 uint5 uint6 uint7",
        ),
        (
            "sparse tensors are coordinates (torch.sparse_coo_tensor) or rows (torch.sparse_csr_tensor) here",
            "ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy resize_as_sparse_ "
            "row_indices_copy saddmm smm sspaddmm values_copy",
        ),
        (
            "it is one of PyTorch's own kernels: use the function of torch.nn.functional",
            "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu "
            "cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable "
            "miopen_batch_norm miopen_convolution miopen_convolution_add_relu miopen_convolution_relu "
            "miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn "
            "mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d "
            "mkldnn_max_pool3d mkldnn_rnn_layer",
        ),
        ("use concurrent.futures, or a thread of Python's", "Future FutureType fork wait"),
        ("use torch.utils.benchmark.Timer", "BenchmarkConfig BenchmarkExecutionStats ThroughputBenchmark"),
        (
            "use torch.save and torch.load",
            "DeserializationStorageContext PyTorchFileReader PyTorchFileWriter ScriptModuleSerializer "
            "SerializationStorageContext get_file_path",
        ),
        (
            "it is private to PyTorch: call the function without _foreach_ on each tensor",
            "_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv "
            "_foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan "
            "_foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_ "
            "_foreach_clamp_min _foreach_clamp_min_ _foreach_clone _foreach_copy_ _foreach_cos _foreach_cos_ "
            "_foreach_cosh _foreach_cosh_ _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc "
            "_foreach_erfc_ _foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor "
            "_foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp _foreach_lerp_ _foreach_lgamma "
            "_foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_ "
            "_foreach_log2 _foreach_log2_ _foreach_log_ _foreach_max _foreach_maximum _foreach_maximum_ "
            "_foreach_minimum _foreach_minimum_ _foreach_mm _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_ "
            "_foreach_norm _foreach_pow _foreach_pow_ _foreach_powsum _foreach_reciprocal _foreach_reciprocal_ "
            "_foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_ "
            "_foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh _foreach_sinh_ _foreach_sqrt "
            "_foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ "
            "_foreach_trunc _foreach_trunc_ _foreach_zero_",
        ),
        ("there are no products of 8-bit floats here: multiply by the scales, and use torch.matmul", "_scaled_mm"),
        ("each thread may have a torch.Generator of its own", "thread_safe_generator"),
        ("use torch.from_numpy(numpy.memmap(file))", "from_file"),
        ("use slice_scatter, which writes into a copy", "slice_inverse"),
        (
            "shapes are plain numbers here: use int, float, bool, min, max and the module math",
            "SymBool SymFloat SymInt sym_constrain_range sym_constrain_range_for_size sym_float sym_fresh_size "
            "sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum",
        ),
        ("use Python's own if and while: torch.compile guards what they looked at", "cond while_loop"),
        ("PyTorch took it away: use torch.linalg.eigh, with UPLO for upper", "symeig"),
        ("PyTorch took it away: use the function of this name in torch.linalg", "eig lstsq matrix_rank solve"),
        ("use torch.linalg.eigh, which finds all eigenvalues", "lobpcg"),
        (
            "use torch.nn.functional.batch_norm",
            "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats "
            "batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats",
        ),
        ("use torch.nn.LSTM, torch.nn.GRU or torch.nn.RNN, which hold the weights", "gru lstm rnn_relu rnn_tanh"),
        ("use max_norm of torch.nn.functional.embedding", "embedding_renorm_"),
        ("use torch.linalg.vector_norm", "native_norm"),
        ("use torch.autocast as a with block", "autocast_decrement_nesting autocast_increment_nesting"),
        (
            "autocast is for devices cpu and webgpu: use torch.set_autocast_dtype and torch.set_autocast_enabled",
            "get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_ipu_enabled is_autocast_xla_enabled "
            "set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled",
        ),
    ),
    "nn.functional": (
        ("assign the result of the function without the underscore", "dropout_ feature_dropout"),
        (
            "it is a type of TorchScript's: use int, tuple[int, ...] or torch.dtype",
            "BroadcastingList1 BroadcastingList2 BroadcastingList3 DType",
        ),
        ("it is a part of TorchScript: use Python's own if and assert", "assert_int_or_pair boolean_dispatch"),
        (
            "it is a text of PyTorch's documentation, which is at docs.pytorch.org",
            "reproducibility_notes sparse_support_notes tf32_notes",
        ),
        (
            "there are no floats of 8 bits here: multiply by the scales, and use torch.matmul",
            "ScalingType SwizzleType scaled_grouped_mm scaled_mm",
        ),
    ),
    "overrides": (
        ("call torch.overrides.get_overridable_functions", "get_testing_overrides"),
        ("call the function in a torch._C.DisableTorchFunctionSubclass block", "redispatch_function"),
    ),
    "nn.attention": (
        (
            "the compiler picks the kernel of attention: call scaled_dot_product_attention",
            "activate_flash_attention_impl current_flash_attention_impl list_flash_attention_impls "
            "register_flash_attention_impl restore_flash_attention_impl",
        ),
    ),
    "optim": (
        (
            "use an optimizer's state_dict and load_state_dict, and torch.func.functional_call for other parameters",
            "swap_in_optimizer_params_and_state",
        ),
    ),
    "utils": (
        (
            "it is about PyTorch's own build",
            "cmake_prefix_path generate_methods_for_privateuse1_backend get_cpp_backtrace rename_privateuse1_backend",
        ),
        ("use torch.utils.benchmark.Timer", "ThroughputBenchmark"),
    ),
    "utils.data": (
        (
            "use Dataset, IterableDataset and DataLoader",
            "argument_validation guaranteed_datapipes_determinism non_deterministic runtime_validation "
            "runtime_validation_disabled",
        ),
    ),
    "autograd.graph": (
        (
            "there is one device and no stream of its own: gradients are added up in order",
            "set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch",
        ),
        (
            "use torch.utils.checkpoint.checkpoint for parts whose values take too much memory",
            "region_activation_memory_budget",
        ),
    ),
    "return_types": (
        ("results are tuples with _fields, which trees of values know", "all_return_types pytree_register_structseq"),
    ),
    "utils.checkpoint": (
        ("it is inside of torch.utils.checkpoint.checkpoint: use that", "CheckpointFunction GraphExecGroup"),
        (
            "a segment is computed again as a whole: checkpoint smaller parts of the model",
            "CheckpointPolicy SAC_IGNORED_OPS SelectiveCheckpointContext create_selective_checkpoint_contexts",
        ),
        (
            "draws have one state for all devices: torch.get_rng_state and torch.set_rng_state",
            "get_device_states set_device_states",
        ),
    ),
    "linalg": (("it is a text of PyTorch's documentation, which is at docs.pytorch.org", "common_notes"),),
    "func": (("use einsum, permute and reshape", "rearrange"),),
    "autograd": (
        ("use torch.autograd.Function, whose arguments are tensors", "NestedIOFunction"),
        (
            "gradients are contiguous, whatever lies how: use permute and contiguous where another layout is wanted",
            "enforce_grad_layout_policy",
        ),
    ),
    "cuda": (
        (
            "memory is that of torch.UntypedStorage, and Tensor.device says where it is",
            "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage "
            "DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage",
        ),
        (
            "torch.compile records a step once and runs it again",
            "CUDAGraph graph graph_pool_handle make_graphed_callables",
        ),
        (
            "memory of a device is kept by this library: torch.memory.stats() tells of it",
            "CUDAPluggableAllocator MemPool caching_allocator_alloc caching_allocator_delete "
            "caching_allocator_disabled caching_allocator_enable change_current_allocator get_allocator_backend "
            "get_per_process_memory_fraction memory_snapshot set_per_process_memory_fraction use_mem_pool",
        ),
        (
            "WebGPU does not tell it: torch.profiler times kernels, and torch.memory.stats() counts bytes",
            "clock_rate device_memory_used list_gpu_processes memory_usage power_draw temperature utilization",
        ),
        (
            "it is CUDA's own, and the device is webgpu: use torch.webgpu and tensors",
            "ExternalStream GreenContext check_error cudaStatus cudart current_blas_handle current_solver_handle "
            "get_stream_from_external",
        ),
        ("one generator draws for all devices: torch.default_generator", "default_generators"),
    ),
    "random": (("each thread may have a torch.Generator of its own", "thread_safe_generator"),),
    "sparse": (
        (
            "sparse tensors are coordinates (torch.sparse_coo_tensor) or rows (torch.sparse_csr_tensor) here",
            "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS "
            "as_sparse_gradcheck to_sparse_semi_structured",
        ),
        ("use torch.linalg.solve with to_dense()", "solve"),
    ),
    "profiler": (("torch.profiler.profile writes Chrome's format", "DeviceType ExecutionTraceObserver"),),
    "compiler": (
        (
            "torch.compile captures steps by itself: see docs/guides/compile.md",
            "get_default_backend keep_portable_guards_unsafe keep_tensor_guards_unsafe load_cache_artifacts "
            "load_compiled_function nested_compile_region save_cache_artifacts set_default_backend "
            "set_enable_guard_collectives skip_all_guards_unsafe skip_guard_on_all_nn_modules_unsafe "
            "skip_guard_on_globals_unsafe skip_guard_on_inbuilt_nn_modules_unsafe substitute_in_graph wrap_numpy",
        ),
    ),
    "accelerator": (
        ("torch.compile records a step once and runs it again", "Graph"),
        ("WebGPU does not say how much memory there is: torch.memory.stats() counts what is used", "get_memory_info"),
    ),
    "Tensor": (
        (
            "sparse tensors are coordinates (torch.sparse_coo_tensor) or rows (torch.sparse_csr_tensor) here",
            "resize_as_sparse_ smm sparse_resize_ sparse_resize_and_clear_ sspaddmm",
        ),
        (
            "models are not quantised here",
            "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
            "q_zero_point qscheme",
        ),
        ("it is one of PyTorch's own kernels: use the function of torch.nn.functional", "to_mkldnn"),
        ("use data_ptr(), which is the same number", "const_data_ptr"),
        ("a gradient has the dtype of its tensor: use to() on either", "grad_dtype"),
        ("index with brackets: x[i, j]", "index"),
        ("the device is webgpu: use to(device)", "ipu mtia xpu"),
        ("PyTorch took it away: use requires_grad, names of a dict, or torch.distributions", "name reinforce"),
        ("use reshape, or resize_ and resize_as_", "resize resize_as"),
        ("use slice_scatter, which writes into a copy", "slice_inverse"),
        ("rows have one length here: use torch.nn.utils.rnn.pad_sequence", "to_padded_tensor"),
        ("PyTorch took it away: use the function of this name in torch.linalg", "eig lstsq solve"),
        ("PyTorch took it away: use torch.linalg.eigh, with UPLO for upper", "symeig"),
    ),
    "mps": (
        ("it is Metal's own, and the device is webgpu: an op is a function of tensors", "compile_shader load_metallib"),
        (
            "memory of a device is kept by this library: torch.memory.stats() tells of it",
            "set_per_process_memory_fraction",
        ),
    ),
    "serialization": (
        (
            "a typed storage is that of untyped_storage(), and Tensor.dtype says its type",
            "StorageType normalize_storage_type storage_to_tensor_type",
        ),
        (
            "Tensor.device says where it is, and map_location of torch.load where it goes",
            "location_tag register_package validate_cuda_device validate_hpu_device",
        ),
        ("use tempfile.TemporaryDirectory", "mkdtemp"),
        ("a file is written with its values: save shapes and dtypes alone", "skip_data"),
    ),
    "jit": (("programs run as Python: use torch.compile", "CompilationUnit Future fork wait"),),
    "library": (("kernels in Triton's language do not run here", "triton_op wrap_triton"),),
    "testing": (("it looks through texts of TorchScript: use Python's re", "FileCheck"),),
}

# What is here in a file of its own, since few programs use it: the module of PyTorch's, the file, its names.
ELSEWHERE = (
    ("_C._functions", "tensor.grad_fn", "AccumulateGrad"),
    ("distributions.dirichlet", "distributions.sampling", "_Dirichlet_backward"),
    ("_C._functions", "autograd.undefined", "DelayedError UndefinedGrad"),
    ("compiler", "torch_api.stances", "set_stance"),
    ("autograd", "torch_api.stances", "is_multithreading_enabled set_multithreading_enabled"),
    ("masked", "torch_api.masked.maskedtensor.core", "MaskedTensor as_masked_tensor is_masked_tensor masked_tensor"),
    ("nn", "nn.factory", "factory_kwargs"),
    ("_subclasses.meta_utils", "torch_api._check", "assert_metadata_eq"),
    ("utils._foreach_utils", "torch_api._foreach", "_group_tensors_by_device_and_dtype"),
    ("nn.functional", "layer_operators", "conv_tbc native_channel_shuffle"),
    ("nn.functional", "nn", "grad"),
    ("nn.functional", "tensor.tensor", "Tensor"),
    ("nn.init", "nn.older_init", "constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse"),
    ("nn.init", "nn.older_init", "uniform xavier_normal xavier_uniform"),
    ("nn.modules.utils", "nn.exchange", "consume_prefix_in_state_dict_if_present"),
    ("nn.parameter", "nn.lazy_layers", "UninitializedBuffer UninitializedParameter UninitializedTensorMixin is_lazy"),
    ("utils.data", "utils.data.datapipes", "DFIterDataPipe DataChunk IterDataPipe MapDataPipe functional_datapipe"),
    ("utils", "utils.swapping", "set_module swap_tensors"),
)


def find(path: str, name: str) -> object:
    """A class that raises when it is made or called. Raises AttributeError for what PyTorch has not either."""
    stand_ins: Any = import_module("pywebgpu.torch_api.stand_ins")
    known: object = stand_ins.ANSWERS.get(f"{path}.{name}")
    if known is not None:
        return known
    for module, file, names in ELSEWHERE:
        if module == path and name in names.split():
            return getattr(import_module(f"pywebgpu.{file}"), name)
    if name in stand_ins.INSIDE.get(path, "").split():
        return stand_ins.module(f"{path}.{name}")
    full_name = f"torch.{path}.{name}" if path else f"torch.{name}"
    for reason, names in NAMES.get(path, ()):
        if name in names.split():
            return type(name, (stand_ins.Absent,), {"__doc__": f"{full_name} is not here: {reason}"})
    if path == "Tensor":
        raise AttributeError(f"'Tensor' object has no attribute {name!r}")
    text = f"module 'torch.{path}' has no attribute {name!r}".replace("torch.'", "torch'")
    raise AttributeError(text + ("" if path else near(name)))


@lru_cache(maxsize=100)
def near(name: str) -> str:
    """What may have been meant: Python itself says nothing where there are as many names as in torch."""
    names = dir(import_module("pywebgpu"))
    matches = import_module("difflib").get_close_matches(name, names, 1, 0.75)
    return f". Did you mean: {matches[0]!r}?" if matches else ""
