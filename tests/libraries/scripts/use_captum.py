"""What a prediction came from."""

import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    LayerGradCam,
    NoiseTunnel,
    Occlusion,
    Saliency,
)
from seeding import fill, normal

print("imported")

model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 64, 3)
)
fill(model, scale=0.2)
x = normal(2, 1, 8, 8)
for kind in (IntegratedGradients, Saliency, InputXGradient, DeepLift, GuidedBackprop, FeatureAblation):
    value = kind(model).attribute(x.clone().requires_grad_(), target=1)
    print(kind.__name__, tuple(value.shape), f"{value.abs().sum().item():.4f}", flush=True)
value = Occlusion(model).attribute(x, sliding_window_shapes=(1, 4, 4), strides=(1, 4, 4), target=0)
print("Occlusion", f"{value.abs().sum().item():.4f}")
value = LayerGradCam(model, model[0]).attribute(x, target=2)
print("LayerGradCam", tuple(value.shape), f"{value.abs().sum().item():.4f}")
value, delta = IntegratedGradients(model).attribute(x, target=1, return_convergence_delta=True)
print("delta", f"{delta.abs().max().item():.3f}")
drawn = GradientShap(model).attribute(x, baselines=torch.zeros(3, 1, 8, 8), target=0, n_samples=3)
print(drawn.shape, NoiseTunnel(Saliency(model)).attribute(x, nt_samples=2, target=0).shape)
