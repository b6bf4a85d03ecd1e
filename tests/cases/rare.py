"""Functions that few programs use: pictures read at points, bags, alignments, logarithms of gamma."""

from tests.cases.case import Case, Function, Input, call, distinct, given, integers, randn, resolve, uniform

CASES: list[Case] = []


def case(name: str, fn: Function, *inputs: Input, **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance="model", **options))


def functional(name: str, *args, **options) -> Function:
    return lambda torch, *tensors: resolve(torch.nn.functional, name)(*tensors, *args, **options)


for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        for corners in (False, True):
            fn = functional("grid_sample", mode=mode, padding_mode=padding, align_corners=corners)
            case(
                f"grid_sample_{mode}_{padding}_{corners}",
                fn,
                randn(2, 2, 4, 5),
                uniform(2, 3, 4, 2, low=-1.4, high=1.4),
            )
case("grid_sample_3d", functional("grid_sample", align_corners=False), randn(1, 2, 3, 4, 3), uniform(1, 2, 3, 2, 3))
for corners in (False, True):
    case(f"affine_grid_{corners}", functional("affine_grid", (2, 3, 4, 5), align_corners=corners), randn(2, 2, 3))
    for size in ((7, 3), (4, 9)):
        fn = functional("interpolate", size=size, mode="bicubic", align_corners=corners)
        case(f"interpolate_bicubic_{size[0]}_{corners}", fn, randn(2, 3, 5, 4))
    for mode in ("bilinear", "bicubic"):
        fn = functional("interpolate", size=(2, 9), mode=mode, align_corners=corners, antialias=True)
        case(f"interpolate_antialias_{mode}_{corners}", fn, randn(2, 3, 7, 4))
        case(f"interpolate_antialias_{mode}_{corners}_bytes", fn, integers(1, 2, 7, 4, low=0, high=256, dtype="uint8"))


def pooled(torch, x):
    out, index = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    return torch.nn.functional.max_unpool2d(out, index, 2, output_size=x.shape)


case("max_unpool2d", pooled, distinct(1, 2, 5, 6))

NUMBERS = integers(9, low=0, high=6)
OFFSETS = given([0, 3, 3, 7], "int64")
for mode in ("sum", "mean", "max"):
    fn = lambda torch, x, w, o, m=mode: torch.nn.functional.embedding_bag(x, w, o, mode=m)  # noqa: E731
    case(f"embedding_bag_{mode}", fn, NUMBERS, distinct(6, 3), OFFSETS)
    fn = functional("embedding_bag", mode=mode, padding_idx=1)
    case(f"embedding_bag_rows_{mode}", fn, integers(3, 4, low=0, high=6), distinct(6, 3))
fn = lambda torch, x, w, o: torch.nn.functional.embedding_bag(x.int(), w, o, padding_idx=2, mode="mean")  # noqa: E731
case("embedding_bag_of_int32", fn, NUMBERS, distinct(6, 3), OFFSETS)
fn = lambda torch, x, w, o: torch.nn.functional.embedding_bag(x, w, o.int(), padding_idx=2, include_last_offset=True)  # noqa: E731
case("embedding_bag_behind_the_last_offset", fn, NUMBERS, distinct(6, 3), OFFSETS)
case(
    "embedding_bag_weighted",
    lambda torch, x, w, o, p: torch.nn.functional.embedding_bag(x, w, o, mode="sum", per_sample_weights=p),
    NUMBERS, randn(6, 3), OFFSETS, randn(9),
)  # fmt: skip

CLASSES = given([[2, 0, -1, 1], [3, -1, 0, 0]], "int64")
for reduction in ("none", "mean", "sum"):
    case(
        f"multilabel_margin_loss_{reduction}",
        functional("multilabel_margin_loss", reduction=reduction),
        randn(2, 4),
        CLASSES,
    )
    fn = lambda torch, x, t, r=reduction: torch.nn.functional.ctc_loss(  # noqa: E731
        x.log_softmax(2), t, [6, 5, 6], [3, 2, 0], reduction=r
    )
    case(f"ctc_loss_{reduction}", fn, randn(6, 3, 5), given([[1, 1, 2], [3, 4, 0], [0, 0, 0]], "int64"))
case(
    "ctc_loss_impossible",
    lambda torch, x, t: torch.nn.functional.ctc_loss(x.log_softmax(2), t, [2, 2], [3, 1], zero_infinity=True),
    randn(2, 2, 5),
    given([[1, 1, 2], [3, 4, 4]], "int64"),
)

FAR = given([-3.7, -2.5, -0.3, 1e-3, 0.3, 1.0, 2.0, 7.0, 20.0, 1e4])
for name in ("lgamma", "digamma"):
    case(name, call(name), FAR)
case("polygamma_1", lambda torch, x: torch.polygamma(1, x), uniform(9, low=0.3, high=5, grad=False))
case("mvlgamma", call("mvlgamma", 2), uniform(3, 4, low=1.5, high=4))
case("diff_between", lambda torch, x, a, b: torch.diff(x, 1, 0, a, b), randn(3, 4), randn(1, 4), randn(2, 4))
case("tensordot_of_one", lambda torch, x, y: torch.tensordot(x, y, ([0, 1], [2, 0])), randn(1, 1, 2), randn(3, 1, 2))


# What layers are made of, by the names of PyTorch's own library


def operator(name: str, *args) -> Function:
    return lambda torch, *tensors: getattr(torch, name)(*tensors, *args)


case("conv_tbc", operator("conv_tbc", 1), randn(5, 2, 3), randn(2, 3, 4), randn(4))
plain = operator("convolution", [2, 2], [1, 1], [1, 1], False, [0, 0], 2)
case("convolution", plain, randn(1, 2, 5, 5), randn(4, 1, 3, 3), randn(4))
transposed = operator("convolution", None, [2], [1], [1], True, [1], 1)
case("convolution_transposed", transposed, randn(1, 2, 5), randn(2, 3, 3))
case("affine_grid_generator", operator("affine_grid_generator", [1, 1, 2, 2], True), randn(1, 2, 3))
case("native_channel_shuffle", operator("native_channel_shuffle", 2), randn(1, 4, 2, 1, grad=False))
case("max_pool1d_with_indices", operator("max_pool1d_with_indices", 2), distinct(1, 2, 7))
case("max_pool1d_with_indices_steps", operator("max_pool1d_with_indices", [3], [1], [1], [2], True), distinct(1, 2, 7))
for dim in (0, 1, 2, -1):
    case(f"norm_except_dim_{dim}", operator("norm_except_dim", 2, dim), randn(3, 4, 2))
case("norm_except_dim_of_a_line", operator("norm_except_dim", 2, 0), randn(3))
for name, gates in (("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("gru_cell", 3)):
    weights = randn(4 * gates, 3), randn(4 * gates, 4)
    case(name, operator(name), randn(2, 3), randn(2, 4), *weights)
    case(f"{name}_with_biases", operator(name), randn(2, 3), randn(2, 4), *weights, randn(4 * gates), randn(4 * gates))
for biases in ((), (randn(16), randn(16))):
    case(
        f"lstm_cell_{len(biases)}_biases",
        lambda torch, x, h, c, *weights: torch.lstm_cell(x, (h, c), *weights),
        randn(2, 3), randn(2, 4), randn(2, 4), randn(16, 3), randn(16, 4), *biases,
    )  # fmt: skip
