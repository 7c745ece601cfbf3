"""Spreads work over the machines of a Ray cluster: actors that each open one executable, and take a batch when they are free.

    dlc compile model.onnx -o model.so
    python3 ray_actors.py model.so in.npz out.npz [ACTORS] [BATCH]

The rows of every input are cut into batches; the outputs come back in their order. The executable goes to each machine once, through
Ray's store, so there need be no shared disk. `Model` is also what Ray Data takes: dataset.map_batches(Model, ...).
"""

import sys

import numpy
import ray


class Model:
    def __init__(self, executable: bytes) -> None:
        import dlc  # where the actor is
        self.session = dlc.InferenceSession(executable, threads=1)
        self.names = [row.name for row in self.session.get_outputs()]

    def __call__(self, batch: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
        return dict(zip(self.names, self.session.run(None, batch)))


def run(path: str, feed: dict[str, numpy.ndarray], actors: int, rows: int) -> dict[str, numpy.ndarray]:
    """The model's outputs for all rows."""
    with open(path, "rb") as file:
        executable = ray.put(file.read())
    actor = ray.remote(num_cpus=1)(Model)
    pool = ray.util.ActorPool([actor.remote(executable) for _ in range(actors)])
    count = len(next(iter(feed.values())))
    batches = [{name: array[i:i + rows] for name, array in feed.items()} for i in range(0, count, rows)]
    parts = list(pool.map(lambda one, batch: one.__call__.remote(batch), batches))
    return {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}


if __name__ == "__main__":
    model, inputs, outputs = sys.argv[1:4]
    actors, rows = (int(argument) for argument in (sys.argv[4:] + ["2", "64"])[:2])
    ray.init()
    with numpy.load(inputs) as arrays:
        numpy.savez(outputs, **run(model, dict(arrays), actors, rows))
