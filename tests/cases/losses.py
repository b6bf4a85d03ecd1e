"""Losses: every reduction, weights, ignored classes, smoothing, targets of both kinds."""

from tests.cases.case import Case, Function, Input, bools, distinct, given, integers, randn, resolve, uniform

CASES: list[Case] = []
REDUCTIONS = ("mean", "sum", "none")


def case(name: str, fn, *inputs: Input, **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance="reduction", **options))


def loss(name: str, **options) -> Function:
    return lambda torch, *tensors: resolve(torch.nn.functional, name)(*tensors, **options)


PROBABILITY = uniform(4, 5, low=0.1, high=0.9)
# name: input, target, options that differ from the defaults.
LOSSES = {
    "mse_loss": (randn(4, 5), randn(4, 5), ()),
    "l1_loss": (randn(4, 5), randn(4, 5), ()),
    "smooth_l1_loss": (randn(4, 5), randn(4, 5), ({"beta": 0.5}, {"beta": 2.0})),
    "huber_loss": (randn(4, 5), randn(4, 5), ({"delta": 0.5},)),
    "binary_cross_entropy": (PROBABILITY, PROBABILITY, ()),
    "binary_cross_entropy_with_logits": (randn(4, 5), PROBABILITY, ()),
    "kl_div": (uniform(4, 5, low=-3, high=-0.1), PROBABILITY, ({"log_target": True},)),
    "soft_margin_loss": (randn(4, 5), given([[1.0, -1.0, 1.0, 1.0, -1.0]] * 4, grad=False), ()),
    "hinge_embedding_loss": (randn(4, 5), given([[1.0, -1.0, 1.0, 1.0, -1.0]] * 4, grad=False), ({"margin": 0.5},)),
    "poisson_nll_loss": (randn(4, 5), uniform(4, 5, low=0.5, high=3, grad=False), ({"log_input": True},)),
    "nll_loss": (uniform(4, 5, low=-3, high=-0.1), integers(4, low=0, high=5), ()),
    "cross_entropy": (randn(4, 5), integers(4, low=0, high=5), ({"label_smoothing": 0.1}, {"ignore_index": 2})),
}  # fmt: skip
for name, (x, target, variants) in LOSSES.items():
    for reduction in REDUCTIONS:
        case(f"{name}_{reduction}", loss(name, reduction=reduction), x, target)
        for options in variants:
            text = "_".join(f"{key}_{value}" for key, value in options.items())
            case(f"{name}_{reduction}_{text}", loss(name, reduction=reduction, **options), x, target)
case("kl_div_batchmean", loss("kl_div", reduction="batchmean"), *LOSSES["kl_div"][:2])
case("smooth_l1_loss_zero_beta", loss("smooth_l1_loss", beta=0.0), randn(9), randn(9))

# Classes: weights, ignored targets, smoothing, further axes, probabilities as targets.
WEIGHT = uniform(5, low=0.2, high=2, grad=False)
IGNORED = given([0, -100, 4, 2, -100, 1], "int64")
for reduction in REDUCTIONS:
    options = {"reduction": reduction}
    weighed = lambda torch, x, t, w, o=options: torch.nn.functional.cross_entropy(x, t, w, **o)  # noqa: E731
    smooth = lambda torch, x, t, w, o=options: torch.nn.functional.cross_entropy(  # noqa: E731
        x, t, weight=w, label_smoothing=0.2, **o
    )
    case(f"cross_entropy_weight_{reduction}", weighed, randn(6, 5), integers(6, low=0, high=5), WEIGHT)
    case(f"cross_entropy_weight_ignored_{reduction}", weighed, randn(6, 5), IGNORED, WEIGHT)
    case(f"cross_entropy_weight_smooth_{reduction}", smooth, randn(6, 5), IGNORED, WEIGHT)
    case(f"cross_entropy_ignored_{reduction}", loss("cross_entropy", **options), randn(6, 5), IGNORED)
    case(f"cross_entropy_images_{reduction}", loss("cross_entropy", **options), randn(2, 5, 3, 4),
         integers(2, 3, 4, low=0, high=5))  # fmt: skip
    case(
        f"cross_entropy_probabilities_{reduction}", loss("cross_entropy", **options), randn(6, 5), uniform(6, 5, low=0)
    )
    case(f"cross_entropy_probabilities_smooth_{reduction}", loss("cross_entropy", label_smoothing=0.1, **options),
         randn(6, 5), uniform(6, 5, low=0))  # fmt: skip
    case(f"cross_entropy_unbatched_{reduction}", loss("cross_entropy", **options), randn(5), integers(low=0, high=5))
    case(f"nll_loss_weight_{reduction}", lambda torch, x, t, w, o=options: torch.nn.functional.nll_loss(x, t, w, **o),
         randn(6, 5), IGNORED, WEIGHT)  # fmt: skip
    case(f"nll_loss_images_{reduction}", loss("nll_loss", **options), randn(2, 5, 3), integers(2, 3, low=0, high=5))
    case(f"bce_weight_{reduction}",
         lambda torch, x, t, w, o=options: torch.nn.functional.binary_cross_entropy(x, t, w, **o),
         PROBABILITY, PROBABILITY, WEIGHT)  # fmt: skip
    case(f"bce_logits_weights_{reduction}",
         lambda torch, x, t, w, o=options: torch.nn.functional.binary_cross_entropy_with_logits(
             x, t, weight=w, pos_weight=w * 2, **o), randn(4, 5), PROBABILITY, WEIGHT)  # fmt: skip
case(
    "hinge_embedding_loss_broadcast",
    loss("hinge_embedding_loss"),
    randn(5),
    given([[1.0, -1.0, 1.0, 1.0, -1.0]] * 4, grad=False),
)
for name in ("cross_entropy", "nll_loss"):
    case(f"{name}_no_rows", loss(name), randn(0, 5), given([], "int64"))
case(
    "cross_entropy_large_logits", loss("cross_entropy"), given([[1000.0, 0.0], [-1000.0, 0.0]]), given([0, 1], "int64")
)
case(
    "cross_entropy_masked_class",
    loss("cross_entropy"),
    given([[0.5, -float("inf"), 1.0]]),
    given([2], "int64"),
    grad=False,
)
case("cross_entropy_all_ignored", loss("cross_entropy"), randn(2, 5), given([-100, -100], "int64"), grad=False)
case("cross_entropy_one_class", loss("cross_entropy"), randn(3, 1), given([0, 0, 0], "int64"))
case("cross_entropy_many_classes", loss("cross_entropy"), randn(7, 300), integers(7, low=0, high=300))
case("cross_entropy_of_250000", lambda torch, x, t: torch.nn.functional.cross_entropy(x * 1e4, t),
     uniform(2, 250_000, low=-1, high=1), integers(2, low=0, high=250_000))  # fmt: skip
for reduction in REDUCTIONS:
    for name, options in {
        "whole": None,
        "parts": {"batch_chunk_size": 3},
        "rule": {"chunking_method": "aspect_ratio"},
    }.items():

        def linear_loss(torch, x, w, t, *more, r=reduction, o=options):
            options = None if o is None else torch.nn.LinearCrossEntropyOptions(**o)
            bias, weight = more or (None, None)
            return torch.nn.functional.linear_cross_entropy(
                x, w, t, linear_bias=bias, weight=weight, reduction=r, options=options
            )

        case(
            f"linear_cross_entropy_{name}_{reduction}",
            linear_loss,
            randn(8, 6),
            randn(11, 6),
            integers(8, low=0, high=11),
        )
        case(f"linear_cross_entropy_{name}_weight_{reduction}", linear_loss, randn(6, 4), randn(5, 4), IGNORED,
             randn(5), WEIGHT)  # fmt: skip
case("linear_cross_entropy_unbatched", lambda torch, x, w, t: torch.nn.functional.linear_cross_entropy(
    x, w, t, options=torch.nn.LinearCrossEntropyOptions()), randn(6), randn(11, 6),
     integers(low=0, high=11))  # fmt: skip
case("linear_cross_entropy_images", lambda torch, x, w, t: torch.nn.functional.linear_cross_entropy(x, w, t),
     randn(3, 6), randn(5, 2, 4, 6), integers(3, 2, 4, low=0, high=5))  # fmt: skip
case("linear_cross_entropy_function_of_loss", lambda torch, x, w, t: torch.nn.functional.linear_cross_entropy(
    x, w, t, options=torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)).exp() * 3, randn(5, 6), randn(11, 6),
     integers(5, low=0, high=11))  # fmt: skip
case("cross_entropy_of_sequence", lambda torch, x, t: torch.nn.functional.cross_entropy(x.view(-1, 65), t.view(-1)),
     randn(2, 8, 65), integers(2, 8, low=0, high=65))  # fmt: skip
case("cross_entropy_of_transposed", lambda torch, x, t: torch.nn.functional.cross_entropy(x.transpose(1, 2), t),
     randn(2, 8, 6), integers(2, 8, low=0, high=6))  # fmt: skip
case("cross_entropy_function_of_loss", lambda torch, x, t: torch.nn.functional.cross_entropy(x, t).exp(), randn(4, 5),
     integers(4, low=0, high=5))  # fmt: skip
case("bce_at_bounds", loss("binary_cross_entropy"), given([0.0, 1.0, 0.0]), given([0.0, 1.0, 1.0]), grad=False)
case(
    "bce_logits_large", loss("binary_cross_entropy_with_logits"), given([100.0, -100.0]), given([0.0, 1.0], grad=False)
)
case("bce_logits_bool_cast", lambda torch, x, t: torch.nn.functional.binary_cross_entropy_with_logits(x, t.float()),
     randn(9), bools(9))  # fmt: skip
case("mse_loss_float16", loss("mse_loss"), randn(9, dtype="float16"), randn(9, dtype="float16"))
case("triplet_margin_loss", loss("triplet_margin_loss"), randn(4, 5), randn(4, 5), randn(4, 5))
case("margin_ranking_loss", loss("margin_ranking_loss", margin=0.2), randn(6), randn(6),
     given([1.0, -1.0] * 3, grad=False))  # fmt: skip
case("cosine_embedding_loss", loss("cosine_embedding_loss"), randn(4, 5), randn(4, 5),
     given([1.0, -1.0, 1.0, -1.0], grad=False))  # fmt: skip
case("l1_loss_at_zero", loss("l1_loss", reduction="sum"), distinct(5), given([0.0] * 5, grad=False))
