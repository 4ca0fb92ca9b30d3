"""Periodic patches of fluid membranes: long runs, kT = 1, edges of about 1, masses and frictions of 1."""

import numpy as np
import pytest
from builders import system_with
from short_waves import softening

import medyanpy as mp

TIMESTEP = 0.001
KAPPA = 10.0
# No triangle has an angle beyond 120 degrees.
TETHER = {"l_min": 0.76, "l_c1": 0.92, "l_c0": 1.15, "l_max": 0.76 * np.sqrt(3.0)}
# Of the membrane per vertex. Held by tethers alone it would be 0.88 without tension and more with it, and few edges
# could flip: from 0.9 on vertices stay on a lattice, which has more than its bending modulus against waves.
AREA = 0.8


def patch(nx, ny, per_step, seed, kappa=KAPPA, tension=None, word="JBAOABJ"):
    """Bending, the published tether, what keeps folds out, and the area; edges tried `per_step` times a step, and at a
    tension the box once in ten."""
    mesh = mp.TriangleMesh.flat_sheet(nx, ny, np.sqrt(2.0 * AREA / np.sqrt(3.0)), periodic=True)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0, name="patch")
    system = system_with(topology, mp.forces.MembraneBending(membrane, kappa),
                         mp.forces.MembraneTether(membrane, 80.0, 1.0, **TETHER),
                         mp.forces.MembraneFoldRepulsion(membrane, 20.0),
                         mp.forces.MembraneArea(membrane, 200.0, area=AREA * nx * ny), box=mesh.box)  # fmt: skip
    system.add_jump(mp.jumps.EdgeFlips(membrane, per_step / TIMESTEP))
    if tension is not None:
        system.add_jump(mp.jumps.BoxArea(tension=tension, rate=0.1 / TIMESTEP, step=0.015))
    context = mp.Context(system, mp.SplittingIntegrator(word, TIMESTEP, kT=1.0, seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=seed)
    return context


def sampled(context, steps, every):
    """Projected areas and energies (looks, 2), and the spectrum."""
    membrane = context.system.topology["patch"]
    context.step(steps // 12)
    states = []
    for _ in range(steps // every):
        context.step(every)
        states.append(context.get_state(positions=True, energy=True))
    numbers = np.array([[state.box[0] * state.box[1], state.potential_energy] for state in states])
    return numbers, mp.analysis.patch_spectrum(states, membrane)


def under_tension(tension, steps=1_200_000):
    """What `sampled` has of a patch of 288 vertices."""
    return sampled(patch(16, 18, 0.1, seed=1, tension=tension), steps, 400)


@pytest.mark.long
def test_patches_have_the_spectra_of_their_frame_tensions():
    """The tension of waves is that of the frame; their bending modulus softens with their length, and is the same for
    all tensions."""
    values, errors = [], []
    for tension in (0.0, 0.5, 2.0):
        numbers, spectrum = under_tension(tension)
        both = mp.analysis.fit_spectrum(spectrum, kT=1.0, softening=True)
        known = mp.analysis.fit_spectrum(spectrum, kT=1.0, softening=True, tension=tension).bending_modulus
        print(f"area {mp.analysis.average(numbers[:, 0])}, energy {mp.analysis.average(numbers[:, 1])}")
        print(f"imposed {tension:g}: {both.tension}, kappa {both.bending_modulus}; of this tension {known}")
        for q, value, error in zip(spectrum.wave_number, spectrum.value, spectrum.error, strict=True):
            print(f"q = {q:.3f}: {value:.5g} ± {error:.2g}")
        assert abs(both.tension.value - tension) < max(5.0 * both.tension.error, 0.05)
        assert known.error < 0.015 * KAPPA
        values.append(known.value)
        errors.append(known.error)
    mean, error = np.mean(values), np.hypot.reduce(errors) / 3.0
    print(f"of the three tensions {mean:.3f} ± {error:.3f}")
    assert (np.abs(values - mean) < 5.0 * np.array(errors)).all()
    # The waves that are shorter than the lattice tells make it this much softer, over kT, to first order and without
    # motion along the sheet.
    _, shift = softening(16, 18)
    assert error < 0.0075 * KAPPA
    assert abs(mean - (KAPPA + shift)) < 0.03 * KAPPA


def stresses(context, looks, every):
    """(looks,) W_yy - W_xx: positive where x is the axis that pulls more."""
    found = np.empty(looks)
    for k in range(looks):
        context.step(every)
        w = context.get_state(virial=True).virial
        found[k] = w[1, 1] - w[0, 0]
    return found


def sheared(seed):
    """A patch 5 % longer along x and shorter along y, slowly and without flips: a context and its flips."""
    context = patch(16, 18, 0.0, seed)
    context.step(5000)
    x, y, _ = context.get_state().box
    for k in range(1, 21):
        context.set_box((x * 1.05 ** (k / 20), y * 1.05 ** (-k / 20), None))
        context.step(100)
    return context, context.system.jumps[0]


@pytest.mark.long
def test_flips_relax_the_stress_of_a_shear():
    """Of a shear of 10 % less than 5 % is left after 100 flips per edge, and more than half without."""
    first, late, still = [], [], []
    for seed in range(1, 5):
        context, flips = sheared(seed)
        first.append(stresses(context, 200, 100))
        edges = 3 * 16 * 18
        flips.rate = 1.0 / TIMESTEP
        while flips.counts.accepted < 100 * edges:
            context.step(1000)
        flips.rate = 0.1 / TIMESTEP
        late.append(stresses(context, 1000, 100))
        steps, (context, _) = context.step_count, sheared(seed)
        context.step(steps - 100_000 - context.step_count)
        still.append(stresses(context, 200, 100))
        print(f"seed {seed}: {first[-1].mean():.1f}, {late[-1].mean():.1f}, {still[-1].mean():.1f}", flush=True)
    first, late, still = (mp.analysis.average(np.concatenate(series)) for series in (first, late, still))
    print(f"first {first}, after 100 flips per edge {late}, without {still}")
    assert abs(late.value) < 0.05 * first.value
    assert late.error < 0.02 * first.value
    assert still.value - 5.0 * still.error > 0.5 * first.value


VESICLE_KAPPA = 20.0


def vesicle(per_step, seed):
    """642 vertices of the same density, held so that they have some tension."""
    mesh = mp.TriangleMesh.icosphere(1.0, 3)
    area = AREA * len(mesh.vertices)
    mesh = mesh.with_vertices(mesh.vertices * np.sqrt(area / mesh.area))
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0, name="vesicle")
    system = system_with(topology, mp.forces.MembraneBending(membrane, VESICLE_KAPPA),
                         mp.forces.MembraneTether(membrane, 80.0, 1.0, **TETHER),
                         mp.forces.MembraneFoldRepulsion(membrane, 20.0),
                         mp.forces.MembraneArea(membrane, 200.0))  # fmt: skip
    sphere = np.sqrt(area / (4.0 * np.pi)) ** 3 * 4.0 * np.pi / 3.0
    system.add_force(mp.forces.MembraneVolume(membrane, 50.0, volume=1.015 * sphere))
    system.add_jump(mp.jumps.EdgeFlips(membrane, per_step / TIMESTEP))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", TIMESTEP, kT=1.0, seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=seed)
    return context


def vesicle_sampled(per_step, seed, steps, every=400):
    """Mechanical tensions (looks,), and the spectrum up to l = 8."""
    context = vesicle(per_step, seed)
    membrane = context.system.topology["vesicle"]
    context.step(min(steps // 8, 50_000))
    tensions, states = [], []
    for _ in range(steps // every):
        context.step(every)
        states.append(context.get_state(positions=True))
        tensions.append(mp.analysis.surface_tension(context, membrane, without="MembraneVolume").total)
    return np.array(tensions), mp.analysis.vesicle_spectrum(states, membrane, l_max=8)


@pytest.mark.long
def test_a_vesicle_has_the_spectrum_of_milner_and_safran():
    """From l = 2 to 8, with the tension that its virials tell, and the bending modulus that was given less what short
    waves take; without flips shear makes it stiffer."""
    tensions, spectrum = vesicle_sampled(0.1, 1, 800_000)
    # What triangles on a sphere make of l (l + 1), beyond the lattice (docs/analysis.md).
    curved = 1.0 + 1.5 * (spectrum.spacing / spectrum.radius) ** 2
    fit = mp.analysis.fit_spectrum(spectrum, kT=1.0, softening=True)
    mechanical = mp.analysis.average(tensions)
    known = mp.analysis.fit_spectrum(spectrum, kT=1.0, softening=True, tension=mechanical.value * curved)
    kappa, sigma = (mp.analysis.Estimate(one.value / curved, one.error) for one in (known.bending_modulus, fit.tension))
    print(f"kappa {kappa} of the tension by virials {mechanical}, by waves {sigma}")
    for degree, power, error, law in zip(spectrum.degree, spectrum.value, spectrum.error, fit.value, strict=True):
        print(f"l = {degree}: {power:.4g} ± {error:.2g}, over the law {power / law:.3f}")
    assert (np.abs(spectrum.value - fit.value) < np.maximum(5.0 * spectrum.error, 0.05 * fit.value)).all()
    _, shift = softening(16, 18)
    assert 5.0 * kappa.error < 0.03 * VESICLE_KAPPA
    assert abs(kappa.value - (VESICLE_KAPPA + shift)) < 0.03 * VESICLE_KAPPA
    assert abs(sigma.value - mechanical.value) < max(5.0 * np.hypot(sigma.error, mechanical.error), 0.05)
    _, still = vesicle_sampled(0.0, 1, 800_000)
    print("without flips over with flips:", *(still.value / spectrum.value)[:3].round(3))
    assert (spectrum.value[:3] - still.value[:3] > 5.0 * np.hypot(spectrum.error[:3], still.error[:3])).all()
