#!/usr/bin/env python3
"""demo.py DLC WORK_DIR: what scripts/demo shows. Everything is computed by the program `dlc`; Python draws and counts."""
import json
import pathlib
import subprocess
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "models"))
from tokenizer import Tokenizer  # noqa: E402

SHADES = " ░▒▓█"
SENTENCES = [
    "A cat sleeps on the sofa.", "The kitten naps on the couch.", "Stock markets fell sharply on Monday.",
    "Shares lost value at the start of the week.", "She bakes bread every Sunday morning.",
    "The recipe needs flour, water, salt and yeast.", "A compiler turns a program into machine code.",
    "The train to the coast leaves at noon."]
QUERIES = ["a small pet is resting", "how is bread made", "translating source text for a processor"]


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def compiled(dlc, model, out):
    begin = time.monotonic()
    run(dlc, "compile", model, "-o", out)
    print(f"compiled {model.name} in {time.monotonic() - begin:.2f} s: {out.name}, {out.stat().st_size / 1e6:.2f} MB")


def draw(images, labels, answers):
    for first in range(0, len(images), 8):
        part = slice(first, first + 8)
        for row in range(8):
            print("   ".join("".join(SHADES[int(v * 4.999)] * 2 for v in image[0, row]) for image in images[part]))
        print("   ".join(f"{'answer ' + str(a) + (' right' if a == b else f' (is {b})'):16}"
                         for a, b in zip(answers[part], labels[part])))
        print()


def digits(dlc, work):
    data = np.load(ROOT / "models" / "digits_test.npz")
    executable, found = work / "digits.so", work / "digits_found.npz"
    compiled(dlc, ROOT / "models" / "digits.onnx", executable)
    run(dlc, "run", executable, "--inputs", ROOT / "models" / "digits_test.npz", "--outputs", found)
    run(dlc, "run", executable, "--inputs", ROOT / "models" / "digits_test.npz", "--expect", ROOT / "models" / "digits_test.npz")
    answers, labels = np.load(found)["logits"].argmax(1), data["labels"]
    wrong = np.flatnonzero(answers != labels)
    shown = np.concatenate([wrong[:2], np.flatnonzero(answers == labels)[:8 - len(wrong[:2])]])
    draw(data["image"][shown], labels[shown], answers[shown])
    one = work / "one.npz"
    np.savez(one, image=data["image"][:1])
    bench = json.loads(run(dlc, "bench", executable, "--inputs", one, "--threads", 1, "--seconds", 1, "--json").splitlines()[-1])
    begin = time.monotonic()
    run(dlc, "run", executable, "--inputs", one, "--quiet")
    process_ms = 1e3 * (time.monotonic() - begin)
    accuracy = (answers == labels).mean()
    print(f"digits: {100 * accuracy:.2f} % of {len(labels)} images right; {1e3 * bench['median_ms']:.1f} us an image on one "
          f"thread; {process_ms:.1f} ms from starting the process to its end\n")
    if accuracy < 0.97:
        sys.exit("the accuracy is below 97 %")


def digits_for_gpu(dlc, work):
    """Code for a GPU, made without one; the same CUDA C, run by emulated threads on this processor."""
    model, data = ROOT / "models" / "digits.onnx", np.load(ROOT / "models" / "digits_test.npz")
    executable, some, found = work / "digits_sm75.so", work / "some.npz", work / "some_found.npz"
    begin = time.monotonic()
    run(dlc, "compile", model, "--target", "sm_75", "-o", executable)
    print(f"compiled {model.name} for sm_75 in {time.monotonic() - begin:.2f} s: {executable.name}, "
          f"{executable.stat().st_size / 1e6:.2f} MB")
    np.savez(some, image=data["image"][:40], labels=data["labels"][:40], logits=data["logits"][:40])
    begin = time.monotonic()
    run(dlc, "run", model, "--target", "sm_75", "--emulate-gpu", "--inputs", some, "--outputs", found)
    seconds = time.monotonic() - begin
    run(dlc, "run", model, "--target", "sm_75", "--emulate-gpu", "--inputs", some, "--expect", some)
    answers, labels = np.load(found)["logits"].argmax(1), data["labels"][:40]
    print(f"the same kernels with emulated threads: {(answers == labels).sum()} of 40 images right, in {seconds:.2f} s with the C "
          f"compiler's time\n")


def sentences(dlc, work):
    folder = work / "minilm"
    if not (folder / "vocab.txt").exists():
        run(sys.executable, ROOT / "models" / "make_minilm.py", folder)
    executable = folder / "minilm_dyn.so"
    compiled(dlc, folder / "minilm_dyn.onnx", executable)
    tokenizer = Tokenizer(folder / "vocab.txt")

    def embed(texts):
        np.savez(work / "tokens.npz", **tokenizer.encode(texts))
        run(dlc, "run", executable, "--inputs", work / "tokens.npz", "--outputs", work / "vectors.npz")
        return np.load(work / "vectors.npz")["sentence_embedding"]

    known = embed(SENTENCES)
    for query, vector in zip(QUERIES, embed(QUERIES)):
        scores = known @ vector
        print(f"nearest to “{query}”")
        for i in np.argsort(-scores)[:3]:
            print(f"    {scores[i]:.3f}  {SENTENCES[i]}")
    case = folder / "minilm_dyn_3x33"
    run(dlc, "run", executable, "--inputs", f"{case}.in.npz", "--expect", f"{case}.expected.npz", "--atol", "1e-4")
    bench = json.loads(run(dlc, "bench", executable, "--inputs", folder / "minilm_dyn_1x128.in.npz", "--threads", 1,
                           "--seconds", 2, "--json").splitlines()[-1])
    print(f"MiniLM: {bench['median_ms']:.1f} ms for 128 tokens on one thread\n")


def main():
    dlc, work = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    digits(dlc, work)
    digits_for_gpu(dlc, work)
    sentences(dlc, work)


if __name__ == "__main__":
    main()
