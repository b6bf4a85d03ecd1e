"""Calls of names that no table of cases calls, for the reference: each runs as it stands, and shows what it gives."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pywebgpu
from tests.cases.run import default_device
from tools.docs import samples, surface

PATH = re.compile(r"(?<![\w.'])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
# Names without `torch.`; x, w, n and spikes are tensors. After "!" stands what is refused.
LINES = """
AcceleratorError("lost")
bartlett_window(6)
binomial(full((3,), 10.0), full((3,), 0.5))
bitwise_left_shift(arange(4), 2)
bitwise_right_shift(arange(4), 1)
!bitwise_left_shift(ones(4), 2)
blackman_window(6)
hamming_window(6)
chain_matmul(ones(2, 3), ones(3, 4), ones(4, 5))
finfo(float16)
iinfo(int32)
frombuffer(bytearray(8), dtype=float32)
from_dlpack(ones(2, 3, device="cpu"))
gcd(tensor([12, 18]), tensor([8, 12]))
!gcd(ones(2), ones(2))
lcm(tensor([4, 6]), tensor([6, 4]))
ger(ones(2), ones(3))
hash_tensor(arange(6))
inverse(eye(3))
!inverse(ones(2, 3))
is_conj(x)
is_neg(x)
is_nonzero(tensor(1.0))
!is_nonzero(ones(2))
is_same_size(x, zeros(2, 3))
is_signed(n)
is_storage(x)
native_dropout(x, 0.5, True)
poisson(full((2, 3), 4.0))
range(0, 3)
row_stack((ones(3), ones(3)))
segment_reduce(ones(5), "sum", lengths=tensor([2, 3]))
sparse_coo_tensor(tensor([[0, 1], [2, 0]]), ones(2), (2, 3))
spmm(spikes, ones(3, 4))
unravel_index(tensor([5]), (2, 3))
unsafe_split_with_sizes(ones(5), [2, 3])
typename(x)
Size([2, 3])
get_rng_state()
get_default_device()
get_default_dtype()
device("cpu")
get_autocast_dtype("webgpu")
is_autocast_enabled("webgpu")
is_inference_mode_enabled()
get_float32_matmul_precision()
vmap(sum)(ones(4, 3))
compile(sum)(ones(4))
DoubleTensor(2, 3)
HalfTensor(2, 3)
BFloat16Tensor(2, 3)
CharTensor(2, 3)
ShortTensor(2, 3)
IntTensor(2, 3)
autocast("cpu", dtype=bfloat16)(matmul)(ones(2, 3), ones(3, 4))
no_grad()(sum)(w).requires_grad
enable_grad()(sum)(w).requires_grad
inference_mode()(sum)(w).requires_grad
set_grad_enabled(False)(sum)(w).requires_grad
GradScaler(init_scale=8.0, device="cpu").scale(tensor(2.0))
amp.autocast("cpu", dtype=bfloat16)(matmul)(ones(2, 3), ones(3, 4))
amp.GradScaler("cpu", init_scale=8.0).scale(tensor(2.0))
amp.is_autocast_available("cpu")
!x.chalf()
x.data
x.device
x.dtype
x.grad_fn
x.is_cpu
x.is_cuda
x.is_leaf
x.is_meta
x.is_mps
x.is_nested
x.is_quantized
x.is_xpu
x.output_nr
x.is_sparse
x.itemsize
x.layout
x.nbytes
x.ndim
x.ndimension()
x.requires_grad
x.retains_grad
x.shape
x.get_device()
x.is_pinned()
x.is_shared()
x.pin_memory()
x.share_memory_()
x.random_(0, 10)
x.to_sparse()
x.to_sparse_coo()
x.new(4)
w.grad
spikes.coalesce()
spikes.dense_dim()
spikes.sparse_dim()
spikes.indices()
spikes.values()
spikes.is_coalesced()
spikes.to_dense()
func.grad(lambda x: (x**2).sum())(ones(3))
func.grad_and_value(lambda x: (x**2).sum())(ones(3))
func.hessian(lambda x: (x**3).sum())(ones(3))
func.jacfwd(sin)(ones(3))
func.jacrev(sin)(ones(3))
func.jvp(sin, (ones(3),), (ones(3),))
func.vjp(sin, ones(3))[0]
func.linearize(sin, ones(3))[0]
func.vmap(dot)(ones(4, 3), ones(4, 3))
func.functional_call(linear, dict(linear.named_parameters()), ones(2, 3))
func.stack_module_state([linear, linear])[0]
linalg.ldl_factor_ex(eye(3))
linalg.LinAlgError("singular")
nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])(rand(4, 8), tensor([1, 6, 12, 19]))
nn.AlphaDropout(0.5)(x)
nn.Dropout1d(0.5)(rand(2, 3, 4))
nn.Dropout3d(0.5)(rand(2, 3, 4, 4, 4))
nn.FeatureAlphaDropout(0.5)(rand(2, 3, 4, 4))
nn.RReLU()(x)
nn.Buffer(ones(3))
nn.Parameter(ones(3))
nn.ChannelShuffle(2)(rand(1, 4, 3, 3))
nn.CosineSimilarity()(x, x)
nn.PairwiseDistance()(x, x)
nn.CrossMapLRN2d(2)(rand(1, 4, 3, 3))
nn.CTCLoss()(rand(9, 2, 5).log_softmax(-1), tensor([[1, 2], [3, 4]]), tensor([9, 9]), tensor([2, 2]))
nn.EmbeddingBag(10, 3)(tensor([[1, 2], [4, 5]]))
nn.Fold((4, 4), 2)(rand(1, 12, 9))
nn.Unfold(2)(rand(1, 3, 4, 4))
nn.FractionalMaxPool2d(2, output_size=3)(rand(1, 2, 7, 7))
nn.FractionalMaxPool3d(2, output_size=3)(rand(1, 2, 7, 7, 7))
nn.GaussianNLLLoss()(x, x, ones(2, 3))
nn.MultiLabelMarginLoss()(x, tensor([[0, -1, -1], [1, 2, -1]]))
nn.NLLLoss2d()(rand(2, 3, 4, 4), zeros(2, 4, 4, dtype=int64))
nn.TripletMarginLoss()(x, x, -x)
nn.TripletMarginWithDistanceLoss()(x, x, -x)
nn.LinearCrossEntropyLoss(3, 5)(x, tensor([1, 4]))
nn.GRU(4, 5)(rand(7, 3, 4))
nn.LSTM(4, 5)(rand(7, 3, 4))
!nn.LSTM(4, 5)(rand(7, 3, 3))
nn.RNN(4, 5, num_layers=2)(rand(7, 3, 4))
nn.LazyLinear(4)(x)
nn.LazyBatchNorm1d()(x)
nn.LazyBatchNorm2d()(rand(2, 3, 4, 4))
nn.LazyBatchNorm3d()(rand(2, 3, 4, 4, 4))
nn.LazyInstanceNorm1d()(rand(2, 3, 4))
nn.LazyInstanceNorm2d()(rand(2, 3, 4, 4))
nn.LazyInstanceNorm3d()(rand(2, 3, 4, 4, 4))
nn.LazyConv1d(5, 3)(rand(2, 3, 8))
nn.LazyConv2d(5, 3)(rand(2, 3, 8, 8))
nn.LazyConv3d(5, 3)(rand(2, 3, 4, 4, 4))
nn.LazyConvTranspose1d(5, 3)(rand(2, 3, 8))
nn.LazyConvTranspose2d(5, 3)(rand(2, 3, 8, 8))
nn.LazyConvTranspose3d(5, 3)(rand(2, 3, 4, 4, 4))
nn.MaxUnpool1d(2)(*nn.functional.max_pool1d_with_indices(rand(1, 2, 8), 2))
nn.MaxUnpool2d(2)(*nn.functional.max_pool2d_with_indices(rand(1, 2, 8, 8), 2))
nn.MaxUnpool3d(2)(*nn.functional.max_pool3d_with_indices(rand(1, 2, 4, 4, 4), 2))
nn.ModuleDict({"into": linear})["into"](x)
nn.ModuleList([linear])[0](x)
nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))(x)
!nn.Sequential(nn.Linear(3, 4), nn.Linear(3, 1))(x)
nn.ParameterDict({"scale": ones(3)})["scale"]
nn.ParameterList([ones(3)])[0]
nn.MultiheadAttention(8, 2)(rand(5, 3, 8), rand(5, 3, 8), rand(5, 3, 8))
nn.PixelUnshuffle(2)(rand(1, 3, 4, 4))
nn.Transformer(8, 2, 1, 1, 16)(rand(5, 3, 8), rand(4, 3, 8))
nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)(rand(5, 3, 8))
nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2)(rand(4, 3, 8), rand(5, 3, 8))
nn.UpsamplingBilinear2d(scale_factor=2)(rand(1, 2, 3, 3))
nn.UpsamplingNearest2d(scale_factor=2)(rand(1, 2, 3, 3))
nn.functional.adaptive_max_pool1d_with_indices(rand(1, 2, 8), 3)
nn.functional.adaptive_max_pool2d_with_indices(rand(1, 2, 8, 8), 3)
nn.functional.adaptive_max_pool3d_with_indices(rand(1, 2, 4, 4, 4), 3)
nn.functional.dropout1d(rand(2, 3, 4), 0.5)
nn.functional.fold(rand(1, 12, 9), (4, 4), 2)
nn.functional.fractional_max_pool2d(rand(1, 2, 7, 7), 2, output_size=3)
nn.functional.fractional_max_pool2d_with_indices(rand(1, 2, 7, 7), 2, output_size=3)
nn.functional.fractional_max_pool3d(rand(1, 2, 7, 7, 7), 2, output_size=3)
nn.functional.fractional_max_pool3d_with_indices(rand(1, 2, 7, 7, 7), 2, output_size=3)
nn.functional.gumbel_softmax(x, hard=True)
nn.functional.lp_pool2d(rand(1, 2, 8, 8), 2, 2)
nn.functional.lp_pool3d(rand(1, 2, 4, 4, 4), 2, 2)
nn.functional.max_pool1d_with_indices(rand(1, 2, 8), 2)
nn.functional.max_pool2d_with_indices(rand(1, 2, 8, 8), 2)
nn.functional.max_pool3d_with_indices(rand(1, 2, 4, 4, 4), 2)
nn.functional.max_unpool3d(*nn.functional.max_pool3d_with_indices(rand(1, 2, 4, 4, 4), 2), 2)
nn.functional.triplet_margin_with_distance_loss(x, x, -x)
nn.functional.upsample(rand(1, 2, 3, 3), scale_factor=2)
nn.init.dirac_(empty(3, 3, 5))
nn.init.sparse_(empty(3, 4), 0.5)
nn.init.uniform_(empty(2, 3), -1, 1)
nn.utils.clip_grads_with_norm_([w], 1.0, tensor(4.0))
nn.utils.get_total_norm([ones(3), ones(4)])
nn.utils.fuse_conv_bn_eval(nn.Conv2d(3, 4, 3).eval(), nn.BatchNorm2d(4).eval())
nn.utils.fuse_linear_bn_eval(nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval())
nn.utils.spectral_norm(nn.Linear(3, 4))(x)
nn.utils.weight_norm(nn.Linear(3, 4))(x)
nn.utils.skip_init(nn.Linear, 3, 4)
nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))(x)
nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4))(x)
nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))(x)
nn.utils.parametrize.is_parametrized(linear)
nn.utils.prune.is_pruned(linear)
nn.utils.prune.l1_unstructured(nn.Linear(3, 4), "weight", 0.5).weight
nn.utils.prune.ln_structured(nn.Linear(3, 4), "weight", 0.5, n=2, dim=0).weight
nn.utils.prune.random_unstructured(nn.Linear(3, 4), "weight", 0.5).weight
nn.utils.prune.random_structured(nn.Linear(3, 4), "weight", 0.5, dim=0).weight
nn.utils.prune.identity(nn.Linear(3, 4), "weight").weight
nn.utils.prune.custom_from_mask(nn.Linear(3, 4), "weight", ones(4, 3)).weight
nn.utils.rnn.PackedSequence(rand(8, 3), tensor([2, 2, 2, 1, 1]))
nn.utils.rnn.invert_permutation(tensor([2, 0, 1]))
nn.utils.rnn.pack_padded_sequence(rand(5, 2, 3), tensor([5, 3]))
nn.utils.rnn.pack_sequence([rand(5, 3), rand(3, 3)])
nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_sequence([rand(5, 3), rand(3, 3)]))
nn.utils.rnn.pad_sequence([rand(5, 3), rand(3, 3)])
nn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence([rand(5, 3), rand(3, 3)]))
nn.utils.rnn.unpad_sequence(rand(5, 2, 3), tensor([5, 3]))
rates(optim.lr_scheduler.ConstantLR(sgd(), 0.5, 2))
rates(optim.lr_scheduler.CosineAnnealingLR(sgd(), 4))
rates(optim.lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 2))
rates(optim.lr_scheduler.CyclicLR(sgd(), 0.5, 1.0, 2))
rates(optim.lr_scheduler.ExponentialLR(sgd(), 0.5))
rates(optim.lr_scheduler.LambdaLR(sgd(), lambda step: 1 / (1 + step)))
rates(optim.lr_scheduler.LinearLR(sgd(), 0.5, 1.0, 2))
rates(optim.lr_scheduler.MultiplicativeLR(sgd(), lambda step: 0.5))
rates(optim.lr_scheduler.MultiStepLR(sgd(), [1, 3]))
rates(optim.lr_scheduler.OneCycleLR(sgd(), 1.0, total_steps=5))
rates(optim.lr_scheduler.PolynomialLR(sgd(), 4))
rates(optim.lr_scheduler.StepLR(sgd(), 2))
rates(optim.lr_scheduler.ReduceLROnPlateau(sgd(), patience=1), 7.0)
optim.swa_utils.AveragedModel(linear)(x)
optim.swa_utils.get_ema_avg_fn(0.9)(ones(2), zeros(2), 1)
optim.swa_utils.get_swa_avg_fn()(ones(2), zeros(2), 1)
sparse.addmm(ones(2, 4), spikes, ones(3, 4))
sparse.mm(spikes, ones(3, 4))
sparse.sum(spikes)
sparse.softmax(spikes, 1)
sparse.log_softmax(spikes, 1)
special.gammaln(x)
special.multigammaln(x + 2, 2)
special.psi(x)
len(utils.data.BatchSampler(utils.data.SequentialSampler(range(7)), 3, drop_last=False))
utils.data.ConcatDataset([utils.data.TensorDataset(x), utils.data.TensorDataset(x)])[3]
next(iter(utils.data.DataLoader(utils.data.TensorDataset(x, tensor([0, 1])), batch_size=2)))
utils.data.default_collate([(ones(3), 1), (ones(3), 2)])
utils.data.default_convert([1.0, 2.0])
utils.data.random_split(list(arange(6)), [4, 2])
list(utils.data.SequentialSampler([7, 8, 9]))
len(list(utils.data.RandomSampler([7, 8, 9])))
len(list(utils.data.SubsetRandomSampler([0, 2])))
len(list(utils.data.WeightedRandomSampler([0.1, 0.9], 4)))
utils.data.Subset([7, 8, 9], [2])[0]
utils.data.TensorDataset(x, tensor([0, 1]))[1]
"""
# Of these, which are alike, one call each: of an optimizer, a distribution, a transform.
OPTIMIZERS = "Adadelta Adafactor Adagrad Adam Adamax AdamW ASGD Muon NAdam RAdam RMSprop Rprop SGD"
DISTRIBUTIONS = """
Bernoulli(full((3,), 0.5))
Beta(ones(3), ones(3))
Binomial(10, full((3,), 0.5))
Categorical(ones(4, 3))
Cauchy(zeros(3), ones(3))
Chi2(ones(3))
ContinuousBernoulli(full((3,), 0.3))
Dirichlet(ones(4, 3))
Exponential(ones(3))
FisherSnedecor(ones(3), ones(3))
Gamma(ones(3), ones(3))
GeneralizedPareto(zeros(3), ones(3), ones(3))
Geometric(full((3,), 0.5))
Gumbel(zeros(3), ones(3))
HalfCauchy(ones(3))
HalfNormal(ones(3))
Independent(distributions.Normal(zeros(4, 3), ones(4, 3)), 1)
InverseGamma(ones(3), ones(3))
Kumaraswamy(ones(3), ones(3))
Laplace(zeros(3), ones(3))
LKJCholesky(3)
LogisticNormal(zeros(3), ones(3))
LogNormal(zeros(3), ones(3))
LowRankMultivariateNormal(zeros(3), ones(3, 1), ones(3))
MixtureSameFamily(distributions.Categorical(ones(3)), distributions.Normal(zeros(3), ones(3)))
Multinomial(5, ones(4, 3))
MultivariateNormal(zeros(3), eye(3))
NegativeBinomial(5, full((3,), 0.5))
Normal(zeros(3), ones(3))
OneHotCategorical(ones(4, 3))
OneHotCategoricalStraightThrough(ones(4, 3))
Pareto(ones(3), ones(3))
Poisson(ones(3))
RelaxedBernoulli(tensor(0.5), full((3,), 0.5))
RelaxedOneHotCategorical(tensor(0.5), ones(4, 3))
StudentT(ones(3))
TransformedDistribution(distributions.Normal(zeros(3), ones(3)), [distributions.ExpTransform()])
Uniform(zeros(3), ones(3))
VonMises(zeros(3), ones(3))
Weibull(ones(3), ones(3))
Wishart(tensor(4.0), eye(3))
"""
TRANSFORMS = """
AbsTransform()(x)
AffineTransform(1.0, 2.0)(x)
ComposeTransform([distributions.ExpTransform(), distributions.AffineTransform(0.0, 2.0)])(x)
CorrCholeskyTransform()(rand(3))
CumulativeDistributionTransform(distributions.Normal(0.0, 1.0))(x)
ExpTransform()(x)
IndependentTransform(distributions.ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
LowerCholeskyTransform()(rand(3, 3))
PositiveDefiniteTransform()(rand(3, 3))
PowerTransform(tensor(2.0))(x)
ReshapeTransform((2, 3), (6,))(x)
SigmoidTransform()(x)
SoftmaxTransform()(x)
SoftplusTransform()(x)
StackTransform([distributions.ExpTransform(), distributions.AbsTransform()])(x)
CatTransform([distributions.ExpTransform(), distributions.AbsTransform()], lengths=[1, 1])(x)
StickBreakingTransform()(x)
TanhTransform()(x)
biject_to(distributions.constraints.positive)(x)
transform_to(distributions.constraints.positive)(x)
kl_divergence(distributions.Normal(zeros(3), ones(3)), distributions.Normal(ones(3), ones(3)))
"""


def lines() -> Iterator[str]:
    yield from LINES.strip().splitlines()
    yield from (f"optim.{name}([w], lr=0.1).step()" for name in OPTIMIZERS.split())
    for line in DISTRIBUTIONS.strip().splitlines():
        yield f"distributions.{line}.sample([2])"
        yield f"distributions.{line}.log_prob(distributions.{line}.sample())"
    yield from (f"distributions.{line}" for line in TRANSFORMS.strip().splitlines())


def collect() -> dict[str, samples.Found]:
    """By the first public name in each line: the line, and what it gives or why it is refused."""
    public = {name.full for path in surface.modules() for name in surface.names(path)}
    found: dict[str, samples.Found] = {}
    with warnings.catch_warnings(), default_device(pywebgpu, "cpu"):
        warnings.simplefilter("ignore")
        for line in lines():
            given = words()
            shown = line.removeprefix("!")
            name = next(one for one in named(shown, given) if one in public)
            known = found.setdefault(name, samples.Found())
            value, refused = outcome(shown, given)
            assert (refused is None) == (line == shown), f"{line}: {refused}"
            if refused is None:
                known.calls[(len(known.calls), (), shown)] = f"{shown} -> {said(value)}"
            else:
                known.errors[f"{type(refused).__name__}: {samples.first_line(refused)}"] = shown
    return found


def outcome(line: str, given: dict[str, Any]) -> tuple[object, Exception | None]:
    """What it gives, or why it is refused."""
    try:
        return eval(line, given), None
    except (RuntimeError, TypeError, ValueError) as error:
        return None, error


def words() -> dict[str, Any]:
    """What a line may name: all of torch, and a few values."""
    torch: Any = pywebgpu
    weight = torch.nn.Parameter(torch.ones(2, 3))
    weight.grad = torch.ones(2, 3)
    own = {
        "x": torch.rand(2, 3),
        "w": weight,
        "n": torch.arange(6).reshape(2, 3),
        "spikes": torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]).to_sparse(),
        "linear": torch.nn.Linear(3, 4),
        "sgd": lambda: torch.optim.SGD([weight], lr=1.0),
        "rates": rates,
        "len": len, "list": list, "next": next, "iter": iter, "dict": dict, "bytearray": bytearray,
    }  # fmt: skip
    return {name: getattr(torch, name) for name in dir(torch)} | own


def rates(scheduler: Any, *metrics: float) -> list[float]:
    """The learning rate before each of five steps."""
    found = []
    for _ in (1, 2, 3, 4, 5):
        found.append(round(float(scheduler.optimizer.param_groups[0]["lr"]), 4))
        scheduler.optimizer.step()
        scheduler.step(*metrics)
    return found


def named(line: str, given: dict[str, Any]) -> Iterator[str]:
    """The dotted names of a line, longest first; a method of a value is one of Tensor."""
    for path in PATH.findall(line):
        first, _, rest = path.partition(".")
        if isinstance(given.get(first), pywebgpu.Tensor):
            yield f"Tensor.{rest}"
        parts = path.split(".")
        yield from (".".join(parts[:end]) for end in range(len(parts), 0, -1))


def said(value: object) -> str:
    """What the reference says of a value; of an object whose text has several lines, its class."""
    text = samples.described(value)
    return type(value).__name__ if text == "..." else text
