import asyncio

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("digits.onnx")
images = np.load("digits_test.npz")["image"]


async def main():
    loop = asyncio.get_running_loop()
    jobs = [loop.run_in_executor(None, session.run, ["logits"], {"image": images[i:i + 1]}) for i in range(10)]
    return [out[0] for out in await asyncio.gather(*jobs)]


rows = np.concatenate(asyncio.run(main()))
assert rows.shape == (10, 10)
