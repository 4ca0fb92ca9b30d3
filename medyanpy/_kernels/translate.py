"""Translate kernels into C, many in one process: python translate.py FOLDER DEPFILE OPTION... -- SOURCE...

Cython takes 1.5 s to start and 0.6 s a kernel, so one process for all of them is three times faster than one for each.
A C file that is newer than its source and than all that sources share is not made again; one with an unchanged text is
left alone, and so are the objects compiled from it. Several builds of one tree share their C files through the folder
that MEDYANPY_TRANSLATED names.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

import Cython
from Cython.Compiler.CmdLine import parse_command_line
from Cython.Compiler.Main import compile


def main(arguments: list[str]) -> None:
    at = arguments.index("--")
    folder, depfile, options = Path(arguments[0]), Path(arguments[1]), arguments[2:at]
    sources = [Path(source) for source in arguments[at + 1 :]]
    shared = sorted(path for ending in ("*.pxd", "*.pxi") for path in sources[0].parents[1].rglob(ending))
    given = folder / f"{depfile.stem}.options"
    said = "\n".join(options)
    if not given.exists() or given.read_text() != said:
        given.write_text(said)
    newest = max(path.stat().st_mtime for path in (*shared, given, Path(__file__)))
    kept = os.environ.get("MEDYANPY_TRANSLATED")
    common = b"".join([Cython.__version__.encode(), said.encode(), *(path.read_bytes() for path in shared)])
    for source in sources:
        target = folder / f"{source.stem}.c"
        if target.exists() and target.stat().st_mtime > max(newest, source.stat().st_mtime):
            continue
        fresh = folder / f"{source.stem}.new.c"
        key = hashlib.sha256(common + str(source).encode() + source.read_bytes()).hexdigest()
        known = kept and Path(kept, f"{key}.c")
        if known and known.exists():
            shutil.copyfile(known, fresh)
        else:
            found, named = parse_command_line([*options, "-o", str(fresh), str(source)])
            if compile(named, found).num_errors:
                sys.exit(1)
            if known:
                known.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(fresh, partial := known.with_name(f"{known.stem}.{os.getpid()}"))
                partial.replace(known)
        if target.exists() and target.read_bytes() == fresh.read_bytes():
            fresh.unlink()
        else:
            fresh.replace(target)
    depfile.write_text(f"{folder / sources[0].stem}.c: {' '.join(map(str, shared))}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
