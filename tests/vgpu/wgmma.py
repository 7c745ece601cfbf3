"""wgmma.py FOLDER: the products by wgmma that gpu_check carries (scripts/gpu_wgmma.py) give what NumPy gives on the virtual GPU, which
is in LD_LIBRARY_PATH, and each of the mistakes below in their text is seen. Needs NVRTC; ends with 77 without."""
import os
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import gpu_micro  # noqa: E402
import gpu_static  # noqa: E402
import gpu_wgmma  # noqa: E402

# shape; rows, columns, stages, parts
CASES = (((70, 64, 256), (64, 64, 2, 1)), ((197, 192, 384), (128, 128, 3, 1)), ((130, 256, 256), (128, 256, 4, 2)))
SHAPE, TILE = (70, 64, 384), (128, 64, 3, 1)
# what is wrong: the text, what takes its place, and a word of what is said of it; "": that, or wrong numbers
MISTAKES = (
    ("no wgmma.fence", '"wgmma.fence.sync.aligned;\\n"', '""', "after wgmma.fence"),
    ("no wait", "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 4;", "under way"),
    ("no commit", "wgmma.commit_group.sync.aligned;", "", "under way"),
    ("no fence between proxies", 'asm volatile("fence.proxy.async;" ::: "memory");', "", "no fence.proxy.async"),
    ("another fence", "fence.proxy.async;", "membar.cta;", "no fence.proxy.async"),
    ("a slice not waited for", '::"n"(STAGES - 2)', '::"n"(STAGES - 1)', "has yet to arrive"),
    ("no barrier", "        __syncthreads();\n", "", "a race"),
    ("the slice's place too early", "s + STAGES - 1;", "s + STAGES;", ""),
    ("no swizzle of a", "r * 128 + ((c ^ (r & 7)) << 4)", "r * 128 + (c << 4)", ""),
    ("no swizzle of b", "((c % 8 ^ (r & 7)) << 4)", "((c % 8) << 4)", ""),
    ("a swizzle of 64 bytes", "1ull << 62", "2ull << 62", ""),
    ("the stride of eight rows", "64ull << 32", "32ull << 32", ""),
    ("both groups the first rows", "at + group * 8192, 16", "at, 16", ""),
    ("b not transposed", "all, 1, 1, 0, 1;", "all, 1, 1, 0, 0;", ""),
    ("nothing to add to", "setp.eq.s32 all, 0, 0;", "setp.ne.s32 all, 0, 0;", ""),
    ("a step of K twice", "add.s64 a, %32, 4;", "add.s64 a, %32, 2;", ""),
    ("rows beyond the end", "const bool is_there = row + r < m;", "const bool is_there = true;", "out of bounds"),
    ("rows of the result beyond its end", "if (r + 8 * h < m &&", "if (r + 8 * h < m + 1 &&", "out of bounds"),
    ("rows of the result exchanged", "threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4", "threadIdx.x % 128 / 32 * 16 + threadIdx.x % 4", ""),
)


def product(ptx, shape, kernel):
    """The largest error over the largest value."""
    (m, n, k), draw = shape, np.random.default_rng(1)
    a, b = (draw.standard_normal(dims).astype(np.float16) for dims in ((m, k), (k, n)))
    rows, columns, stages, parts = kernel
    e = {"shape": shape, "tile": (rows, columns), "stages": stages, "parts": parts}
    _, found = gpu_wgmma.measure([ptx], "cuda:0", e, [(a, b)], 1)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return np.abs(found - expected).max() / np.abs(expected).max()


def compiled(nvrtc, folder, source):
    path = folder / "wgmma.ptx"
    path.write_bytes(gpu_micro.compiled(nvrtc, "90a", source))
    return path


def said_by(work):
    """What a process of its own prints: a fault stays with the process that made it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        try:
            os.write(1, work().encode())
        except RuntimeError as error:
            os.write(1, str(error).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


def error_of(nvrtc, folder, source, shape, kernel):
    return said_by(lambda: f"error {product(compiled(nvrtc, folder, source), shape, kernel):.2e}").strip()


def check_case(nvrtc, folder, shape, kernel):
    said = error_of(nvrtc, folder, gpu_wgmma.source([kernel[:3] + (min(kernel[3], 2),)]), shape, kernel)
    print(f"{shape} by {kernel}: {said}")
    assert said.startswith("error") and float(said.split()[1]) < 1e-3


def check_mistake(nvrtc, folder, mistake):
    what, text, other, expected = mistake
    source = gpu_wgmma.source([TILE])
    assert text in source, what
    said = error_of(nvrtc, folder, source.replace(text, other), SHAPE, TILE)
    print(f"{what}: {said}")
    is_right = said.startswith("error") and float(said.split()[1]) < 1e-3
    is_seen = said.startswith(("error", "virtual GPU"))  # what does not compile, or ends Python, is no mistake that was seen
    assert is_seen and expected in said and not is_right, what


def main():
    folder, nvrtc = pathlib.Path(sys.argv[1]), (gpu_static.all_nvrtcs() or [None])[0]
    if not nvrtc:
        print("skipped: NVRTC is not there")
        sys.exit(77)
    folder.mkdir(parents=True, exist_ok=True)
    for shape, kernel in CASES:
        check_case(nvrtc, folder, shape, kernel)
    for mistake in MISTAKES:
        check_mistake(nvrtc, folder, mistake)
    print(f"{len(MISTAKES)} mistakes seen")


if __name__ == "__main__":
    main()
