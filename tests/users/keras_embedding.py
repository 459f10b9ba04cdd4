# Keras: an embedding without a vocabulary, of at most 200 rows, trained by the model's optimizer.
import keras
import numpy as np

import tensorhash.tensorflow as thtf

rng, layer = np.random.default_rng(0), thtf.Embedding(8, max_capacity=200, combiner="sum")
model = keras.Sequential([keras.Input((1,), dtype="int64"), layer, keras.layers.Dense(1)])
model.compile(thtf.optimizers.Adam(0.02, clipnorm=1.0), "mse")
ids = rng.zipf(1.5, (6400, 1))  # some ids are frequent, most are new
model.fit(ids, np.where(ids % 2 == 0, 1.0, -1.0), batch_size=256, epochs=3, verbose=0)
sides = model.predict(np.array([[1], [2]]), verbose=0).ravel()
print(f"{int(layer.table.size())} rows, odd and even ids are told apart: {sides[0] < 0 < sides[1]}")
