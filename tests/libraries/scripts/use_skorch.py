"""A network as an estimator of scikit-learn."""

import io

import numpy as np
import torch
from seeding import fill, normal
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring, LRScheduler

print("imported")


class Net(torch.nn.Module):
    def __init__(self, width=8, outputs=2):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, width), torch.nn.ReLU(), torch.nn.Linear(width, outputs))
        fill(self.layers, scale=0.3)

    def forward(self, x):
        return self.layers(x)


class Classifier(Net):
    def forward(self, x):
        return torch.softmax(self.layers(x), -1)


x = normal(60, 6).numpy().astype(np.float32)
y = (x.sum(1) > 0).astype(np.int64)
net = NeuralNetClassifier(
    Classifier, max_epochs=4, lr=0.1, optimizer=torch.optim.Adam, optimizer__lr=0.01, batch_size=20, verbose=0, train_split=None,
    callbacks=[EpochScoring("accuracy", on_train=True, name="accuracy"), LRScheduler(torch.optim.lr_scheduler.StepLR, step_size=2)],
)  # fmt: skip
net.fit(x, y)
print([f"{loss:.5f}" for loss in net.history[:, "train_loss"]], flush=True)
print(
    [f"{value:.4f}" for value in net.history[:, "accuracy"]],
    net.predict(x[:8]).tolist(),
    f"{net.predict_proba(x).std():.5f}",
)
file = io.BytesIO()
net.save_params(f_params=file)
file.seek(0)
other = NeuralNetClassifier(Classifier).initialize()
other.load_params(f_params=file)
print(np.allclose(other.predict_proba(x), net.predict_proba(x)))
pipe = make_pipeline(
    StandardScaler(), NeuralNetClassifier(Classifier, max_epochs=2, verbose=0, iterator_train__shuffle=False)
)
search = GridSearchCV(pipe, {"neuralnetclassifier__lr": [0.01, 0.1]}, cv=2, scoring="accuracy").fit(x, y)
print(sorted(search.best_params_), f"{search.best_score_:.4f}", flush=True)
regressor = NeuralNetRegressor(Net, module__outputs=1, max_epochs=3, verbose=0, train_split=None).fit(
    x, x.sum(1, keepdims=True)
)
print(
    [f"{loss:.5f}" for loss in regressor.history[:, "train_loss"]], f"{regressor.score(x, x.sum(1, keepdims=True)):.4f}"
)
