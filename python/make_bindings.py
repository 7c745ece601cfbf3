"""make_bindings.py CC INCLUDE_DIR OUTPUT_DIR: the Python package's declarations, from dlc's own headers.

_bindings.py  what cffi needs to call libdlc and libdlcrt (out of line, without a compiled module)
_tables.py    the rows of dtype.def and of dlc_status, and the format of executables, as Python
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import cffi


def preprocess(cc, include, text, *options):
    """The text after the preprocessor, without the C library's headers."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stdint.h", "stddef.h", "string.h"):
            (pathlib.Path(empty) / name).touch()
        command = [cc, "-E", "-P", "-nostdinc", "-I", empty, "-I", str(include), *options, "-"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def without_definitions(text):
    """Static functions and tables are the headers' business: declarations stay."""
    kept, depth, skipping = [], 0, False
    for line in text.splitlines():
        if depth == 0 and line.startswith("static"):
            skipping = True
        if not skipping:
            kept.append(line)
        depth += line.count("{") - line.count("}")
        if skipping and depth == 0 and (line.rstrip().endswith("}") or line.rstrip().endswith(";")):
            skipping = False
    return "\n".join(kept)


def declarations(cc, include):
    text = preprocess(cc, include, "#include <dlc/dlc.h>\n", "-D__attribute__(x)=", "-DDLC_NODISCARD=")
    return without_definitions(text)


def tables(cc, include):
    rows = preprocess(
        cc, include,
        '#define DLC_DTYPE(id, text, bits, class_, onnx, numpy, served, ctype) ROW("id", text, bits, onnx, numpy)\n#include <dlc/dtype.def>\n')
    rows = re.findall(r'ROW\("\w+", "(\w+)", (\d+), (\d+), "([^"]*)"\)', rows)
    statuses = re.findall(r"\b(DLC_\w+) = (\d+)", preprocess(cc, include, "#include <dlc/status.h>\n"))
    version = re.search(r"FORMAT (\d+)", preprocess(cc, include, "#include <dlc/abi.h>\nFORMAT DLC_ABI_VERSION\n")).group(1)
    lines = ['"""Made from dtype.def, status.h and abi.h."""', f"FORMAT = {version}  # of executables",
             "# name, bits, TensorProto.DataType, numpy's type string", "DTYPES = ["]
    lines += [f"    ({name!r}, {bits}, {onnx}, {numpy!r})," for name, bits, onnx, numpy in rows]
    lines += ["]", "STATUSES = {"]
    lines += [f"    {int(value)}: {name!r}," for name, value in statuses]
    return "\n".join(lines + ["}", ""])


def main():
    cc, include, output = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    ffi = cffi.FFI()
    ffi.cdef(declarations(cc, include))
    ffi.set_source("dlc._bindings", None)
    ffi.emit_python_code(str(output / "_bindings.py"))
    (output / "_tables.py").write_text(tables(cc, include))


main()
