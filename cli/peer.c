/*
 * What ONNX Runtime makes of a model: a Python of the user's runs it, without optimisations, with every node's outputs as outputs.
 * Those are added to the model's bytes, as a message that ends in a field once more has both; nothing but numpy and onnxruntime is
 * needed.
 */
#include "cli/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char script[] =
    "import os, sys\n"
    "def end(text):\n"
    "    print(' '.join(str(text).split())[:500])\n"
    "    sys.exit(1)\n"
    "try:\n"
    "    import numpy\n"
    "    import onnxruntime\n"
    "except ImportError as e:\n"
    "    end(e)\n"
    "def varint(data, at):\n"
    "    value = shift = 0\n"
    "    while True:\n"
    "        byte = data[at]\n"
    "        at += 1\n"
    "        value |= (byte & 127) << shift\n"
    "        shift += 7\n"
    "        if byte < 128:\n"
    "            return value, at\n"
    "def fields(data):\n"
    "    at = 0\n"
    "    while at < len(data):\n"
    "        key, at = varint(data, at)\n"
    "        if key & 7 == 2:\n"
    "            n, at = varint(data, at)\n"
    "            yield key >> 3, data[at:at + n]\n"
    "            at += n\n"
    "        elif key & 7 == 0:\n"
    "            at = varint(data, at)[1]\n"
    "        else:\n"
    "            at += 8 if key & 7 == 1 else 4\n"
    "def message(field, body):\n"
    "    head, n = bytearray([field << 3 | 2]), len(body)\n"
    "    while n > 127:\n"
    "        head.append(n & 127 | 128)\n"
    "        n >>= 7\n"
    "    return bytes(head) + bytes([n]) + body\n"
    "def run(data, folder, given):\n"
    "    options = onnxruntime.SessionOptions()\n"
    "    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL\n"
    "    options.log_severity_level = 4\n"
    "    options.add_session_config_entry('session.model_external_initializers_file_folder_path', folder)\n"
    "    session = onnxruntime.InferenceSession(data, options, providers=['CPUExecutionProvider'])\n"
    "    taken = {i.name for i in session.get_inputs()}\n"
    "    names = [o.name for o in session.get_outputs()]\n"
    "    found = session.run(names, {k: v for k, v in given.items() if k in taken})\n"
    "    return {k: v for k, v in zip(names, found) if isinstance(v, numpy.ndarray) and v.dtype.kind in 'biuf'}\n"
    "path, given, found = sys.argv[1:4]\n"
    "given = dict(numpy.load(given))\n"
    "data = open(path, 'rb').read()\n"
    "folder = os.path.dirname(os.path.abspath(path))\n"
    "names = []\n"
    "there = set()\n"
    "for field, graph in fields(memoryview(data)):\n"
    "    for part, node in fields(graph) if field == 7 else []:\n"
    "        if part == 1:\n"
    "            names += [bytes(name).decode() for k, name in fields(node) if k == 2 and len(name)]\n"
    "        elif part == 12:\n"
    "            there |= {bytes(name).decode() for k, name in fields(node) if k == 1}\n"
    "more = b''.join(message(12, message(1, name.encode())) for name in names if name not in there)\n"
    "try:\n"
    "    try:\n"
    "        values = run(data + message(7, more), folder, given)\n"
    "    except Exception:\n"
    "        values = run(data, folder, given)\n"
    "except Exception as e:\n"
    "    end('onnxruntime ' + onnxruntime.__version__ + ': ' + str(e))\n"
    "numpy.savez(found, **values)\n"
    "print(onnxruntime.__version__)\n";

typedef struct {
    char *folder, *given, *found;
} places;

/* The script's first line of output. */
static dlc_status run_python(comparison *c, const places *at, dlc_str *said, int *state)
{
    const char *python = c->cli->args.python ? c->cli->args.python : "python3";
    char part[512];
    int fds[2];
    if (pipe(fds) != 0)
        return dlc_diag_fail(&c->cli->diag, DLC_LIMIT, NULL, "no pipe to %s: %s", python, strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        close(fds[1]);
        execlp(python, python, "-c", script, c->path, at->given, at->found, (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    for (ssize_t n; child > 0 && ((n = read(fds[0], part, sizeof part)) > 0 || (n < 0 && errno == EINTR));)
        if (n > 0)
            dlc_str_addn(said, part, (size_t)n);
    close(fds[0]);
    *state = -1;
    while (child > 0 && waitpid(child, state, 0) < 0 && errno == EINTR)
        ;
    return DLC_OK;
}

static dlc_status judge_python(comparison *c, int state, const dlc_str *said)
{
    const char *python = c->cli->args.python ? c->cli->args.python : "python3", *text = dlc_str_text(said);
    int n = (int)strcspn(text, "\n");
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return DLC_OK;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 127)
        return dlc_diag_fail(&c->cli->diag, DLC_USAGE, NULL, "'%s' cannot be run; --python names one that has onnxruntime", python);
    if (strstr(text, "No module named"))
        return dlc_diag_fail(&c->cli->diag, DLC_USAGE, NULL, "'%s' has no onnxruntime (%.*s); --python names one that has", python, n,
                             text);
    return dlc_diag_fail(&c->cli->diag, DLC_INVALID, c->path, "ONNX Runtime does not run it: %.*s", n, n ? text : "it said nothing");
}

static dlc_status ask(comparison *c, const places *at)
{
    dlc_str said = {0};
    int state;
    dlc_tensors found = {0};
    DLC_TRY(dlc_npz_write(at->given, &c->inputs, &c->cli->diag));
    dlc_status status = run_python(c, at, &said, &state);
    if (status == DLC_OK)
        status = judge_python(c, state, &said);
    dlc_str_deinit(&said);
    DLC_TRY(status);
    DLC_TRY(dlc_npz_read(at->found, c->cli->arena, &c->cli->diag, &found));
    for (uint32_t i = 0; i < found.n; i++) {
        int is_new;
        *dlc_table_insert(&c->values, c->cli->arena, found.data[i].name, &is_new) = &found.data[i];
    }
    for (uint32_t i = 0; i < c->signature.noutputs; i++) {
        const dlcrt_tensor *output = probe_value(c, c->signature.outputs[i].name);
        if (output)
            dlc_vec_push(c->cli->arena, &c->outputs, *output);
    }
    return DLC_OK;
}

dlc_status dlc_peer_values(comparison *c)
{
    const char *base = getenv("TMPDIR");
    places at = {.folder = dlc_arena_printf(c->cli->arena, "%s/dlc.XXXXXX", base && *base ? base : "/tmp")};
    if (!mkdtemp(at.folder))
        return dlc_diag_fail(&c->cli->diag, DLC_IO, at.folder, "no temporary folder can be made: %s", strerror(errno));
    at.given = dlc_arena_printf(c->cli->arena, "%s/given.npz", at.folder);
    at.found = dlc_arena_printf(c->cli->arena, "%s/found.npz", at.folder);
    dlc_status status = ask(c, &at);
    unlink(at.given);
    unlink(at.found);
    rmdir(at.folder);
    return status;
}
