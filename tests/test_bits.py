"""The same bits, always: one matrix of what moves, by which word, and in which ways the run is made.

A run ends with the same bits for any number of threads, instruction set, way of cutting step(n), restart from a
checkpoint, reporters, and looks in between. A later kind of bead or force enters by one row of KINDS, a letter with
a new meaning by one row of WORDS (both in moving.py), another way to run by one row of WAYS: each meets all of the
others.
"""

import functools
import hashlib
import inspect
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path

import numpy as np
import pairs_of_jumps
import pytest
from moving import BLOCKS, COARSE, COARSE_WORDS, IN_BLOCKS, KINDS, OPTIONS, OVERDAMPED, WORDS, quartic
from pairs_of_jumps import PAIRS

import medyanpy as mp
from medyanpy._kernels import selected
from medyanpy.testing import thermal

# Parts of some systems have no friction: beads of all kinds are to have the same bits without it too.
pytestmark = pytest.mark.frictionless

# How the run is made ------------------------------------------------------------------------------------------

STEPS = 12


@dataclass(frozen=True)
class Way:
    """Threads: in turn, of the parts between restarts. Reports are due at every third, fifth and seventh step."""

    threads: tuple[int, ...] = (1,)
    cuts: tuple[int, ...] = (STEPS,)
    look: bool = False
    #: Go on between parts from a checkpoint: "load" it into a simulation made anew, or "resume" from it alone.
    restart: str = ""
    report: bool = False
    work: bool = False
    #: Before each part an edit that adds nothing: all is compiled anew, and goes on.
    edit: bool = False


ONE_BY_ONE = (1,) * STEPS
WAYS = {
    "3 threads, one step at a time, looking": Way((3,), ONE_BY_ONE, look=True),
    "4 threads, cut, reporters, work": Way((4,), (5, 7), report=True, work=True),
    "2, 3, 1 and 4 threads, restarts, reporters": Way((2, 3, 1, 4), (0, 4, 7, 1), restart="load", report=True),
    "4, 2 and 1 threads, resumed, looking": Way((4, 2, 1), (3, 5, 4), restart="resume", look=True),
    "1 thread, edited, work": Way((1,), (3, 8, 1), work=True, edit=True),
}
# Beyond the normal run: parts of the others, alone, and restarts, each of which costs as much as several steps.
LONG_WAYS = {
    "2 threads": Way((2,)),
    "1 thread, restarts after 1, 2, 4 and 7 steps, reporters": Way((1,), (1, 1, 2, 3, 5), restart="load", report=True),
    "1 thread, restarts at every step, reporters": Way((1,), ONE_BY_ONE, restart="load", report=True),
}
# Functions of Python forces, which checkpoints do not hold.
FUNCTIONS = {"PythonForce": quartic}


def add_reporters(simulation, folder):
    """Files are gone on with after a restart."""
    report = mp.reporters
    table, frames = folder / "table.csv", folder / "run.h5"
    wanted = {"step": True, "total_energy": True, "temperature": True}
    simulation.reporters += [
        report.StateDataReporter(table, 3, **wanted, append=table.exists()),
        report.TrajectoryReporter(frames, 5, velocities=True, append=frames.exists()),
        report.CheckpointReporter(folder / "checkpoint", 7, overwrite=True),
    ]


def build(kind):
    """The system, and {step: what is done to its simulation then}."""
    if kind in PAIRS:
        return pairs_of_jumps.built(*PAIRS[kind])
    built = {**OVERDAMPED, **COARSE, **KINDS}[kind]()
    system, changes = built if isinstance(built, tuple) else (built, {})
    return system, {step: functools.partial(change_system, change) for step, change in changes.items()}


def change_system(change, simulation):
    change(simulation.system)


def simulate(kind, system, word, threads):
    integrator = mp.SplittingIntegrator(word, 0.01, kT=thermal(word, 1.0), seed=9, **OPTIONS.get(kind, {}))
    return mp.Simulation(system, integrator, threads=threads)


def gone_on(simulation, kind, word, way, threads, checkpoint):
    """Another simulation, from a checkpoint of this one."""
    simulation.save_checkpoint(checkpoint)
    simulation.close()
    if way.restart == "resume" or "ramp of numbers" in PAIRS.get(kind, ()):
        # A checkpoint is loaded into what has the same numbers.
        wanted = {f.name: FUNCTIONS[f.name] for f in simulation.system.forces if f.name in FUNCTIONS}
        return mp.Simulation.resume(checkpoint, threads=threads, functions=wanted)
    system, changes = build(kind)
    fresh = simulate(kind, system, word, threads)
    for step in sorted(s for s in changes if s < simulation.current_step):
        changes[step](fresh)
    fresh.load_checkpoint(checkpoint)
    return fresh


def end_of(kind, word, way=Way(), folder=None, looks=None):
    """Return all that a state holds after STEPS steps, as {name: part}; states at start and end go into `looks`."""
    threads = itertools.cycle(way.threads)
    system, changes = build(kind)
    simulation = simulate(kind, system, word, next(threads))
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=4)
    simulation.report_work = way.work
    if looks is not None:
        looks.append(simulation.context.get_state(positions=True, energy=True))
    done = 0
    for i, n in enumerate(way.cuts):
        if i and way.restart:
            simulation = gone_on(simulation, kind, word, way, next(threads), folder / f"{i}.chk")
        if way.edit:
            with simulation.topology.edit():
                pass
        # A resumed simulation has those that were written beside its checkpoint.
        reports = any(isinstance(r, mp.reporters.StateDataReporter) for r in simulation.reporters)
        if way.report and (i == 0 or way.restart) and not reports:
            add_reporters(simulation, folder)
        end = done + n
        while done < end:
            if done in changes:
                changes[done](simulation)
            stop = min([end, *(s for s in changes if s > done)])
            simulation.step(stop - done)
            done = stop
            if way.look:
                everything(simulation.context)
    simulation.report_work = False
    simulation.close()
    assert simulation.current_step == STEPS
    if looks is not None:
        looks.append(simulation.context.get_state(positions=True, energy=True))
    return everything(simulation.context)


def run(*arguments, **options):
    """Return {name: hash of its bytes} of the end of a run."""
    return digests(end_of(*arguments, **options))


def digests(parts):
    return {name: digest(part) for name, part in parts.items()}


def everything(context):
    """All that get_state offers, as {name: part}."""
    offered = inspect.signature(context.get_state).parameters
    state = context.get_state(**dict.fromkeys((name for name, p in offered.items() if p.default is False), True))
    return {"step": state.step, "time": state.time, **state._parts}


def digest(part):
    h = hashlib.sha256()
    for piece in asdict(part).values() if is_dataclass(part) else part if isinstance(part, tuple) else [part]:
        # repr tells every double from every other.
        h.update(np.ascontiguousarray(piece).tobytes() if isinstance(piece, np.ndarray) else repr(piece).encode())
    return h.hexdigest()


@functools.cache
def plain(kind, word):
    """Return fingerprints of the end of a run in one piece by one thread, and its states at start and end."""
    looks = []
    return run(kind, word, looks=looks), *looks


def reference(kind, word):
    return plain(kind, word)[0]


def assert_same(got, expected):
    assert got.keys() == expected.keys()
    assert [name for name in got if got[name] != expected[name]] == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump reads instructions")
def test_no_kernel_rounds_a_product_and_a_sum_at_once():
    """gcc makes vfmaddsub of what lies beside each other, whatever -ffp-contract says: other bits than without it."""
    fused = re.compile(r"\bvfn?m(add|sub)")
    found = []
    for path in sorted(Path(selected.__file__).parent.rglob("*.so")):
        listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True,
                                 check=True).stdout  # fmt: skip
        found += [f"{path.parent.name}/{path.name}: {line}" for line in listing.splitlines() if fused.search(line)]
    assert found == []


CASES = [
    *itertools.product(KINDS, WORDS),
    *itertools.product(OVERDAMPED, ["D"]),
    *itertools.product(COARSE, COARSE_WORDS),
    *itertools.product(IN_BLOCKS, BLOCKS),
]
# Plain pytest takes each kind with one word and in one way, so that all words have their turn.
WORDS_OF = {kind: [word for other, word in CASES if other == kind] for kind, _ in CASES}
ONE_OF_EACH = [(kind, words[i % len(words)]) for i, (kind, words) in enumerate(WORDS_OF.items())]
ONE_OF_EACH += [case for case in itertools.product(IN_BLOCKS, BLOCKS) if case not in ONE_OF_EACH]


def all_of_it(cases):
    """Parameters of the given cases, all but one of each kind for .ci/nightly."""
    return [pytest.param(*c, marks=[] if c in ONE_OF_EACH else pytest.mark.thorough) for c in cases]


# A debug or sanitizer run takes those with most threads, and with restarts.
BRIEF = {"4 threads, cut, reporters, work", "2, 3, 1 and 4 threads, restarts, reporters"}


def usual(kind, word, way):
    """Tell whether a case is not for the long run alone: every kind and every word meets every way."""
    if way in LONG_WAYS:
        return False
    number = list(WAYS).index(way)
    if kind in COARSE and word in COARSE_WORDS:
        return (number + list(COARSE).index(kind) + COARSE_WORDS.index(word)) % 2 == 0
    if word not in WORDS:
        return True
    # Each of the five words takes another of the five ways.
    return (number - list(KINDS).index(kind) - WORDS.index(word)) % len(WAYS) == 0


def plain_pytest(kind, word, way):
    """Tell whether plain pytest takes a case: every kind, every word and every way is among them."""
    return (kind, word) in ONE_OF_EACH and way == next(one for one in WAYS if usual(kind, word, one))


def marked(kind, word, way):
    marks = [] if way in BRIEF else [pytest.mark.slow]
    if not usual(kind, word, way):
        marks.append(pytest.mark.long)
    elif not plain_pytest(kind, word, way):
        marks.append(pytest.mark.thorough)
    return pytest.param(kind, word, way, marks=marks)


@pytest.mark.parametrize(("kind", "word", "way"),
                         [marked(kind, word, way) for kind, word in CASES for way in WAYS | LONG_WAYS])  # fmt: skip
def test_matrix(kind, word, way, tmp_path):
    assert_same(run(kind, word, (WAYS | LONG_WAYS)[way], tmp_path), reference(kind, word))


# What may change while a run is made, each beside each other: small systems, so that all ways are soon done.
PAIR_WORDS = ["JBAGOGABJ", "J M(BAGAB) O J"]


def marked_pair(pair, word, way):
    """One or two ways of each pair and word in the normal run, all in the long one."""
    is_usual = (list(PAIRS).index(pair) + list(WAYS).index(way) + PAIR_WORDS.index(word)) % 4 == 0
    return pytest.param(pair, word, way, marks=[] if is_usual else [pytest.mark.slow, pytest.mark.long])


@pytest.mark.parametrize(("pair", "word", "way"),
                         [marked_pair(*case) for case in itertools.product(PAIRS, PAIR_WORDS, WAYS)
                          # Filaments whose nodes have come and gone cannot be edited.
                          if not (WAYS[case[2]].edit and pairs_of_jumps.COMING & set(PAIRS[case[0]]))])  # fmt: skip
def test_pairs_of_jumps(pair, word, way, tmp_path):
    """Restarts, looks, edits, threads and cuts leave the bits of jumps beside jumps, boxes, ramps and edits."""
    how = WAYS[way]
    change_rows = {"creation", "in space", "reactions", "landing", "written"}
    if how.restart and "edits" in PAIRS[pair] and change_rows & set(PAIRS[pair]):
        # An edit describes created beads: a simulation made anew has none, and refuses the checkpoint.
        how = replace(how, restart="resume")
    end, expected = end_of(pair, word, how, tmp_path), reference(pair, word)
    if "creation" in pair and (how.edit or "edits" in pair):
        # Created beads lie in other places after an edit: looks at their energies, of some 30, add them in another
        # order. A virial is a difference of energies over a strain of 1e-6.
        whole, expected = end_of(pair, word), dict(expected)
        for part, rounding in (("kinetic_energies", 1e-12), ("energies", 1e-12), ("virials", 1e-7)):
            mine, theirs = end.pop(part), whole[part]
            del expected[part]
            assert mine.keys() == theirs.keys()
            for name in mine:
                np.testing.assert_allclose(mine[name], theirs[name], rtol=0.0, atol=rounding)
    assert_same(digests(end), expected)


@pytest.mark.parametrize("pair", PAIRS)
def test_pairs_of_jumps_are_not_trivially_equal(pair):
    """Every jump has been accepted, every box and number has changed."""
    simulation, changes = pairs_of_jumps.together(*PAIRS[pair])
    start = simulation.context.get_state()
    n = simulation.topology.n_beads
    pairs_of_jumps.advance(simulation, changes, STEPS)
    end = simulation.context.get_state()
    assert all(counts.accepted > 0 for name, counts in end.counts.items() if name != "nothing")
    assert (end.box != start.box) == bool({"box", "set_box", "ramp of the box", "all together"} & {pair, *PAIRS[pair]})
    assert (simulation.topology.n_beads != n) == ("edits" in PAIRS[pair])
    assert (simulation.integrator.kT != 1.0) == ("ramp of numbers" in PAIRS[pair])


def test_the_usual_part_of_the_matrix_pairs_kinds_and_words_with_ways():
    met = [(kind, word, way) for kind, word in CASES for way in WAYS if usual(kind, word, way)]
    assert {(kind, way) for kind, _, way in met} == set(itertools.product({kind for kind, _ in CASES}, WAYS))
    assert {(kind, word) for kind, word, _ in met} == set(CASES)
    assert {(word, way) for _, word, way in met} == set(itertools.product({word for _, word in CASES}, WAYS))
    words = {word for _, word in CASES}
    assert {kind for kind, _ in ONE_OF_EACH} == set(WORDS_OF)
    assert {word for _, word in ONE_OF_EACH} == words
    plain = [case for case in met if plain_pytest(*case)]
    assert sorted({case[:2] for case in plain}) == sorted(ONE_OF_EACH)
    assert {way for *_, way in plain} == set(WAYS)


# Instruction sets: a process for each variant, which runs each kind with one word and in one of the ways; another
# process runs the rest, which is for the long run.
THE_OTHERS = [case for case in CASES if case not in ONE_OF_EACH]
IN_A_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
import test_bits
test_bits.print_all(sys.argv[2:])
"""


def print_all(numbers):
    """Fingerprints of cases, by number, for the process that started this one."""
    out = []
    # Each variant starts with another way, so that a case meets several.
    ways = itertools.islice(itertools.cycle(WAYS.values()), list(selected.built).index(selected.isa), None)
    for kind, word in (CASES[int(i)] for i in numbers):
        with tempfile.TemporaryDirectory() as folder:
            out.append(run(kind, word, next(ways), Path(folder)))
    print(json.dumps({"isa": selected.isa, "runs": out}))


@pytest.fixture(scope="module")
def of_variant():
    """Fingerprints of a case in a variant, made with all others of its list when first asked for."""

    @functools.cache
    def run_all(isa, long):
        cases = THE_OTHERS if long else ONE_OF_EACH
        done = subprocess.run([sys.executable, "-c", IN_A_PROCESS, str(Path(__file__).parent),
                               *(str(CASES.index(case)) for case in cases)],
                              env={**os.environ, "MEDYANPY_ISA": isa}, capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["isa"] == isa
        return dict(zip(cases, answer["runs"], strict=True))

    return lambda isa, case: run_all(isa, case in THE_OTHERS)[case]


@pytest.mark.parametrize(
    ("kind", "word"), [*ONE_OF_EACH, *(pytest.param(*case, marks=pytest.mark.long) for case in THE_OTHERS)]
)
@pytest.mark.parametrize("isa", [isa for isa in selected.built if isa != selected.isa])
def test_instruction_sets(isa, kind, word, of_variant):
    """Every variant that this processor can run gives the bits of the one that this process runs."""
    assert_same(of_variant(isa, (kind, word)), reference(kind, word))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "word"), all_of_it(CASES))
def test_the_runs_are_not_trivially_equal(kind, word):
    """Things move, points cross edges, every force acts, and changes of numbers change something."""
    system, changes = build(kind)
    _, start, end = plain(kind, word)
    if changes:
        context = simulate(kind, system, word, 1).context
        context.set_velocities_to_temperature(kT=1.0, seed=4)
        start = context.get_state(positions=True, energy=True)
        context.step(STEPS)
        end = context.get_state(positions=True, energy=True)
        assert digest(end.positions) != reference(kind, word)["positions"]
    free = np.concatenate([handle.beads[~handle.kind.fixed_beads] for handle in system.topology.handles])
    assert (start.positions != end.positions)[free].any(axis=1).all()
    if len(start.intriangle.triangles):
        # What is rejected stands still.
        moved = end.acceptance if end.blocks else 1.0
        assert (start.intriangle.triangles != end.intriangle.triangles).mean() > 0.02 * moved
    assert all(start.energies[name] != end.energies[name] for name in start.energies)
    assert all(0 < block.accepted < block.tried == STEPS for block in end.blocks)


@pytest.mark.slow
@pytest.mark.thorough
def test_words_differ():
    for kinds, words in ((KINDS, WORDS), (COARSE, COARSE_WORDS)):
        for kind in kinds:
            assert len({reference(kind, word)["positions"] for word in words}) == len(words)
