"""Demos: what each writes, and that it is compared with theory."""

import io
import json
import re

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy.cli import main
from medyanpy.demo import contraction as contraction_demo
from medyanpy.demo import (
    pushing,
    report,
    run_contraction_demo,
    run_filament_demo,
    run_membrane_demo,
    run_network_demo,
    run_protein_demo,
    run_reactions_demo,
    run_rigid_demo,
    run_rod_demo,
    run_surface_demo,
    run_treadmilling_demo,
    vesicle,
)
from medyanpy.demo import reactions as reactions_demo
from medyanpy.demo import rigid as rigid_demo
from medyanpy.demo import tether as tether_demo
from medyanpy.demo import treadmilling as treadmilling_demo
from medyanpy.demo import tube as tube_demo
from medyanpy.demo.report import OUTPUTS, _relaxation_time, bound_line, near_line, temperature_line
from medyanpy.files.trajectory import Trajectory

# Demos and pictures: kernels that other tests look at more closely.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def with_filaments(tmp_path_factory):
    """What a small demo of filaments printed and wrote."""
    out = tmp_path_factory.mktemp("filaments") / "out"
    text = io.StringIO()
    done = run_filament_demo(out, filaments=40, steps=60, threads=1, stream=text)
    return out, done, text.getvalue()


def test_a_small_demo_of_filaments_writes_everything(with_filaments):
    out, done, text = with_filaments
    assert sorted(p.name for p in out.iterdir()) == sorted(OUTPUTS)
    summary = json.loads((out / "summary.json").read_text())
    assert summary == done.summary
    assert (summary["filaments"], summary["proteins"], summary["steps"], summary["seed"]) == (40, 20, 60, 1)
    verdicts = {r["quantity"]: r["verdict"] for r in summary["results"]}
    # Sixty steps are too few for a temperature; all else is measured.
    assert {v for q, v in verdicts.items() if "temperature" in q} == {"--"}
    assert {v for q, v in verdicts.items() if "temperature" not in q} == {"OK"}
    assert summary["ok"]
    assert list(verdicts) == ["temperature of vertices", "temperature of filament nodes", "temperature of proteins",
                              "largest error of links, relative", "nodes outside the vesicle"]  # fmt: skip
    # Overlaps are gone: what is left is much less than one contact, k L²/2 = 1100 kT.
    before, after = map(float, re.search(r"collisions from (\d+) kT to ([\d.]+) kT", text).groups())
    assert before > 100.0 * after
    with Trajectory(out / "trajectory.h5") as trajectory:
        assert trajectory.steps.tolist() == list(range(1, 61))
        assert len(trajectory.handles["actin"]) == 40 * 13
    assert (out / "picture.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert mp.Simulation.resume(out / "run.checkpoint", reporters=False).current_step == 60


def test_a_filament_that_left_or_stretched_is_noticed(with_filaments):
    _, done, _ = with_filaments
    assert vesicle.outside(done.mesh, np.array([[0.0, 0, 499], [0, 0, 501], [0, 0, 0]])).verdict == "CHECK"
    assert bound_line("links", 2e-10, 1e-10).verdict == "CHECK"


@pytest.fixture(scope="module")
def with_links(tmp_path_factory):
    out = tmp_path_factory.mktemp("network") / "out"
    text = io.StringIO()
    return out, run_network_demo(out, filaments=60, steps=400, threads=1, stream=text), text.getvalue()


@pytest.mark.slow
def test_a_small_demo_of_a_network_links_itself(with_links):
    out, done, text = with_links
    assert sorted(p.name for p in out.iterdir()) == sorted(OUTPUTS)
    verdicts = {r["quantity"]: r["verdict"] for r in done.summary["results"]}
    assert list(verdicts)[2:] == ["largest error of filament links, relative", "nodes outside the vesicle"]
    assert set(list(verdicts.values())[2:]) == {"OK"}
    with Trajectory(out / "trajectory.h5") as trajectory:
        last = trajectory[-1]
        bound = last.links("crosslinkers")
        assert len(bound) > 0
        # No filament to itself, and each within reach of its length.
        assert (bound[:, 0] // 12 != bound[:, 1] // 12).all()
        lengths = np.linalg.norm(np.diff(last.link_ends("crosslinkers"), axis=1)[:, 0], axis=1)
    assert np.abs(lengths - 35.0).max() < 6.0
    at_the_end = done.summary["at_the_end"]["links"]
    assert f"links     {at_the_end} bound at the end" in text
    resumed = mp.Simulation.resume(out / "run.checkpoint", reporters=False)
    assert len(resumed.context.get_state(positions=True).links(resumed.system["Links"])) == at_the_end


@pytest.fixture(scope="module")
def with_proteins(tmp_path_factory):
    out = tmp_path_factory.mktemp("protein") / "out"
    text = io.StringIO()
    return out, run_protein_demo(out, proteins=4, steps=300, threads=1, stream=text), text.getvalue()


@pytest.mark.slow
def test_a_small_demo_of_proteins(with_proteins):
    out, done, text = with_proteins
    assert sorted(p.name for p in out.iterdir()) == sorted(OUTPUTS)
    results = {r["quantity"]: r for r in done.summary["results"]}
    assert list(results)[2:] == ["bodies inside the vesicle", "energy of the linkers of a protein"]
    assert {r["verdict"] for r in list(results.values())[2:]} == {"OK"}
    assert "4 adenylate kinases of 3 rigid domains and 122 linkers each; 2 are tied to lipids" in text
    resumed = mp.Simulation.resume(out / "run.checkpoint", reporters=False)
    assert resumed.system.hydrodynamics.viscosity == mp.presets.WATER


@pytest.mark.parametrize(("given", "said", "unit"), [
    ({"kT": 1.0}, "at kT = 1, dt = 0.005, 1 thread", "kT"),
    ({"temperature": 300.0}, "at 300 K, dt = 5000 µs, 1 thread", "K"),
    ({}, "400 steps of BAB, dt = 0.005, 1 thread", ""),
])  # fmt: skip
def test_a_report_knows_whether_a_run_has_units(given, said, unit, tmp_path):
    scale = 1.0 if "kT" in given else 300.0 * mp.units.boltzmann
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(1).normal(size=(2000, 3)), mass=scale * 1e-4, friction=scale, name="beads")
    system, text = mp.System(topology), io.StringIO()
    system.add_force(mp.forces.HarmonicTrap(topology["beads"], scale, [0.0, 0.0, 0.0]))
    run = report.Report(tmp_path / "out", threads=1, seed=1, overwrite=False, stream=text)
    run.steps = 400
    run.begin("2000 beads in a trap", "beads")
    integrator = mp.SplittingIntegrator("OBABO" if given else "BAB", 0.005, **given, seed=1)
    temperatures, _ = run.run(system, integrator)
    done = run.finish(None, topology, list(temperatures.values()))
    assert f"{said}\n" in text.getvalue()
    assert [(line.unit, line.verdict) for line in temperatures.values()] == ([(unit, "OK")] if unit else [])
    assert done.summary["temperature"] == given.get("temperature")
    assert done.summary["timestep"] == 0.005
    assert ("Temperature" in (tmp_path / "out" / "state.csv").read_text()) == (unit == "K")


def test_a_temperature_needs_samples_that_are_independent():
    """A short series cannot tell how long it remembers; friction can: here for 50 samples."""
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((1000, 3)), mass=1.0, friction=1.0)
    series = np.random.default_rng(1).normal(300.0, 300.0 * np.sqrt(2.0 / 3000.0), 3000)
    assert temperature_line(beads, series[:300], 0.01).verdict == "--"
    line = temperature_line(beads, series, 0.01)
    assert line.verdict == "OK"
    assert line.error == pytest.approx(300.0 * np.sqrt(2.0 / 3000.0 / (2000 / 100)), rel=1e-9)
    assert temperature_line(beads, series + 40.0, 0.01).verdict == "CHECK"


def test_overlapping_filaments_are_straight_and_inside_at_the_start():
    feet = mp.TriangleMesh.icosphere(500.0, 2).face_normals[:30] * 499.0
    nodes = np.array(vesicle._straight(feet, 100, np.random.default_rng(1)))
    assert nodes.shape == (100, 13, 3)
    np.testing.assert_allclose(np.linalg.norm(nodes[:, -1] - nodes[:, 0], axis=1), 330.0, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(nodes[:30, 0] - feet, axis=1), 10.0, rtol=1e-12)
    assert np.linalg.norm(nodes[30:], axis=2).max() < 485.0
    assert np.linalg.norm(nodes[:30, 1:], axis=2).max() < 490.0


def test_each_demo_takes_its_own_options_only(with_filaments, tmp_path, capsys):
    out, _, _ = with_filaments
    for arguments, message in (
        (["filaments", "--out", out], "holds trajectory.h5, "),
        (["filaments", "--out", tmp_path / "out", "--filaments", "0"], "filaments = 0 but must be a whole number"),
        (["filaments", "--out", tmp_path / "out", "--filaments", "1001"], "filaments = 1001 but must be"),
        (["filaments", "--out", tmp_path / "out", "--steps", "0"], "steps = 0 but must be a whole number >= 1"),
        (["filaments", "--out", tmp_path / "out", "--threads", "0"], "threads = 0"),
        (["filaments", "--points", "5"], "--points is for 'medyanpy demo points', not for 'demo filaments'"),
        (["filaments", "--mesh", "a.ply"], "--mesh is for 'medyanpy demo points', not for 'demo filaments'"),
        (["--filaments", "5"],
         "--filaments is for 'medyanpy demo filaments', 'network', not for 'demo points'"),
        (["network", "--out", tmp_path / "out", "--filaments", "1"], "filaments = 1 but must be a whole number >= 2"),
        (["network", "--walkers", "5"], "--walkers is for 'medyanpy demo surface', not for 'demo network'"),
        (["surface", "--out", tmp_path / "out", "--walkers", "99"], "walkers = 99 but must be a whole number >= 100"),
        (["rigid", "--walkers", "100"], "--walkers is for 'medyanpy demo surface', not for 'demo rigid'"),
        (["rigid", "--out", tmp_path / "out", "--bodies", "19"], "bodies = 19 but must be a whole number"),
        (["rod", "--bodies", "20"], "--bodies is for 'medyanpy demo rigid', not for 'demo rod'"),
        (["rod", "--out", tmp_path / "out", "--segments", "19"], "segments = 19 but must be a whole number >= 20"),
        (["rod", "--out", tmp_path / "out", "--rods", "19"], "rods = 19 but must be a whole number >= 20"),
        (["rod", "--frequency", "9"], "--frequency is for 'medyanpy demo membrane', not for 'demo rod'"),
        (["membrane", "--out", tmp_path / "out", "--frequency", "7"], "frequency = 7 but must be a whole number"),
        (["membrane", "--out", tmp_path / "out", "--curved", "19"], "curved = 19 but must be a whole number >= 20"),
        (["rod", "--out", tmp_path / "out", "--steps", "0"], "steps = 0 but must be a whole number >= 1"),
    ):  # fmt: skip
        assert main(["demo", *map(str, arguments)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("medyanpy: ")
        assert message in said.err
    assert not (tmp_path / "out").exists()


# Surfaces ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def on_a_surface(tmp_path_factory):
    """What a small demo of beads on a surface printed and wrote."""
    out = tmp_path_factory.mktemp("surface") / "out"
    text = io.StringIO()
    done = run_surface_demo(out, walkers=400, steps=8, threads=1, stream=text)
    return out, done, text.getvalue()


def test_a_small_demo_on_a_surface_writes_everything(on_a_surface):
    out, done, text = on_a_surface
    assert sorted(p.name for p in out.iterdir()) == sorted([*OUTPUTS, "movie.gif"])
    summary = json.loads((out / "summary.json").read_text())
    assert summary == done.summary
    assert (summary["beads"], summary["walkers"], summary["steps"], summary["temperature"]) == (25, 400, 8, None)
    assert [(r["quantity"], r["verdict"]) for r in summary["results"]] == [
        ("energy error, dt", "OK"),
        ("energy error, dt/2", "OK"),
        ("energy error, dt/4", "OK"),
        ("largest distance from the surface, relative", "OK"),
        ("diffusion on a sphere, <cos θ>", "OK"),
    ]
    assert done.mesh is None
    assert "run       8 steps of BAB, dt = 0.01, 1 thread\n" in text
    with Trajectory(out / "trajectory.h5") as trajectory:
        assert trajectory.steps.tolist() == list(range(1, 9))
        x = trajectory[-1].positions
        assert np.abs(trajectory.handles["beads"].surface.value(x)).max() < 1e-6
    assert "Temperature" not in (out / "state.csv").read_text(encoding="utf-8")
    assert mp.Simulation.resume(out / "run.checkpoint", reporters=False).current_step == 8
    from PIL import Image

    with Image.open(out / "movie.gif") as movie:
        assert (movie.n_frames, movie.size) == (8, (480, 320))


# Rigid bodies ------------------------------------------------------------------------------------------------


def test_a_small_demo_of_rigid_bodies_writes_everything(tmp_path):
    out, text = tmp_path / "out", io.StringIO()
    done = run_rigid_demo(out, bodies=40, steps=20, threads=1, stream=text)
    assert sorted(p.name for p in out.iterdir()) == sorted(OUTPUTS)
    summary = json.loads((out / "summary.json").read_text())
    assert summary == done.summary | {"shapes": {name: list(axes) for name, axes in rigid_demo.SHAPES.items()}}
    assert (summary["bodies"], summary["free"], summary["steps"]) == (40, 120, 20)
    verdicts = {r["quantity"]: r["verdict"] for r in summary["results"]}
    # Twenty steps are too few for a temperature of the bodies in the trap.
    assert {q for q, v in verdicts.items() if v == "--"} == {"temperature of rods", "temperature of discs"}
    assert "CHECK" not in verdicts.values()
    assert summary["ok"]
    assert list(verdicts)[2:] == ["rods in a field of 2 kT: <cos θ>", "prolate top: rate in space",
                                  "prolate top: rate in its frame", "oblate top: rate in space",
                                  "oblate top: rate in its frame"]  # fmt: skip
    assert "run       20 steps of BAOAB at 300 K, dt = 0.2 ns, 1 thread\n" in text.getvalue()
    with Trajectory(out / "trajectory.h5") as trajectory:
        assert trajectory[-1].orientations.shape == (40, 4)
        assert len(trajectory.handles["rods"]) == len(trajectory.handles["discs"]) == 20
    assert mp.Simulation.resume(out / "run.checkpoint", reporters=False).current_step == 20


def test_relaxation_times_of_rigid_bodies():
    """The slowest of the six, with the coupling of translation and rotation; the mean over bodies."""
    tensor = np.diag([2.0, 2.0, 2.0, 1.0, 4.0, 4.0])
    tensor[0, 3] = tensor[3, 0] = 0.5
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(np.zeros((2, 3)), [[1.0, 0, 0, 0]] * 2, [1.0, 2.0], [3.0, 3.0, 3.0], tensor)
    slowest = []
    for mass in (1.0, 2.0):
        root = np.sqrt([mass] * 3 + [3.0] * 3)
        slowest.append(1.0 / np.linalg.eigvals(tensor / np.outer(root, root)).real.min())
    assert _relaxation_time(bodies) == pytest.approx(np.mean(slowest), rel=1e-12)


# Fluid membranes ---------------------------------------------------------------------------------------------


def test_a_small_demo_of_a_tether_writes_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(tether_demo, "LOOK", 4)
    monkeypatch.setattr(tether_demo, "FRAMES", 4)
    out, text = tmp_path / "out", io.StringIO()
    done = run_membrane_demo(out, frequency=8, curved=30, steps=40, threads=1, stream=text)
    assert sorted(p.name for p in out.iterdir()) == sorted([*OUTPUTS, "movie.gif"])
    summary = json.loads((out / "summary.json").read_text())
    assert summary == done.summary
    assert (summary["frequency"], summary["curved"], summary["steps"]) == (8, 30, 40)
    # No tether in forty steps, and the demo says so.
    assert [(r["quantity"], r["verdict"]) for r in summary["results"]] == [
        ("force of the tether", "--"),
        ("radius of the tether", "--"),
        ("proteins per area, tube over body", "--"),
    ]
    assert "run       40 steps of JBAGOGABJ at 300 K, dt = 0.028 µs, 1 thread\n" in text.getvalue()
    with Trajectory(out / "trajectory.h5") as trajectory:
        assert trajectory.steps.tolist() == [10, 20, 30, 40]
        # The trap has gone all its way, the foot stays.
        x = trajectory[-1].positions[:642]
        assert x[:, 2].max() > 1.02 * -x[:, 2].min()
    assert mp.Simulation.resume(out / "run.checkpoint", reporters=False).current_step == 40
    from PIL import Image

    with Image.open(out / "movie.gif") as movie:
        assert (movie.n_frames, movie.size) == (4, (320, 480))


def test_a_small_demo_of_reactions_writes_everything(tmp_path):
    out, text = tmp_path / "out", io.StringIO()
    done = run_reactions_demo(out, pairs=20, steps=200, threads=1, stream=text)
    assert sorted(p.name for p in out.iterdir()) == sorted(OUTPUTS)
    summary = json.loads((out / "summary.json").read_text())
    assert summary == done.summary
    # Counts have not settled in 200 steps, and the demo says so.
    assert [(r["quantity"], r["verdict"]) for r in summary["results"]] == [
        ("complexes C", "--"),
        ("K_D", "--"),
        ("energy change without heat and work, relative", "OK"),
        ("chemical work", "OK"),
    ]
    counts = summary["counts"]
    assert counts["A"] + counts["C"] == counts["B"] + counts["C"] == 20
    assert counts["C"] > 0
    assert "20 A and 20 B: K_D = 402" in text.getvalue()
    resumed = mp.Simulation.resume(out / "run.checkpoint", reporters=False)
    (points,) = resumed.topology.point_handles
    assert points.counts(resumed.context.get_state(positions=True)) == counts


def test_complexes_of_the_demo_of_reactions():
    """Of one pair P(C) = 1/(1 + K_D S); of two, by hand: weights 1/4, 1/K and 1/2K²."""
    assert reactions_demo.mean_of_complexes(1, 3.0) == pytest.approx(0.25, rel=1e-14)
    assert reactions_demo.mean_of_complexes(2, 2.0) == pytest.approx((0.5 + 0.25) / (0.25 + 0.5 + 0.125), rel=1e-14)


def test_a_small_demo_of_treadmilling_writes_everything(tmp_path):
    out, text = tmp_path / "out", io.StringIO()
    done = run_treadmilling_demo(out, growing=10, steps=200, threads=1, stream=text)
    assert sorted(p.name for p in out.iterdir()) == sorted(OUTPUTS)
    assert json.loads((out / "summary.json").read_text()) == done.summary
    assert [(r["quantity"], r["verdict"]) for r in done.summary["results"]] == [
        ("free subunits", "--"),
        ("subunits through a filament", "--"),
        ("entropy produced by a filament", "--"),
        ("energy change without heat and work, relative", "OK"),
        ("force on the tube", "--"),
        ("growth against it", "--"),
    ]
    assert "it would stall at 5.71 pN" in text.getvalue()


def test_a_small_demo_of_contraction_writes_everything(tmp_path):
    out, text = tmp_path / "out", io.StringIO()
    done = run_contraction_demo(out, network=10, steps=200, threads=1, stream=text)
    assert sorted(p.name for p in out.iterdir()) == sorted([*OUTPUTS, "contraction.csv"])
    head, *rows = (out / "contraction.csv").read_text().splitlines()
    assert head == "time (s),radius of gyration (nm),heat (pN nm),ATP (pN nm)"
    table = np.array([row.split(",") for row in rows], float)
    assert table[:, 0] == pytest.approx(2e-7 * 100 * np.arange(1, 3))
    assert table[[0, -1], 1] == pytest.approx(done.summary["radius_of_gyration"], rel=1e-8)
    assert table[-1, 2:] == pytest.approx([done.summary["heat"], done.summary["ATP"]], rel=1e-8)
    assert json.loads((out / "summary.json").read_text()) == done.summary
    assert [(r["quantity"], r["verdict"]) for r in done.summary["results"]] == [
        ("radius of gyration, end over start", "--"),
        ("molecules lost", "OK"),
        ("largest error of filament links, relative", "OK"),
        ("energy change without heat and work, relative", "OK"),
    ]
    assert done.summary["ATP"] > 0.0
    assert "100 motors of 175 nm" in text.getvalue()


def test_a_network_is_compared_with_what_it_was():
    """Of made-up looks: a network that does not shrink, and molecules that get lost, are found."""

    def verdicts(end, lost=0):
        watch = contraction_demo.Watch(None)
        watch.errors = [1e-12]
        n, m = contraction_demo.LINKERS, contraction_demo.MOTORS
        watch.rows = [
            (100.0 * (1.0 - (1.0 - end) * k / 39), n - lost * (k > 20), m, 50, 30, -1.0 * k, 2.0 * k, 10.0 * k)
            for k in range(40)
        ]
        lines, facts = contraction_demo.compared(watch, contraction_demo.FEWEST_STEPS)
        assert (facts["heat"], facts["work"], facts["ATP"]) == (39.0, 78.0, 390.0)
        return [line.verdict for line in lines]

    assert verdicts(0.9) == ["OK", "OK", "OK", "OK"]
    assert verdicts(0.98)[0] == "CHECK"
    assert verdicts(0.9, lost=1)[1] == "CHECK"


def test_the_flow_of_subunits_through_filaments():
    """Actin at 0.17054 µM: 0.5783 /s go through, with 1.629 kT each (kinetics of two ends, without fluctuations in a
    large volume). In a small one the sums are those of a chain of events, drawn here."""
    large = treadmilling_demo.flow(1e12, 100)
    assert large.free / 1e12 / mp.units.micromolar == pytest.approx(0.170543, abs=1e-6)
    assert large.through == pytest.approx(0.57829, abs=1e-5)
    assert large.entropy / large.through == pytest.approx(1.62903, rel=1e-4)
    law, rng = treadmilling_demo.flow(5e7, 1), np.random.default_rng(4)
    ends = np.array(list(treadmilling_demo.ENDS.values()))
    on, off = (ends[:, 0] / (mp.units.micromolar * 5e7)).tolist(), ends[:, 1].tolist()
    free, time, entropy, sums = 5, 0.0, 0.0, 0.0
    for wait, which in zip(rng.exponential(size=200_000).tolist(), rng.random(200_000).tolist(), strict=True):
        rates = [on[0] * free, on[1] * free, *off]
        wait /= sum(rates)
        time, sums = time + wait, sums + wait * free
        event, left = 0, which * sum(rates)
        while event < 3 and left >= rates[event]:
            left -= rates[event]
            event += 1
        end, sign = event % 2, 1 if event < 2 else -1
        free -= sign
        entropy += sign * np.log(on[end] * (free + (sign > 0)) / off[end])
    assert sums / time == pytest.approx(law.free, rel=0.02)
    assert entropy / time == pytest.approx(law.entropy, rel=0.06)


def test_a_tube_that_a_filament_pushes_is_compared_with_theory():
    """Rows of a tube with a tension of 0.0115 pN/nm, 4.35 pN: its force, growth there and above it, and noise."""
    watch = pushing.Watch(mp.TriangleMesh.icosphere(100.0, 1))
    rng, n = np.random.default_rng(2), 800
    tension, area, radius = pushing.TENSION, 1e4, 120.0

    def lines(force, per_second):
        seconds = pushing.FASTER * pushing.TIMESTEP * pushing.LOOK * np.arange(n)
        rows = [force + rng.normal(0.0, 1.0, n), np.floor(60.0 + per_second * seconds),
                np.full(n, 2.0 * tension / radius), np.full(n, area), np.full(n, area / radius)]  # fmt: skip
        watch.rows = list(map(tuple, np.transpose(rows)))
        return pushing.compared(watch, pushing.FEWEST_STEPS)

    expected = pushing.ON * pushing.MICROMOLES * np.exp(-4.354 * pushing.RISE / pushing.KT) - pushing.OFF
    (force, growth), facts = lines(4.354, expected)
    assert (force.expected, growth.expected) == (pytest.approx(4.336, abs=0.03), pytest.approx(expected, rel=0.1))
    assert (force.verdict, growth.verdict) == ("OK", "OK")
    assert facts["tension"] == pytest.approx(tension)
    assert lines(5.5, expected)[0][0].verdict == "CHECK"
    assert lines(4.354, 25.0)[0][1].verdict == "CHECK"
    assert pushing.compared(watch, 10)[0][0].verdict == "--"


def watched(force, pressure, shift=1.0, radius=1.0, n=400):
    """What the demo would have seen of a tube on a body with H = 1/150 nm, with noise of independent looks."""
    watch = tube_demo.Tube(mp.TriangleMesh.icosphere(90.0, 1), 1.0, 1.0)
    rng = np.random.default_rng(1)
    watch.steps = np.linspace(1, 26_000, n).astype(int).tolist()
    tube = 2.0 * np.pi * tether_demo.TUBE * tube_demo.LONG
    noise = rng.normal(0.0, 0.05, (4, n))
    watch.rows = [
        (force * a, 200.0, pressure, 3e4, 3e4 / 150.0, 60.0 * b, tube * c, 60.0 * shift * tube / 3e4 * d, radius * c)
        for a, b, c, d in 1.0 + noise.T
    ]
    return watch


def test_references_of_tethers():
    """σ = p R_c/2 with R_c = 1/H, f = 2πκ/R, and the radius at which the energy of a tube of this mesh under this
    pressure is least: right numbers are OK, and each that is off by more is not."""
    kappa, tube = tether_demo.BENDING_MODULUS, tether_demo.TUBE
    pressure = kappa / tube**2 / 150.0
    force = 2.0 * np.pi * kappa / tube
    tension, edge = 0.5 * kappa / tube**2, tether_demo.EDGE
    radii = np.linspace(10.0, 40.0, 300_001)
    bent = np.pi * kappa / radii * (1.0 + tube_demo.STIFFER * (edge / radii) ** 2)
    radius = radii[np.argmin(bent + 2.0 * np.pi * tension * radii - np.pi * pressure * radii**2)]
    assert radius > 1.2 * tube
    for scale, shift, wide, verdicts in (
        (1.0, 2.0, 1.0, ["OK", "OK", "OK"]),
        (1.2, 2.0, 1.0, ["CHECK", "OK", "OK"]),
        (1.0, 2.0, 1.2, ["OK", "CHECK", "OK"]),
        (1.0, 1.0, 1.0, ["OK", "OK", "CHECK"]),
    ):
        lines, facts = tube_demo.compared(watched(scale * force, pressure, shift, wide * radius), 26_000)
        assert [line.verdict for line in lines] == verdicts
        assert facts["tension"] == pytest.approx(tension, rel=1e-9)
        assert lines[0].expected == pytest.approx(force, rel=1e-9)
        assert lines[1].expected == pytest.approx(radius, rel=1e-5)
    lines, _ = tube_demo.compared(watched(force, 2.0 * pressure, 2.0, radius), 26_000)
    assert [line.verdict for line in lines] == ["CHECK", "CHECK", "OK"]
    assert tube_demo.radius_expected(tension, 0.0) > tube
    assert tube_demo.radius_expected(tension, 10.0 * pressure) is None


def test_the_radius_of_a_tube_is_the_distance_from_its_middle():
    angle = np.linspace(0.0, 2.0 * np.pi, 50, endpoint=False)
    circle = np.array([30.0, -5.0]) + 17.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    assert tube_demo.radius_of(circle, np.ones(50)) == pytest.approx(17.0, rel=1e-12)
    # Of weights that say where, what else there is does not count.
    more = np.concatenate([circle, [[90.0, 90.0]]])
    assert tube_demo.radius_of(more, np.append(np.ones(50), 0.0)) == pytest.approx(17.0, rel=1e-12)
    assert np.isnan(tube_demo.radius_of(circle, np.zeros(50)))


@pytest.mark.parametrize("around", [10, 12, 16])
def test_tubes_of_triangles_are_stiffer_than_round_ones(around):
    """By what the demo says: 1 + 0.104 (edge/R)², to 0.2 % of the energy."""
    radius, rows = 17.0, 12
    edge = 2.0 * np.pi * radius / around
    length = rows * edge * np.sqrt(0.75)
    mesh = mp.TriangleMesh.cylinder(radius, length, around, rows, periodic=True)
    topology = mp.Topology()
    tube = topology.add_membrane(mesh, vertex_mass=1.0)
    system = system_with(topology, mp.forces.MembraneBending(tube, 1.0), box=mesh.box)
    energy = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy
    expected = np.pi * length / radius * (1.0 + tube_demo.STIFFER * (edge / radius) ** 2)
    assert energy == pytest.approx(expected, rel=0.002)


# Elastic rods ------------------------------------------------------------------------------------------------


def test_a_small_demo_of_elastic_rods_writes_everything(tmp_path):
    out, text = tmp_path / "out", io.StringIO()
    done = run_rod_demo(out, segments=126, rods=40, steps=20, threads=1, stream=text)
    assert sorted(p.name for p in out.iterdir()) == sorted(OUTPUTS)
    summary = json.loads((out / "summary.json").read_text())
    assert summary == done.summary
    assert (summary["segments"], summary["rods"], summary["steps"], summary["temperature"]) == (126, 40, 20, None)
    # Twice the segments, half the timestep.
    assert "run       20 steps of ABA, dt = 0.1, 1 thread\n" in text.getvalue()
    assert {r["verdict"] for r in summary["results"]} == {"OK"}
    assert [r["quantity"] for r in summary["results"]] == [
        "circle: energy at the start", "circle: largest |ΔE/E| to 300 t0, Δt", "circle: largest |ΔE/E| to 300 t0, Δt/2",
        "circle: largest |ΔE/E| to 300 t0, Δt/4", "circle: |ΔE/E| at Δt over Δt/2", "circle: |ΔE/E| at Δt/2 over Δt/4",
        "shear of a joint, twice its energy", "stretch of a joint, twice its energy"
    ]  # fmt: skip
    assert done.topology.handles[0].segment_length[0] == pytest.approx(20.0 * np.pi / 126)
    with Trajectory(out / "trajectory.h5") as trajectory:
        assert trajectory[-1].orientations.shape == (126, 4)
        assert trajectory.steps.tolist() == list(range(1, 21))
    assert mp.Simulation.resume(out / "run.checkpoint", reporters=False).current_step == 20


def test_noise_free_results_are_near():
    assert near_line("a", 1.01, 1.0, 0.02).verdict == "OK"
    assert near_line("a", 1.03, 1.0, 0.02).verdict == "CHECK"
