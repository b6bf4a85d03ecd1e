"""All schedules by their public names."""

from pywebgpu.support.lazy import names as _names

_NAMES = {
    "annealing": "CosineAnnealingLR CosineAnnealingWarmRestarts OneCycleLR ReduceLROnPlateau",
    "cyclic": "CyclicLR",
    "formulas": "ConstantLR ExponentialLR LinearLR MultiStepLR PolynomialLR StepLR",
    "schedule": "EPOCH_DEPRECATION_WARNING _LRScheduler LambdaLR LRScheduler MultiplicativeLR",
    "sequence": "ChainedScheduler SequentialLR",
}
__getattr__, __dir__, __all__ = _names(__name__, _NAMES)
