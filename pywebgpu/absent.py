"""Names of PyTorch's that are not here, and why: each can be asked for, and raises when it is used."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

NAMES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        (
            "it is a part of TorchScript and of PyTorch's own dispatch: graphs are made by recording",
            "AVG AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig "
            "BenchmarkExecutionStats Block BoolType BufferDict CallStack Capsule ClassType Code CompilationUnit "
            "CompleteArgumentSpec ComplexType ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable "
            "DeserializationStorageContext DeviceObjType DictType DisableTorchFunction "
            "DisableTorchFunctionSubclass DispatchKey DispatchKeySet EnumType ErrorReport ExcludeDispatchKeyGuard "
            "ExecutionPlan FatalError FileCheck FloatType FunctionSchema Future FutureType Gradient Graph "
            "GraphExecutorState IODescriptor InferredType IntType InterfaceType JITException ListType "
            "LiteScriptModule LockingLogger LoggerBase ModuleDict Node NoneType NoopLogger NumberType "
            "OperatorInfo OptionalType PRIVATE_OPS ParameterDict PyObjectType PyTorchFileReader PyTorchFileWriter "
            "RRefType SUM ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator "
            "ScriptFunction ScriptList ScriptListIterator ScriptMethod ScriptModule ScriptModuleSerializer "
            "ScriptObject ScriptObjectProperty SerializationStorageContext StaticModule StreamObjType StringType "
            "SymBoolType SymIntType Tag TensorType ThroughputBenchmark TracingState TupleType Type UnionType Use "
            "Value classproperty fork get_file_path import_ir_module import_ir_module_from_buffer "
            "init_num_threads merge_type_from_type_comment parse_ir parse_schema parse_type_comment "
            "prepare_multiprocessing_environment profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 "
            "thread_safe_generator unify_type_list wait",
        ),
        (
            "memory is that of untyped_storage(): a tensor is lazy, and its values move",
            "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage "
            "ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage "
            "LongStorage ShortStorage Storage TypedStorage UntypedStorage",
        ),
        (
            "models are not quantised here",
            "QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage choose_qparams_optimized "
            "dequantize empty_quantized fake_quantize_per_channel_affine fake_quantize_per_tensor_affine "
            "fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight "
            "fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 "
            "fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant int_repr per_channel_affine "
            "per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine per_tensor_symmetric "
            "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qint32 qint8 "
            "qscheme quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm "
            "quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d "
            "quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell quint2x4 "
            "quint4x2 quint8",
        ),
        (
            "it is not written yet: torch.autograd.Function can add it",
            "StorageBase from_file jagged layout memory_format slice_inverse",
        ),
        (
            "shapes are plain numbers here",
            "SymBool SymFloat SymInt cond sym_constrain_range sym_constrain_range_for_size sym_float "
            "sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum symeig while_loop",
        ),
        (
            "use the module, or the function of torch.nn.functional",
            "affine_grid_generator batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt "
            "batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats "
            "conv_tbc convolution embedding_renorm_ gru gru_cell lstm lstm_cell max_pool1d_with_indices "
            "native_channel_shuffle native_norm norm_except_dim rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
        ),
        (
            "autocast is for devices cpu and webgpu",
            "autocast_decrement_nesting autocast_increment_nesting get_autocast_ipu_dtype get_autocast_xla_dtype "
            "is_autocast_ipu_enabled is_autocast_xla_enabled set_autocast_ipu_dtype set_autocast_ipu_enabled "
            "set_autocast_xla_dtype set_autocast_xla_enabled",
        ),
        (
            "there is no such dtype here: torch.uint8, int8 to int64 and the floats are",
            "bit bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
            "float8_e5m2fnuz float8_e8m0fnu int1 int2 int3 int4 int5 int6 int7 uint1 uint16 uint2 uint3 uint4 "
            "uint5 uint6 uint7",
        ),
        (
            "sparse tensors are coordinates (torch.sparse_coo_tensor) or rows (torch.sparse_csr_tensor) here",
            "ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy resize_as_sparse_ "
            "row_indices_copy saddmm smm sparse_bsc sparse_bsc_tensor sparse_bsr sparse_bsr_tensor "
            "sparse_compressed_tensor sparse_csc sparse_csc_tensor sspaddmm values_copy",
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
        (
            "use torch.linalg: solve, lstsq, qr, svd, eigh, cholesky",
            "eig lobpcg lstsq matrix_rank solve",
        ),
        (
            "there is one process and one device",
            "is_distributed",
        ),
    ),
    "nn": (
        (
            "it is not written yet: docs/conformance.md counts what is",
            "factory_kwargs",
        ),
    ),
    "nn.functional": (
        (
            "assign the result of the function without the underscore",
            "dropout_ feature_dropout",
        ),
        (
            "it is an internal of PyTorch's",
            "BroadcastingList1 BroadcastingList2 BroadcastingList3 GRID_SAMPLE_INTERPOLATION_MODES "
            "GRID_SAMPLE_PADDING_MODES Tensor assert_int_or_pair boolean_dispatch grouped_mm "
            "handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic "
            "reproducibility_notes scaled_grouped_mm scaled_mm tf32_notes",
        ),
        (
            "it is a part of TorchScript and of PyTorch's own dispatch: graphs are made by recording",
            "DType ScalingType SwizzleType",
        ),
        (
            "use the module, or the function of torch.nn.functional",
            "conv_tbc native_channel_shuffle",
        ),
        (
            "sparse tensors are coordinates (torch.sparse_coo_tensor) or rows (torch.sparse_csr_tensor) here",
            "sparse_support_notes",
        ),
    ),
    "nn.init": (
        (
            "the name ends with an underscore: it fills a tensor in place",
            "dirac eye sparse",
        ),
    ),
    "nn.parameter": (
        (
            "sizes of inputs have to be given: use the module without Lazy",
            "UninitializedBuffer UninitializedParameter UninitializedTensorMixin is_lazy",
        ),
    ),
    "nn.attention": (
        (
            "the compiler picks the kernel of attention",
            "activate_flash_attention_impl current_flash_attention_impl list_flash_attention_impls "
            "register_flash_attention_impl restore_flash_attention_impl",
        ),
    ),
    "nn.parallel": (
        (
            "there is one process and one device",
            "gather parallel_apply replicate scatter",
        ),
    ),
    "optim": (
        (
            "it is not written yet: torch.autograd.Function can add it",
            "swap_in_optimizer_params_and_state",
        ),
    ),
    "utils": (
        (
            "it is about PyTorch's own build",
            "ThroughputBenchmark cmake_prefix_path generate_methods_for_privateuse1_backend get_cpp_backtrace "
            "rename_privateuse1_backend set_module swap_tensors",
        ),
    ),
    "utils.data": (
        (
            "use Dataset, IterableDataset and DataLoader",
            "DFIterDataPipe DataChunk IterDataPipe MapDataPipe argument_validation functional_datapipe "
            "guaranteed_datapipes_determinism non_deterministic runtime_validation runtime_validation_disabled",
        ),
        (
            "there is one process and one device",
            "DistributedSampler",
        ),
    ),
    "autograd.graph": (
        (
            "there is one device and no stream of its own: gradients are added up in order",
            "region_activation_memory_budget set_override_stale_capture_stream "
            "set_warn_on_accumulate_grad_stream_mismatch",
        ),
    ),
    "return_types": (
        (
            "results are tuples with _fields, which trees of values know",
            "all_return_types pytree_register_structseq",
        ),
    ),
    "utils.checkpoint": (
        (
            "use torch.utils.checkpoint.checkpoint",
            "CheckpointError CheckpointFunction CheckpointPolicy GraphExecGroup SAC_IGNORED_OPS "
            "SelectiveCheckpointContext check_backward_validity create_selective_checkpoint_contexts "
            "detach_variable get_device_states noop_context_fn set_checkpoint_debug_enabled "
            "set_checkpoint_early_stop set_device_states",
        ),
        (
            "it is a part of TorchScript and of PyTorch's own dispatch: graphs are made by recording",
            "DefaultDeviceType",
        ),
    ),
    "linalg": (
        (
            "it is an internal of PyTorch's",
            "common_notes",
        ),
    ),
    "func": (
        (
            "use einsum, permute and reshape",
            "rearrange",
        ),
    ),
    "autograd": (
        (
            "every function of tensors can be differentiated again",
            "NestedIOFunction enforce_grad_layout_policy set_multithreading_enabled",
        ),
    ),
    "cuda": (
        (
            "the device is webgpu: use torch.webgpu, torch.memory and torch.profiler",
            "BFloat16Storage BoolStorage ByteStorage CUDAGraph CUDAPluggableAllocator "
            "CharStorage ComplexDoubleStorage ComplexFloatStorage CudaError "
            "DeferredCudaCallError DoubleStorage ExternalStream FloatStorage "
            "GreenContext HalfStorage IntStorage LongStorage MemPool ShortStorage "
            "StreamContext caching_allocator_alloc caching_allocator_delete "
            "caching_allocator_disabled caching_allocator_enable "
            "can_device_access_peer change_current_allocator check_error clock_rate "
            "cudaStatus cudart current_blas_handle current_solver_handle "
            "default_generators device_memory_used device_of get_allocator_backend "
            "get_arch_list get_gencode_flags get_per_process_memory_fraction "
            "get_stream_from_external get_sync_debug_mode graph graph_pool_handle "
            "host_memory_stats host_memory_stats_as_nested_dict "
            "is_current_stream_capturing is_tf32_supported list_gpu_processes "
            "make_graphed_callables memory_snapshot memory_stats_as_nested_dict "
            "memory_usage power_draw reset_accumulated_host_memory_stats "
            "reset_accumulated_memory_stats reset_max_memory_cached "
            "reset_peak_host_memory_stats set_per_process_memory_fraction set_stream "
            "set_sync_debug_mode temperature use_mem_pool utilization",
        ),
    ),
    "random": (
        (
            "it is a part of TorchScript and of PyTorch's own dispatch: graphs are made by recording",
            "thread_safe_generator",
        ),
    ),
    "masked": (
        (
            "its functions take tensors and masks (mask=): torch.masked.sum, mean, softmax and more",
            "MaskedTensor as_masked_tensor is_masked_tensor masked_tensor",
        ),
    ),
    "sparse": (
        (
            "sparse tensors are coordinates (torch.sparse_coo_tensor) or rows (torch.sparse_csr_tensor) here",
            "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS "
            "as_sparse_gradcheck check_sparse_tensor_invariants to_sparse_semi_structured",
        ),
        (
            "use torch.linalg: solve, lstsq, qr, svd, eigh, cholesky",
            "solve",
        ),
    ),
    "profiler": (
        (
            "torch.profiler.profile writes Chrome's format",
            "DeviceType ExecutionTraceObserver kineto_available",
        ),
    ),
    "compiler": (
        (
            "torch.compile captures steps by itself: see docs/guides/compile.md",
            "get_default_backend keep_portable_guards_unsafe keep_tensor_guards_unsafe load_cache_artifacts "
            "load_compiled_function nested_compile_region save_cache_artifacts set_default_backend "
            "set_enable_guard_collectives set_stance skip_all_guards_unsafe skip_guard_on_all_nn_modules_unsafe "
            "skip_guard_on_globals_unsafe skip_guard_on_inbuilt_nn_modules_unsafe substitute_in_graph wrap_numpy",
        ),
    ),
    "accelerator": (
        (
            "use torch.webgpu and torch.memory",
            "Graph current_device_idx current_stream device_index empty_host_cache get_device_capability "
            "get_memory_info max_memory_reserved memory_reserved memory_stats reset_accumulated_memory_stats "
            "reset_peak_memory_stats set_device_idx set_stream",
        ),
    ),
    "Tensor": (
        (
            "it is not written yet: torch.autograd.Function can add it",
            "const_data_ptr grad_dtype index ipu map2_ "
            "module_load mtia name reinforce resize resize_as "
            "slice_inverse to_padded_tensor volatile xpu",
        ),
        (
            "sparse tensors are coordinates (torch.sparse_coo_tensor) or rows (torch.sparse_csr_tensor) here",
            "ccol_indices resize_as_sparse_ row_indices smm sparse_mask sparse_resize_ "
            "sparse_resize_and_clear_ sspaddmm to_sparse_bsc to_sparse_bsr to_sparse_csc",
        ),
        (
            "models are not quantised here",
            "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
            "q_zero_point qscheme",
        ),
        (
            "use torch.linalg: solve, lstsq, qr, svd, eigh, cholesky",
            "eig lstsq solve",
        ),
        (
            "there is one process and one device",
            "is_distributed",
        ),
        (
            "memory is that of untyped_storage(): a tensor is lazy, and its values move",
            "storage storage_type",
        ),
        (
            "shapes are plain numbers here",
            "symeig",
        ),
        (
            "it is one of PyTorch's own kernels: use the function of torch.nn.functional",
            "to_mkldnn",
        ),
    ),
}


def find(path: str, name: str) -> object:
    """A class that raises when it is made or called. Raises AttributeError for what PyTorch has not either."""
    stand_ins: Any = import_module("pywebgpu.stand_ins")
    known: object = stand_ins.ANSWERS.get(f"{path}.{name}")
    if known is not None:
        return known
    whole = f"torch.{path}.{name}" if path else f"torch.{name}"
    for reason, names in NAMES.get(path, ()):
        if name in names.split():
            return type(name, (stand_ins.Absent,), {"__doc__": f"{whole} is not here: {reason}"})
    if path == "Tensor":
        raise AttributeError(f"'Tensor' object has no attribute {name!r}")
    text = f"module 'torch.{path}' has no attribute {name!r}".replace("torch.'", "torch'")
    raise AttributeError(text + ("" if path else near(name)))


@lru_cache(maxsize=100)
def near(name: str) -> str:
    """What may have been meant: Python itself says nothing where there are as many names as in torch."""
    names = dir(import_module("pywebgpu"))
    found = import_module("difflib").get_close_matches(name, names, 1, 0.75)
    return f". Did you mean: {found[0]!r}?" if found else ""
