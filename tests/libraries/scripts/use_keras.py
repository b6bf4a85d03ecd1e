import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np

print("imported")

keras.utils.set_random_seed(0)
x = np.sin(np.arange(64)).reshape(16, 4).astype("float32")
y = (x.sum(1) > 0).astype("int32")


def fill(model):
    model.set_weights(
        [np.sin(np.arange(w.size) * 0.7 + i).reshape(w.shape) * 0.3 for i, w in enumerate(model.get_weights())]
    )
    return model


dense = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(2, "softmax")])
fill(dense).compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = dense.fit(x, y, epochs=3, verbose=0, batch_size=8, shuffle=False).history
print([f"{loss:.4f}" for loss in history["loss"]], dense.predict(x, verbose=0).shape)

image = keras.Sequential(
    [
        keras.layers.Input((8, 8, 1)),
        keras.layers.Conv2D(4, 3),
        keras.layers.BatchNormalization(),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(2),
    ]
)
fill(image).compile("sgd", "mse")
images = np.sin(np.arange(128)).reshape(2, 8, 8, 1).astype("float32")
print([f"{image.train_on_batch(images, np.ones((2, 2), 'float32')):.4f}" for _ in range(3)])

rows = keras.Sequential(
    [keras.layers.Input((5,)), keras.layers.Embedding(10, 4), keras.layers.LSTM(6), keras.layers.Dense(1)]
)
fill(rows).compile("adam", "mse")
numbers = np.arange(10).reshape(2, 5).astype("int32")
print([f"{rows.train_on_batch(numbers, np.ones((2, 1), 'float32')):.4f}" for _ in range(3)])
