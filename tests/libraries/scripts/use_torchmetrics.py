"""Metrics over batches, of classes, numbers, images and rankings."""

import torch
import torchmetrics
from seeding import normal
from torchmetrics import classification, image, regression, retrieval, text

print("imported")

scores, labels = normal(64, 5), torch.arange(64) * 7 % 5
a, b = normal(64), normal(64, seed=1)
pictures = normal(2, 3, 32, 32).sigmoid(), normal(2, 3, 32, 32, seed=1).sigmoid()
metrics = {
    "accuracy": (classification.MulticlassAccuracy(5), scores, labels),
    "f1": (classification.MulticlassF1Score(5, average="macro"), scores, labels),
    "auroc": (classification.MulticlassAUROC(5), scores.softmax(-1), labels),
    "confusion": (classification.MulticlassConfusionMatrix(5), scores, labels),
    "binary": (classification.BinaryAveragePrecision(), a.sigmoid(), (b > 0).long()),
    "binned": (classification.BinaryAUROC(thresholds=20), a.sigmoid(), (b > 0).long()),
    "calibration": (classification.MulticlassCalibrationError(5), scores.softmax(-1), labels),
    "kappa": (classification.MulticlassCohenKappa(5), scores, labels),
    "mse": (regression.MeanSquaredError(), a, b),
    "pearson": (regression.PearsonCorrCoef(), a, b),
    "spearman": (regression.SpearmanCorrCoef(), a, b),
    "r2": (regression.R2Score(), a, b),
    "explained": (regression.ExplainedVariance(), a, b),
    "psnr": (image.PeakSignalNoiseRatio(data_range=1.0), *pictures),
    "ssim": (image.StructuralSimilarityIndexMeasure(data_range=1.0), *pictures),
    "variation": (image.TotalVariation(), pictures[0]),
}
for name, (metric, *data) in metrics.items():
    for half in zip(*(part.chunk(2) for part in data), strict=True):
        metric.update(*half)
    value = metric.compute()
    print(name, [round(part, 4) for part in value.double().flatten().tolist()], flush=True)
ndcg = retrieval.RetrievalNormalizedDCG()
print("ndcg", f"{ndcg(a, (b > 0), indexes=torch.arange(64) // 8).item():.5f}")
print(
    "bleu",
    f"{text.BLEUScore()(['the cat is on the mat'], [['there is a cat on the mat', 'a cat is on the mat']]).item():.5f}",
)
collection = torchmetrics.MetricCollection(
    [classification.MulticlassAccuracy(5), classification.MulticlassPrecision(5)]
)
print({name: f"{value.item():.4f}" for name, value in collection(scores, labels).items()})
logits = scores.clone().requires_grad_()
loss = torchmetrics.functional.regression.mean_squared_error(logits[:, 0], a)
loss.backward()
print(f"{loss.item():.5f} {logits.grad.abs().sum().item():.5f}")
mean = torchmetrics.MeanMetric()
for value in (1.0, 2.0, torch.tensor([3.0, 4.0])):
    mean.update(value)
print(mean.compute().item(), sorted(mean.state_dict()), mean.clone().compute().item())
