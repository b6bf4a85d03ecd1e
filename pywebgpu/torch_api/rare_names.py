"""Names of the torch namespace that few programs use, and the modules that have them: a page loads this when asked."""

_HOMES = {
    "pywebgpu.amp.autocast_mode": """
        clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled
        is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
        set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
    """,
    "pywebgpu.autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    "pywebgpu.inspector": "explain visualize",
    "pywebgpu.io.saving": "save_async",
    "pywebgpu.tensor.show": "get_printoptions printoptions set_printoptions",
    "pywebgpu.torch_api.accelerator": "get_device_module",
    "pywebgpu.amp": "GradScaler",
    "pywebgpu.torch_api.cuda": "AcceleratorError Event OutOfMemoryError Stream",
    "pywebgpu.distributions.sampling": "_sample_dirichlet _standard_gamma binomial poisson",
    "pywebgpu.func.batch": "vmap",
    "pywebgpu.torch_api.layer_operators": """
        _convolution affine_grid_generator conv_tbc convolution gru_cell lstm_cell max_pool1d_with_indices
        native_channel_shuffle norm_except_dim rnn_relu_cell rnn_tanh_cell
    """,
    "pywebgpu.linalg": "cholesky_inverse cholesky_solve det inverse logdet matrix_exp pinverse slogdet",
    "pywebgpu.linalg.lu_factors": "geqrf lu lu_solve lu_unpack orgqr ormqr pca_lowrank svd_lowrank triangular_solve",
    "pywebgpu.torch_api.operators": """
        _addmm_activation _assert _int_mm _masked_softmax _weight_int8pack_mm
        _cast_Float _cast_Int _cast_Long _shape_as_tensor
        _chunk_cat _native_batch_norm_legit _segment_reduce _unsafe_masked_index
        _unsafe_masked_index_put_accumulate alpha_dropout_ dropout_ feature_alpha_dropout_ feature_dropout
        feature_dropout_ frobenius_norm get_device
        grid_sampler grid_sampler_2d grid_sampler_3d native_batch_norm native_dropout native_group_norm
        native_layer_norm nuclear_norm segment_reduce slice_copy
    """,
    "pywebgpu.torch_api.quantized": """
        per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine
        per_tensor_symmetric qint32 qint8 qscheme quint2x4 quint4x2 quint8
    """,
    "pywebgpu.torch_api.backends": """
        are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision
        is_deterministic_algorithms_warn_only_enabled set_deterministic_debug_mode
        get_num_interop_threads get_num_threads set_float32_matmul_precision set_num_interop_threads set_num_threads
        use_deterministic_algorithms
    """,
    "pywebgpu.torch_api.overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
    "pywebgpu.signal.windows": "kaiser_window",
    "pywebgpu.sparse": "sparse_coo_tensor spmm",
    "pywebgpu.sparse.compressed": """
        _sparse_bsc_tensor_unsafe _sparse_bsr_tensor_unsafe _sparse_compressed_tensor_unsafe _sparse_csc_tensor_unsafe
        _sparse_csr_tensor_unsafe _validate_sparse_bsc_tensor_args _validate_sparse_bsr_tensor_args
        _validate_compressed_sparse_indices
        _validate_sparse_compressed_tensor_args _validate_sparse_csc_tensor_args _validate_sparse_csr_tensor_args
        sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_csc_tensor sparse_csr_tensor
    """,
    "pywebgpu.sparse.invariants": "_validate_sparse_coo_tensor_args",
    "pywebgpu.special": "polygamma",
    "pywebgpu.tensor.sources": "asarray frombuffer",
    "pywebgpu.tensor.storages": """
        BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage DoubleStorage
        FloatStorage HalfStorage IntStorage LongStorage ShortStorage Storage TypedStorage UntypedStorage
    """,
    "pywebgpu.tensor.bits": "frexp hash_tensor ldexp nextafter",
    "pywebgpu.tensor.complex_numbers": "complex imag polar real view_as_complex view_as_real",
    "pywebgpu.tensor.copies": """
        alias_copy as_strided_copy as_strided_scatter detach_copy diagonal_copy empty_permuted empty_strided expand_copy
        narrow_copy permute_copy select_copy split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy
        unbind_copy unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_copy
        view_as_complex_copy view_as_real_copy view_copy
    """,
    "pywebgpu.tensor.arrangement": """
        atleast_1d atleast_2d atleast_3d block_diag cartesian_prod chain_matmul column_stack combinations dstack
        hstack kron meshgrid row_stack tensordot vstack
    """,
    "pywebgpu.tensor.einsum": "einsum",
    "pywebgpu.tensor.numeric": """
        bartlett_window blackman_window cdist cholesky constant_pad_nd corrcoef cov cumulative_trapezoid digamma
        fill gradient hamming_window hann_window histogram histogramdd lgamma mvlgamma nonzero_static pdist qr
        renorm svd unravel_index vander
    """,
    "pywebgpu.torch_api._check": """
        _assert_async _assert_tensor_metadata _check _check_index _check_is_size _check_not_implemented
        _check_tensor_all _check_tensor_all_with _check_type _check_value _check_with
    """,
    "pywebgpu.utils.dlpack": "from_dlpack to_dlpack",
}
_LISTS = "pywebgpu.torch_api._foreach"  # Its functions of lists are made from those of one tensor.
NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}


def home(name: str) -> str:
    """The module that has a name; "" where none has it."""
    return _LISTS if name.startswith("_foreach_") else NAMES.get(name, "")
