"""All schedules by their public names."""

from pywebgpu.support.lazy import names as _names

_NAMES = {
    "annealing": "CosineAnnealingLR CosineAnnealingWarmRestarts OneCycleLR ReduceLROnPlateau",
    "cyclic": "CyclicLR",
    "schedule": (
        "EPOCH_DEPRECATION_WARNING _LRScheduler ConstantLR ExponentialLR LambdaLR LinearLR LRScheduler "
        "MultiplicativeLR MultiStepLR PolynomialLR StepLR"
    ),
    "sequence": "ChainedScheduler SequentialLR",
}
__getattr__, __dir__, __all__ = _names(__name__, _NAMES)
