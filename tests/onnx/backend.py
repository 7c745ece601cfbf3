"""backend.py DLC NODE_TESTS REPOSITORY: every n-th ONNX node test through examples/backend: C99, compiled by cc with undefined behaviour
trapped, and run. A test that the back end refuses is fine (status 3 and a sentence); a wrong number or a crash is not."""
import ctypes, glob, os, re, subprocess, sys, tempfile
import numpy as np, onnx
from onnx import numpy_helper

STEP = 7
dlc, tests, repository = sys.argv[1:]
work = tempfile.mkdtemp()


def command(*words):
    return subprocess.run(words, cwd=work, capture_output=True, text=True)


def tensors(folder, kind):
    files = glob.glob("%s/test_data_set_0/%s_*.pb" % (folder, kind))
    result = []
    for name in sorted(files, key=lambda name: int(re.search(r"_(\d+)\.pb", name)[1])):
        tensor = onnx.TensorProto()
        with open(name, "rb") as file:
            tensor.ParseFromString(file.read())
        result.append(numpy_helper.to_array(tensor))
    return result


def word(name):
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def run(library, header, inputs, outputs):
    """In a process of its own: what is generated may do anything."""
    names = re.findall(r"const \w+ \*in_(\w+)", header)
    arena = np.zeros(int(re.search(r"bytes\[(\d+)\]", header)[1]) // 8 + 8)
    found = [np.zeros(x.shape, x.dtype) for x in outputs]
    arrays = [np.ascontiguousarray(inputs[re.sub("^_(?=[0-9])", "", name)]) for name in names] + found + [arena]
    fault = ctypes.CDLL(library).m_run(*[ctypes.c_void_p(x.ctypes.data) for x in arrays])
    same = [np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True) if a.dtype.kind == "f" else (a == b).all()
            for a, b in zip(found, outputs)]
    return 0 if fault == 0 and all(same) else 1


def check(name):
    """None: right; "": refused; else what is wrong."""
    folder = os.path.join(tests, name)
    model = onnx.load(folder + "/model.onnx")
    try:
        inputs, outputs = tensors(folder, "input"), tensors(folder, "output")
    except Exception: # sequences, optionals
        return ""
    shapes = [word for of, x in zip(model.graph.input, inputs) if x.ndim
              for word in ("--shape", "%s=%s" % (of.name, "x".join(map(str, x.shape))))]
    made = command(dlc, "compile", folder + "/model.onnx", "--target", "./portable_c.so", "--emit", "c,h", "-o", "m.c", "--name", "m", *shapes)
    if made.returncode:
        return "" if made.returncode in (1, 2, 3) else "dlc ended with %d: %s" % (made.returncode, made.stderr)
    if "draws random numbers" in made.stderr: # which ones no standard says
        return ""
    library = "%s/%s.so" % (work, name)
    made = command("cc", "-std=c99", "-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-shared", "-fPIC", "m.c", "-o", library)
    if made.returncode:
        return made.stderr
    child = os.fork()
    if not child:
        with open(work + "/m.h") as header:
            os._exit(run(library, header.read(), {word(of.name): x for of, x in zip(model.graph.input, inputs)}, outputs))
    status = os.waitpid(child, 0)[1]
    os.unlink(library)
    return None if status == 0 else "its numbers are wrong" if status == 256 else "it ended with %#x" % status


example = repository + "/examples/backend"
sources = [example + "/" + name for name in ("portable_c.c", "kernel.c", "expression.c", "prelude.c")]
built = command("cc", "-std=c11", "-shared", "-fPIC", *sources, "-I", repository + "/include", "-o", "portable_c.so")
if built.returncode:
    sys.exit(built.stderr)
cases = sorted(name for name in os.listdir(tests) if os.path.exists(os.path.join(tests, name, "model.onnx")))[::STEP]
results = {name: check(name) for name in cases}
wrong = {name: text for name, text in results.items() if text}
refused = sum(text == "" for text in results.values())
for name, text in wrong.items():
    print(name, text)
print("%d right, %d refused, %d wrong" % (len(cases) - refused - len(wrong), refused, len(wrong)))
sys.exit(bool(wrong) or refused > len(cases) * 0.4)
