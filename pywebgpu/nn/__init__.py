"""Neural networks under torch.nn's names: modules, parameters, losses, initial values, functional forms.

A family of layers is imported when one of its names is first asked for.
"""

from importlib import import_module
from typing import Any

from pywebgpu.nn import functional, init, utils
from pywebgpu.support.lazy import names as _names

_NAMES = {
    "activation": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish "
        "PReLU ReLU ReLU6 RReLU SELU Sigmoid SiLU Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh "
        "Tanhshrink Threshold"
    ),
    "attention": "MultiheadAttention",
    "channel_norm": (
        "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm"
    ),
    "container": "ModuleDict ModuleList Sequential",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "embedding": "Embedding",
    "embedding_bag": "EmbeddingBag",
    "functional.linear_loss": "LinearCrossEntropyOptions",
    "lazy_layers": (
        "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d "
        "LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear "
        "LazyModuleMixin UninitializedBuffer UninitializedParameter"
    ),
    "linear": "Bilinear Identity Linear NonDynamicallyQuantizableLinear",
    "loss": (
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss GaussianNLLLoss "
        "HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MarginRankingLoss MSELoss MultiLabelMarginLoss "
        "MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PairwiseDistance PoissonNLLLoss SmoothL1Loss "
        "SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss"
    ),
    "module": "Module",
    "norm": "LayerNorm RMSNorm",
    "older": "Container CrossMapLRN2d NLLLoss2d",
    "output_layers": "AdaptiveLogSoftmaxWithLoss LinearCrossEntropyLoss",
    "parallel": "DataParallel SyncBatchNorm",
    "parameter": "Buffer Parameter",
    "parameter_containers": "ParameterDict ParameterList",
    "pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
        "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d "
        "LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d"
    ),
    "recurrent": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "spatial": (
        "ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d "
        "Flatten Fold PixelShuffle PixelUnshuffle ReflectionPad1d ReflectionPad2d ReflectionPad3d "
        "ReplicationPad1d ReplicationPad2d ReplicationPad3d Unflatten Unfold Upsample UpsamplingBilinear2d "
        "UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d"
    ),
    "transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
}


def _part(name: str) -> Any:
    """A module of PyTorch's nn that few programs name; None where there is none."""
    return None if name.startswith("_") else import_module("pywebgpu.torch_api.stand_ins").module(f"nn.{name}")


__getattr__, __dir__, __all__ = _names(__name__, _NAMES, _part)
__all__ += ["functional", "init", "utils"]
