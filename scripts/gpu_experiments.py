"""The design of experiments that gpu_check carries: products of 15 shapes, each by many schedules, written as text (docs/ir.md). Tiles,
slices of K, loading ahead and parts of K are the words of the language; `fma` rows are of f32, `mma_f16` rows of f16. gpu_static.py
compiles them and has the virtual GPU predict their times; gpu_steps.py measures; `dlc targets --calibrate` compares."""
import itertools

# m, n, k: from the models' contractions, and squares
SHAPES = ((128, 384, 384), (128, 1536, 384), (128, 384, 1536), (197, 768, 768), (197, 3072, 768), (197, 768, 3072),
          (3136, 64, 256), (784, 128, 512), (196, 256, 1024), (64, 512, 2048), (64, 512, 4608), (1024, 1024, 1024),
          (512, 512, 512), (2048, 2048, 512), (4096, 1024, 256))
# rows and columns of a block, then of a thread
TILES = ((128, 128, 8, 8), (128, 64, 8, 4), (64, 128, 4, 8), (64, 64, 4, 4), (32, 64, 2, 4), (32, 32, 2, 2))
# the same of a warp
MATRIX_TILES = ((128, 64, 32, 32), (64, 128, 32, 32), (64, 64, 16, 32), (32, 32, 16, 16))
ROWS = {"fma": ("f32", TILES, (8, 16, 32)), "mma_f16": ("f16", MATRIX_TILES, (32, 64))}
AHEAD, PARTS = (0, 1), (1, 2, 4, 8, 16)
LEAST_PART = 128  # of K
FRACTION = {"fma": 7, "mma_f16": 5}  # of all combinations about one in so many, spread over the levels
OLDEST = {"fma": 75, "mma_f16": 80}  # GPU that has such rows


def rows_of(target):
    """Those that a GPU has."""
    return tuple(row for row in ROWS if OLDEST[row] <= int(target.removeprefix("sm_")))


def combinations(row, shape):
    """Tile, slice, ahead, parts: those of the fraction, which differs from shape to shape."""
    _, tiles, slices = ROWS[row]
    for levels in itertools.product(range(len(tiles)), range(len(slices)), range(len(AHEAD)), range(len(PARTS))):
        parts = PARTS[levels[3]]
        if shape[2] % parts or shape[2] // parts < LEAST_PART or shape[2] // parts % slices[levels[1]]:
            continue
        if (sum(levels) + (SHAPES.index(shape) if shape in SHAPES else 0)) % FRACTION[row] == 0:
            yield tiles[levels[0]], slices[levels[1]], AHEAD[levels[2]], parts


def experiments(shapes=SHAPES, rows=tuple(ROWS)):
    """Every one, in the order in which they run: those of a shape and row together."""
    for shape in shapes:
        for row in rows:
            for tile, slice_, ahead, parts in combinations(row, shape):
                yield {"shape": shape, "row": row, "tile": tile, "slice": slice_, "ahead": ahead, "parts": parts,
                       "name": "x".join(map(str, shape)) + f".{row}." + "x".join(map(str, tile)) + f".k{slice_}.a{ahead}.p{parts}"}


def group_of(experiment):
    return "x".join(map(str, experiment["shape"])) + " " + experiment["row"]


def kernel_text(e):
    """The contraction as the compiler makes it, in one piece or in parts of K that another kernel adds up."""
    m, n, k = e["shape"]
    dtype, parts = ROWS[e["row"]][0], e["parts"]
    at = "k" if parts == 1 else f"ks * {k // parts} + kk"
    a, b = f"a[i, {at}]", f"b[{at}, j]"
    product = f"{a} * {b}" if dtype == "f32" else f"f32({a}) * f32({b})"
    head = f"kernel @product(a: {dtype}[{m},{k}], b: {dtype}[{k},{n}])"
    if parts > 1:
        return (f"{head} -> (y: f32[{parts},{m},{n}]) {{\n  axis i={m}, j={n}, ks={parts}, kk={k // parts}\n"
                f"  p[ks,i,j] = sum(kk) {product} -> y[ks, i, j]\n}}\n")
    stored = "p[i,j] = sum(k) " + product + (" -> y[i, j]" if dtype == "f32" else "\n  h[i,j] = f16(p) -> y[i, j]")
    return f"{head} -> (y: {dtype}[{m},{n}]) {{\n  axis i={m}, j={n}, k={k}\n  {stored}\n}}\n"


def copied(name, outer, inner, e):
    """A slice of a factor, four neighbours an access."""
    ahead = " ahead 1 via reg" if e["ahead"] else ""
    return f"thread {outer}, {inner}:4, lane {inner}:4 {{ {name} in scratch{ahead} }}"


def schedule_text(e, target):
    """Blocks of rows by columns; slices of both factors in shared memory; a register tile of each thread, or of each warp."""
    m, n, own_m, own_n = e["tile"]
    is_matrix, parts = e["row"] != "fma", e["parts"] > 1
    k, batch, unit = ("kk" if parts else "k"), ("ks, " if parts else ""), ("warp" if is_matrix else "thread")
    rows = f"copy rows = p.a [{batch}" + (f"i, {k}+8]" if is_matrix else f"{k}, i+4]")
    columns = f"copy columns = p.b [{batch}{k}, j+{8 if is_matrix else 4}]"
    kept = not parts and is_matrix  # what follows reads the tile
    body = [f"for {k}:{e['slice']} {{", copied("rows", "i", k, e), copied("columns", k, "j", e),
            f"{unit} i:{own_m}, j:{own_n} {{ p = dot {e['row']} i x j over [{k}]{' in reg' if kept else ''} }}", "}"]
    if kept:
        body += [f"{unit} i:{own_m}, j:{own_n} {{ as p {{ h }} }}"]
    return "\n".join([f"schedule {target} grain 1 threads 256 {{", rows, columns, f"par {batch}i:{m}, j:{n} {{", *body, "}", "}", ""])


def text(e, target):
    return kernel_text(e) + schedule_text(e, target)
