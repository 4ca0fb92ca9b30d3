"""Compare two installs of the package bit by bit: the guard of changes that must not change results.

    python tests/bits_against.py OLD NEW [WORD ...]

OLD and NEW are Python interpreters, each with its install. Every row of the bits matrix (tests/test_bits.py of this
checkout, what moves × by which word) is run in both, in every instruction set that both have built, on 1 and on 2
threads. All that a state offers is compared, with forces, energies and virials, and so are heat and work, Hessians, the
arrays of a checkpoint, and documents. Words choose rows by what their names contain.

Exit code 1 where anything differs, or is there in one install only. Rows that an install cannot make are named.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# What a newer version may say otherwise: who wrote a file, how it is laid out, and arguments that documents once left
# out where they had their defaults.
NOT_RESULTS = {"medyanpy", "version", "format", "along_surface", "projected", "shift", "switch"}


# In each install ------------------------------------------------------------------------------------------------------


def offered(state):
    """{name: value} of what can be read off a state, by public names."""
    import medyanpy as mp

    found = {}
    for name in dir(state):
        if name.startswith("_"):
            continue
        try:
            value = getattr(state, name)
        except mp.ParameterError:
            continue
        if not callable(value):
            found[name] = value
    return found


def hessian(context):
    import numpy as np
    import scipy.sparse

    import medyanpy as mp

    try:
        matrix = context.hessian()
    except (mp.MedyanError, NotImplementedError) as refused:
        return f"refused: {type(refused).__name__}"
    if scipy.sparse.issparse(matrix):
        matrix = matrix.tocsr()
        matrix.sort_indices()
        return [np.asarray(part).tobytes() for part in (matrix.indptr, matrix.indices, matrix.data)]
    return np.asarray(matrix).tobytes()


def _numbers(npy):
    """How many are in a file of NumPy's."""
    import numpy as np

    return np.load(io.BytesIO(npy)).size


def checkpoint(simulation):
    """{name: bytes} of its arrays, and the rest of its head."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        simulation.save_checkpoint(path)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    head = json.loads(members.pop("checkpoint.json"))
    # Columns of kinds of which there are no beads may be there or not.
    members = {name: a for name, a in members.items() if not name.startswith("state/") or _numbers(a)}
    return {**members, **{name: json.dumps(part) for name, part in results_in(head).items()}}


def results_in(tree):
    """The tree without what is not a result."""
    if isinstance(tree, dict):
        kept = {key: results_in(part) for key, part in tree.items() if key not in NOT_RESULTS}
        return {key: part for key, part in kept.items() if part != {}}
    return [results_in(part) for part in tree] if isinstance(tree, list) else tree


def result(bits, kind, word, threads):
    """{what: fingerprint} of one row."""
    import medyanpy as mp

    system, changes = bits.build(kind)
    document = mp.serialize(system) if not any(isinstance(f, mp.forces.PythonForce) for f in system.forces) else ""
    simulation = bits.simulate(kind, system, word, threads)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=4)
    simulation.report_work = True
    for step in range(bits.STEPS):
        if step in changes:
            changes[step](simulation)
        simulation.step(1)
    state = simulation.context.get_state(positions=True, velocities=True, forces=True, energy=True, virial=True)
    parts = {f"state.{name}": value for name, value in offered(state).items()}
    parts["Hessian"] = hessian(simulation.context)
    parts |= {f"checkpoint.{name}": value for name, value in checkpoint(simulation).items()}
    if document:
        parts |= {f"document.{k}": json.dumps(v) for k, v in results_in(json.loads(document)).items()}
    return {name: bits.digest(part) for name, part in parts.items()}


def print_all(threads, words):
    sys.path.insert(0, str(FOLDER))
    import test_bits as bits

    warnings.simplefilter("ignore")
    out = {}
    for kind, word in bits.CASES:
        name = f"{kind}, {word}"
        if words and not any(w in name for w in words):
            continue
        try:
            out[name] = result(bits, kind, word, threads)
        except (AttributeError, TypeError, ImportError) as missing:
            out[name] = {"cannot be made": f"{type(missing).__name__}: {missing}"}
    print(json.dumps(out))


# Beside them ----------------------------------------------------------------------------------------------------------


def ask(python, code, *words, isa=""):
    done = subprocess.run([python, "-P", "-c", code, *words],
                          env={**os.environ, **({"MEDYANPY_ISA": isa} if isa else {})}, capture_output=True, text=True,
                          check=False, cwd="/")  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{python} {isa}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


VARIANTS = "import json; from medyanpy._kernels import selected as s; print(json.dumps([list(s.built), s.isa]))"
RUN = (
    f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import bits_against as b; "
    "b.print_all(int(sys.argv[1]), sys.argv[2:])"
)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="Python interpreter with the install to compare with")
    parser.add_argument("new", help="Python interpreter with the install to compare")
    parser.add_argument("words", nargs="*", help="rows whose names contain one of these")
    chosen = parser.parse_args()
    (built, _), (also, _) = ask(chosen.old, VARIANTS), ask(chosen.new, VARIANTS)
    variants = [isa for isa in built if isa in also]
    differ = rows = values = 0
    for isa in variants:
        for threads in (1, 2):
            with ThreadPoolExecutor(2) as pool:
                old, new = pool.map(
                    lambda python, isa=isa, threads=threads: ask(python, RUN, str(threads), *chosen.words, isa=isa),
                    (chosen.old, chosen.new),
                )
            for row in old.keys() | new.keys():
                one, other = old.get(row, {}), new.get(row, {})
                wrong = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
                rows, values, differ = rows + 1, values + len(one), differ + len(wrong)
                for name in wrong:
                    what = "differs" if name in one and name in other else "is in one only"
                    print(f"{isa}, {threads} threads, {row}: {name} {what} {one.get(name, '')[:60]}")
                if "cannot be made" in one and not wrong:
                    print(f"{isa}, {threads} threads, {row}: in neither: {one['cannot be made']}")
                    differ += 1
    print(f"{rows} runs of {', '.join(variants)}; {values} values compared, {differ} differ")
    raise SystemExit(1 if differ or not rows else 0)


if __name__ == "__main__":
    main()
