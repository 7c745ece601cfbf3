#!/usr/bin/env python3
"""samples.py header TEST.npz N: the first N images of a test set as a C header.
samples.py compare TEST.npz N CONSOLE: the largest distance of the logits a program printed to the test set's, and its stack in bytes."""
import struct, sys, zipfile


def floats(archive, name, n):
    data = archive.read(name + ".npy")
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack("<%df" % n, data[start:start + 4 * n])


def header(archive, n):
    images = floats(archive, "image", 64 * n)
    print("static const float samples[%d][64] = {" % n)
    for i in range(n):
        print("    {" + ", ".join(x.hex() + "f" for x in images[64 * i:64 * i + 64]) + "},")
    print("};")


def compare(archive, n, console):
    wanted = floats(archive, "logits", 10 * n)
    lines = [line.split() for line in open(console)]
    stack = [int(words[1], 16) for words in lines if words[0] == "stack"]
    found = [struct.unpack("<f", bytes.fromhex(word)[::-1])[0] for words in lines if words[0] != "stack" for word in words]
    if len(found) != len(wanted) or len(stack) != 1:
        sys.exit("%d numbers where %d are expected" % (len(found), len(wanted)))
    print("error %.3g stack %d" % (max(abs(a - b) for a, b in zip(found, wanted)), stack[0]))


archive, n = zipfile.ZipFile(sys.argv[2]), int(sys.argv[3])
if sys.argv[1] == "header":
    header(archive, n)
else:
    compare(archive, n, sys.argv[4])
