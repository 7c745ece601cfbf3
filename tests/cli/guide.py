"""Follows links from README.md: none is dead, and each answer is on a page at most two links away."""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
ANSWERS = {  # what somebody asks: what the page with the answer says
    "from PyTorch to a file": r"torch\.onnx\.export",
    "from a file to an answer": r"InferenceSession\(\"model\.onnx\"\)",
    "own data": r"numpy\.savez",
    "an open batch": r"--shape image=\?",
    "a program without files": r"--emit a,h",
    "CMake": r"dlc_add_model\(",
    "another processor": r"--target aarch64",
    "threads of a server": r"`threads = 1`",
    "int8": r"QuantizeLinear",
    "how fast": r"\| resnet50 \|",
    "from strangers": r"promise this of an ONNX file that is not trusted",
    "how long it stays usable": r"a runtime runs those of its own version",
}


def anchor(title):
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def links_of(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, mark = target.partition("#")
        yield (page.parent / path).resolve() if path else page, mark


failures = []
distance = {ROOT / "README.md": 0}
queue = [ROOT / "README.md"]
for page in queue:
    for target, mark in links_of(page):
        if not target.exists():
            failures.append(f"{page.name}: {target} is not there")
        elif mark and mark not in [anchor(t) for t in re.findall(r"^#+ (.*)$", target.read_text(), re.M)]:
            failures.append(f"{page.name}: {target.name} has no part #{mark}")
        elif target.suffix == ".md" and target not in distance:
            distance[target] = distance[page] + 1
            queue.append(target)
for question, answer in ANSWERS.items():
    if not any(d <= 2 and re.search(answer, page.read_text()) for page, d in distance.items()):
        failures.append(f"no page within two links of README answers: {question}")
print("\n".join(failures))
sys.exit(bool(failures))
