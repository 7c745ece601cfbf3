"""A picture of a page, three screens high: something is drawn, in several colours, and it ends before the last row."""
import struct
import sys
import zlib


def rows_of(path):
    """The rows of an 8-bit RGB or RGBA PNG, without interlacing."""
    data = open(path, "rb").read()
    at, packed, header = 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        header = body if kind == b"IHDR" else header
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    width, height, depth, colour = struct.unpack(">IIBB", header[:10])
    assert depth == 8 and colour in (2, 6), "the PNG is of another kind"
    n = 3 if colour == 2 else 4
    raw, before = zlib.decompress(packed), bytearray(width * n)
    for y in range(height):
        line = raw[y * (width * n + 1):(y + 1) * (width * n + 1)]
        before = unfilter(line[0], bytearray(line[1:]), before, n)
        yield [bytes(before[x:x + 3]) for x in range(0, width * n, n)]


def unfilter(kind, line, up, n):
    for i in range(len(line)):
        a = line[i - n] if i >= n else 0
        b, c = up[i], up[i - n] if i >= n else 0
        nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
        line[i] = (line[i] + (0, a, b, (a + b) // 2, nearest)[kind]) & 255
    return line


white = b"\xff\xff\xff"
last, colours = 0, {}
for y, row in enumerate(rows_of(sys.argv[1])):
    if any(pixel != white for pixel in row):
        last = y
    for pixel in row[::3]:
        colours[pixel] = colours.get(pixel, 0) + 1
drawn = [colour for colour, count in colours.items() if count > 500 and colour != white]
print("the page is", last + 1, "pixels high, in", len(drawn), "colours")
sys.exit(not (1000 < last < 2690 and len(drawn) >= 5))
