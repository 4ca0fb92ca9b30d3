"""Break the kernels on purpose, and see that the tests fail.

    python tests/mutants.py [WORD ...]

Each mutant is one edit of one file and the tests that must notice it. The tree is copied, built once, and then built
and tested again with every mutant in turn; a mutant that the tests pass is listed as a survivor and the exit code is
1. Words choose mutants by what their description contains. Needs the build tools of pyproject.toml in the running
environment (meson-python, cython, ninja) beside the `test` extra.
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Mutant:
    what: str
    file: str
    old: str
    new: str
    tests: str


GEODESIC = "medyanpy/_kernels/geodesic.pyx"
KICK = "medyanpy/_kernels/kick.pyx"
DRIFT = "medyanpy/_kernels/drift.pyx"
THERMOSTAT = "medyanpy/_kernels/thermostat.pyx"
ACCUMULATE = "medyanpy/_kernels/accumulate.pyx"
BONDS = "medyanpy/_kernels/bonds.pyx"
BENDING = "medyanpy/_kernels/membrane_bending.pyx"
DIHEDRAL = "medyanpy/_kernels/membrane_dihedral.pyx"
MEMBRANE = "medyanpy/_kernels/membrane.pyx"
MEMBRANE_PXD = "medyanpy/_kernels/membrane.pxd"
TOTALS = "medyanpy/_kernels/membrane_totals.pyx"
MEMBRANE_FORCES = "medyanpy/forces/membrane.py"
NEIGHBORS = "medyanpy/_kernels/neighbors.pyx"
PAIRS = "medyanpy/_kernels/pairs.pyx"
RADIAL = "medyanpy/_kernels/radial.pxd"
EXTERNAL = "medyanpy/_kernels/external.pyx"
SITES = "medyanpy/_kernels/sites.pyx"
SITES_FACE = "medyanpy/sites.py"
LINKS = "medyanpy/forces/links.py"
LINK_TESTS = "tests/forces/test_links.py"
SITE_TESTS = "tests/kernels/test_sites.py"
CONTRACT = "tests/forces/test_contract.py"
PYTHON = "medyanpy/_kernels/python_force.pyx"
PAIR_FACE = "medyanpy/forces/pairs.py"
FIELD_FACE = "medyanpy/forces/external.py"
LISTS = "tests/kernels/test_neighbors.py"
PAIR_TESTS = "tests/forces/test_pairs.py"
JOINTS = "medyanpy/_kernels/joints.pxd"
FILAMENT_BENDING = "medyanpy/_kernels/filament_bending.pyx"
FIXMAN = "medyanpy/_kernels/fixman.pyx"
FILAMENT_FORCES = "medyanpy/forces/filaments.py"
FILAMENT_FORCE_TESTS = "tests/forces/test_filament_forces.py"
PROGRAM = "medyanpy/_kernels/program.pyx"
CONTEXT = "medyanpy/context.py"
GOOD = "tests/test_last_good_state.py"
WORK = "tests/test_work.py"
CONSTRAINTS = "medyanpy/_kernels/constraints.pyx"
FILAMENT_FLOW = "medyanpy/filaments.py"
SOLVES = "tests/kernels/test_constraints.py"
FILAMENT_LAWS = "tests/physics/test_filaments.py"
PHYSICS = "tests/physics/test_geodesic.py tests/physics/test_words.py tests/physics/test_thermostat.py"

MUTANTS = [
    Mutant("geodesic: no recoil at the end of a flight", GEODESIC,
           "_recoil(sums, corner, v, scaled_mass, rate[1] * rest, rate[2] * rest)",
           "pass", "tests/physics/test_geodesic.py"),
    Mutant("geodesic: no recoil at all, seen in the equilibrium", GEODESIC,
           "sums[3 * <Py_ssize_t> corner[0] + c] -= second + third\n"
           "        sums[3 * <Py_ssize_t> corner[1] + c] += second\n"
           "        sums[3 * <Py_ssize_t> corner[2] + c] += third",
           "pass", "tests/physics/test_equilibrium.py"),
    Mutant("geodesic: recoil of the wrong corner", GEODESIC,
           "sums[3 * <Py_ssize_t> corner[1] + c] += second", "sums[3 * <Py_ssize_t> corner[2] + c] += second",
           "tests/physics/test_geodesic.py"),
    Mutant("geodesic: speed across an edge not scaled by the heights", GEODESIC,
           "rate[0] = -rate_i * sqrt(nn / nn_new)", "rate[0] = -rate_i", "tests/physics/test_geodesic.py"),
    Mutant("geodesic: speed along an edge not kept", GEODESIC,
           "rate_k = rate_k + (rate_i * uE - rate[0] * uE_new) / EE", "rate_k = rate_k + (rate_i * uE) / EE",
           "tests/physics/test_geodesic.py"),
    Mutant("geodesic: reflection loses the tangential part", GEODESIC,
           "rate_k = rate_k + 2.0 * rate_i * uE / EE", "rate_k = rate_k + rate_i * uE / EE",
           "tests/physics/test_geodesic.py"),
    Mutant("geodesic: edge corners not exchanged in the neighbour", GEODESIC,
           "corner[1] = corner_k\n            corner[2] = corner_j\n            weight[1] = weight_k\n"
           "            weight[2] = weight_j\n            rate[1] = rate_k",
           "corner[1] = corner_j\n            corner[2] = corner_k\n            weight[1] = weight_k\n"
           "            weight[2] = weight_j\n            rate[1] = rate_k", "tests/physics/test_geodesic.py"),
    Mutant("geodesic: time used up to the edge not taken off", GEODESIC,
           "rest = max(rest - tau, 0.0)", "rest = rest", "tests/physics/test_geodesic.py"),
    Mutant("geodesic: latest instead of earliest edge", GEODESIC,
           "if i < 0 or tau_r < tau:", "if i < 0 or tau_r > tau:", "tests/physics/test_geodesic.py"),
    Mutant("geodesic: weights not clamped at an edge", GEODESIC,
           "    if (1.0 - weight[1]) - weight[2] < 0.0:", "    if False:", "tests/physics/test_geodesic.py"),
    Mutant("geodesic: mass of the first point for all", GEODESIC,
           "scaled_mass = world.mass[bead] * t.scale", "scaled_mass = world.mass[world.n_cartesian] * t.scale",
           "tests/physics/test_geodesic.py"),
    Mutant("drift: velocities of points not rebuilt", DRIFT,
           "        if ride:\n            return over_blocks(_ride", "        if False:\n            return over_blocks(_ride", PHYSICS),
    Mutant("drift: rebuilt on the old triangle", DRIFT,
           "frame_of(&world.box, world.x, corners, &frame)", "frame_of(&world.box, t.before, corners, &frame)", PHYSICS),
    Mutant("kick: no chain rule", KICK,
           "task.chain = &self.forces.chain[0, 0]", "pass", "tests/physics/test_words.py"),
    Mutant("kick: chain rule with weights of the wrong corners", KICK,
           "weight[1] = world.barycentric[2 * p]\n        weight[2] = world.barycentric[2 * p + 1]",
           "weight[2] = world.barycentric[2 * p]\n        weight[1] = world.barycentric[2 * p + 1]",
           "tests/physics/test_words.py"),
    Mutant("kick: forces not evaluated again after moving", KICK,
           "if self.forces.count == 0 or self.evaluated == world.positions:",
           "if self.forces.count == 0 or self.evaluated > 0:", "tests/test_integrators.py"),
    Mutant("kick: not projected into the plane", KICK, "        project(&frame, u)", "        pass", PHYSICS),
    Mutant("thermostat: friction of a bead without noise", THERMOSTAT,
           "t.c2[i] * gx[k]", "0.9 * t.c2[i] * gx[k]", "tests/physics/test_thermostat.py"),
    Mutant("thermostat: the letter's place is not part of the key", THERMOSTAT,
           "world.step, t.letter, 0", "world.step, 0, 0", "tests/physics/test_thermostat.py"),
    Mutant("thermostat: noise keyed by place instead of permanent number", THERMOSTAT,
           "<const int*> (world.id + start)", "<const int*> world.id", "tests/test_bits.py tests/physics/test_thermostat.py"),
    Mutant("thermostat: step not part of the key", THERMOSTAT,
           "world.seed, world.step,", "world.seed, 0,", "tests/physics/test_thermostat.py"),
    Mutant("accumulate: threads beyond the second forgotten", ACCUMULATE,
           "for other in range(1, t.threads):", "for other in range(1, min(2, t.threads)):",
           "tests/test_bits.py tests/physics/test_geodesic.py"),
    Mutant("accumulate: not cleared", ACCUMULATE, "            t.sums[k] = 0\n", "", "tests/physics/test_words.py"),
    Mutant("bonds: stiffness of the first bond for all", BONDS,
           "t.parameters + 2 * <Py_ssize_t> t.term[s]", "t.parameters", "tests/forces/test_contract.py"),
    Mutant("bonds: energy of one end only", BONDS, "energy += 0.5 * u[0]", "energy += u[0]", "tests/forces/test_contract.py"),
    Mutant("bonds: overwrite instead of add", BONDS, "f[0] += row[0]", "f[0] = row[0]", "tests/forces/test_contract.py"),
    Mutant("bonds: force not divided by the distance", BONDS, "u[1] / r if r > 0.0", "u[1] if r > 0.0",
           "tests/forces/test_contract.py"),
    Mutant("membrane forces: border exclusion dropped", MEMBRANE_FORCES,
           "kappa[loop] = 0.0",
           "pass", "tests/forces/test_membrane.py"),
    Mutant("membrane forces: border loop: first vertex only", MEMBRANE_FORCES,
           "kappa[loop] = 0.0",
           "kappa[loop[1:]] = 0.0", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: kappa[0]", BENDING,
           "excess = t.kappa[v]",
           "excess = t.kappa[0]", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: c0[0] in energy", BENDING,
           "r.s = 2.0 * excess * (h - t.c0[v])",
           "r.s = 2.0 * excess * (h - t.c0[0])", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: factor third", BENDING,
           "area *= 1.0 / 6.0",
           "area *= 1.0 / 2.0", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: s gradient factor", BENDING,
           "r.s *= 1.0 / 6.0",
           "r.s *= 1.0 / 3.0", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: 2Hg sign", BENDING,
           "3.0 * a[i] - 2.0 * h",
           "3.0 * a[i] + 2.0 * h", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: p sign", BENDING,
           "1.5 * c * g[i]",
           "-1.5 * c * g[i]", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: dn projection dropped", BENDING,
           "(r0.s + r1.s + r2.s) - dot(n, big_t) * inverse",
           "(r0.s + r1.s + r2.s)", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: dT term sign", BENDING,
           "big_t[i] = r2.p[i] - r0.p[i]",
           "big_t[i] = r0.p[i] - r2.p[i]", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: dT term corner0 dropped", BENDING,
           "        add_scaled(1.0, u, row)\n",
           "        add_scaled(0.0, u, row)\n", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: q of one corner lost", BENDING,
           "r0.q[i] + r1.q[i] + r2.q[i]",
           "r0.q[i] + r1.q[i]", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: H sign", BENDING,
           "h = 3.0 * dot(a, g) / gg if gg > 0.0",
           "h = -3.0 * dot(a, g) / gg if gg > 0.0", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: gg guard dropped", BENDING,
           "if gg > 0.0 else 0.0",
           "if gg >= 0.0 else 0.0", "tests/forces/test_membrane.py"),
    Mutant("bending: fault of a face without area dropped", MEMBRANE_PXD,
           "> 0.0:\n        return record_fault",
           ">= 1e300:\n        return record_fault", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: vertex offset by first_bead lost", BENDING,
           "v2 = beads[2] - m.first_bead",
           "v2 = beads[2]%3", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: partial block index", BENDING,
           "m.vertex_partial[first // VERTEX_BLOCK] = energy",
           "m.vertex_partial[0] = energy", "tests/forces/test_membrane.py"),
    Mutant("vertex bending: gathered 1e-6 short", BENDING,
           "self.gather(world, 1.0)",
           "self.gather(world, 0.999999)", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: kappa[0]", DIHEDRAL,
           "excess = t.kappa[v]",
           "excess = t.kappa[0]", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: factor third", DIHEDRAL,
           "area *= 1.0 / 6.0",
           "area *= 1.0 / 2.0", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: phi sign", DIHEDRAL,
           "y[k] = dot(e, u)",
           "y[k] = -dot(e, u)", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: S response sign c0", DIHEDRAL,
           "excess * (h + t.c0[v])",
           "excess * (h - t.c0[v])", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: b half lost", DIHEDRAL,
           "b[i] = 0.5 * w[i]",
           "b[i] = 1.0 * w[i]", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: b sign", DIHEDRAL,
           "add_scaled(-b[0], e, row + 3)",
           "add_scaled(b[0], e, row + 3)", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: Y sign", DIHEDRAL,
           "add_scaled(-dot(e, big_y), n, row)",
           "add_scaled(dot(e, big_y), n, row)", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: Y dropped inverse", DIHEDRAL,
           "* inverse\n            b[i]",
           "\n            b[i]", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: W wrong", DIHEDRAL,
           "w[1] = t.response[2 * v2] + t.response[2 * v0]",
           "w[1] = t.response[2 * v2] + t.response[2 * v1]", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: wrong edge at vertex", DIHEDRAL,
           "corner - 1 if corner > 3 * face else corner + 2",
           "corner", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: turn second face lost", DIHEDRAL,
           "            t.turn[pair[1]] = y[k]\n",
           "", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: batch tail", DIHEDRAL,
           "n = min(<Py_ssize_t> BATCH, last - start)",
           "n = BATCH if last - start > BATCH else last - start - 1", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: l factor lost", DIHEDRAL,
           "y[k] = length[k] * atan2_",
           "y[k] = atan2_", "tests/forces/test_membrane.py"),
    Mutant("dihedral bending: edge corner order", DIHEDRAL,
           "corner + 1 if corner < 2 else 0",
           "corner + 1 if corner < 1 else 0", "tests/forces/test_membrane.py"),
    Mutant("membrane base: gather overwrite", MEMBRANE,
           "f[0] -= t.scale * s0",
           "f[0] = -t.scale * s0", "tests/forces/test_membrane.py"),
    Mutant("membrane base: gather first bead", MEMBRANE,
           "world.f + 3 * (m.first_bead + v)",
           "world.f + 3 * v", "tests/forces/test_membrane.py"),
    Mutant("membrane base: first face lost", MEMBRANE_PXD,
           "world.faces + 3 * (m.first_face + face)",
           "world.faces + 3 * face", "tests/forces/test_membrane.py"),
    Mutant("membrane base: area partial half", MEMBRANE,
           "m.face_partial[first // FACE_BLOCK] = 0.5 * twice",
           "m.face_partial[first // FACE_BLOCK] = twice", "tests/forces/test_membrane.py"),
    Mutant("membrane base: zero-area guard", MEMBRANE,
           "1.0 / length if length > 0.0 else 0.0",
           "1.0 / length if length >= 0.0 else 0.0", "tests/forces/test_membrane.py"),
    Mutant("area and volume: tension sign", TOTALS,
           "self.gather(world, self.tension + self.modulus * strain)",
           "self.gather(world, -self.tension + self.modulus * strain)", "tests/forces/test_membrane.py"),
    Mutant("area and volume: tri area[0]", TOTALS,
           "tension = t.modulus[f] * excess / t.area[f]",
           "tension = t.modulus[f] * excess / t.area[0]", "tests/forces/test_membrane.py"),
    Mutant("area and volume: tri k[0]", TOTALS,
           "tension = t.modulus[f] *",
           "tension = t.modulus[0] *", "tests/forces/test_membrane.py"),
    Mutant("area and volume: volume origin = absolute", TOTALS,
           "displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> beads[0], d)",
           "d[0]=world.x[3*<Py_ssize_t>beads[0]]; d[1]=world.x[3*<Py_ssize_t>beads[0]+1]; d[2]=world.x[3*<Py_ssize_t>beads[0]+2]", "tests/forces/test_membrane.py"),
    Mutant("area and volume: volume sixth", TOTALS,
           "m.face_partial[first // FACE_BLOCK] = six / 6.0",
           "m.face_partial[first // FACE_BLOCK] = six / 3.0", "tests/forces/test_membrane.py"),
    Mutant("area and volume: volume scale", TOTALS,
           "self.gather(world, self.modulus * strain / 6.0)",
           "self.gather(world, self.modulus * strain / 3.0)", "tests/forces/test_membrane.py"),
    Mutant("membrane forces: volume closed check", MEMBRANE_FORCES,
           "        if borders:\n",
           "        if borders > 5:\n", "tests/forces/test_membrane.py"),
    Mutant("membrane forces: area default ignored", MEMBRANE_FORCES,
           "mesh.area if area is None else area",
           "mesh.area", "tests/forces/test_membrane.py"),
    Mutant("membrane forces: per-triangle default", MEMBRANE_FORCES,
           "mesh.face_areas if area is None else area",
           "mesh.face_areas", "tests/forces/test_membrane.py"),
    Mutant("membrane forces: inward check", MEMBRANE_FORCES,
           "if volume <= 0.0:",
           "if volume == 0.0:", "tests/forces/test_membrane.py"),
    Mutant('membrane forces: forms swapped', MEMBRANE_FORCES,
           'if self._discretization == "vertex":',
           'if self._discretization != "dihedral" or True:', "tests/forces/test_membrane.py"),
    Mutant("neighbors: short rows not sorted", NEIGHBORS,
           "            _sort_short(near.id, row, n)", "            pass", PAIR_TESTS),
    Mutant("neighbors: long rows not sorted", NEIGHBORS,
           "            _sort_long(near.id, row, n)", "            pass", LISTS),
    Mutant("neighbors: rows sorted by slot", NEIGHBORS, "keys[i] = id[slots[i]]", "keys[i] = slots[i]", PAIR_TESTS),
    Mutant("neighbors: rebuilt after a whole skin", NEIGHBORS,
           "allowed = 0.25 * near.skin * near.skin", "allowed = near.skin * near.skin", LISTS),
    Mutant("neighbors: never rebuilt", NEIGHBORS, "stale |= near.stale[b]", "pass", PAIR_TESTS),
    Mutant("neighbors: only the last block looks stale", NEIGHBORS, "stale |= near.stale[b]", "stale = near.stale[b]", LISTS),
    Mutant("neighbors: rebuilt at every look", NEIGHBORS, "cdef int stale = not near.valid", "cdef int stale = 1", LISTS),
    Mutant("neighbors: no number does not count as far", NEIGHBORS,
           "stale |= not (dot(d, d) <= allowed)", "stale |= dot(d, d) > allowed", LISTS),
    Mutant("neighbors: moved is measured from the last look", NEIGHBORS,
           "displacement(&world.box, near.built + 4 * s, now, d)",
           "displacement(&world.box, near.built + 4 * s, now, d)\n        near.built[4 * s] = now[0]", PAIR_TESTS),
    Mutant("neighbors: exclusions forgotten", NEIGHBORS, "n = _without_excluded(near, s, row, n)", "pass", LISTS),
    Mutant("neighbors: exclusions of the neighbouring member", NEIGHBORS,
           "near.excluded + near.excluded_from[near.member[own]]", "near.excluded + near.excluded_from[own]", LISTS),
    Mutant("neighbors: beads of A only see each other", NEIGHBORS,
           "(group == <int> own and group < 2)", "(group == <int> own and group < 1)", LISTS),
    Mutant("neighbors: beads of both groups not among themselves", NEIGHBORS,
           "(group == <int> own and group < 2)", "(group == <int> own)", LISTS),
    Mutant("neighbors: one column of cells missing", NEIGHBORS, "for dz in range(3):", "for dz in range(2):", LISTS),
    Mutant("neighbors: cells do not repeat along x", NEIGHBORS,
           "_add_range(near, base + nx - 1, base + nx - 1, &out.cursor[column], out)", "pass", LISTS),
    Mutant("neighbors: cells do not repeat along z", NEIGHBORS, "(cz + nz - 1 + dz) % nz * ny", "(cz + nz - 1 + dz) * ny", LISTS),
    Mutant("neighbors: no margin for the extent", NEIGHBORS, "+ extent * EXTENT_MARGIN", "", LISTS),
    Mutant("neighbors: cells without skin", NEIGHBORS, "near.reach = (reach + skin)", "near.reach = (reach)", LISTS),
    Mutant("neighbors: a grid without empty margin", NEIGHBORS, "* near.per_cell) + 3.0", "* near.per_cell) + 1.0", LISTS),
    Mutant("neighbors: only the lowest digit of the key sorted", NEIGHBORS,
           "while shift == 0 or (shift < 64 and largest >> shift > 0):", "while shift == 0:", LISTS),
    Mutant("neighbors: every bead is its own neighbour", NEIGHBORS, " & (s != own)", "", PAIR_TESTS),
    Mutant("neighbors: bead reported by slot", NEIGHBORS,
           "record_fault(world, NOT_FINITE, _bead(near, near.site[m]), -1)", "record_fault(world, NOT_FINITE, m, -1)", LISTS),
    Mutant("pairs: force has the wrong sign", PAIRS, "total[0] += c[k] * d[3 * k]", "total[0] -= c[k] * d[3 * k]", PAIR_TESTS),
    Mutant("pairs: coefficient of the first neighbour for all", PAIRS, "total[1] += c[k]", "total[1] += c[0]", PAIR_TESTS),
    Mutant("pairs: radius of one end twice", PAIRS, "b[n] = me[3] + other[3]", "b[n] = me[3] + me[3]", PAIR_TESTS),
    Mutant("pairs: added to the sum of another place", PAIRS,
           "f = force + 3 * <Py_ssize_t> near.row[s]", "f = force + 3 * <Py_ssize_t> near.member[s]", PAIR_TESTS),
    Mutant("pairs: overwrite instead of add", PAIRS, "f[0] += total[0]", "f[0] = total[0]", PAIR_TESTS),
    Mutant("pairs: energies added in the order of slots", PAIRS,
           "t.energy[near.member[s]] = energy", "t.energy[s] = energy", PAIR_TESTS),
    Mutant("pairs: only the first part of a long row", PAIRS, "left -= part", "left = 0", PAIR_TESTS),
    Mutant("pairs: whole energy from each end", PAIRS, "energy += 0.5 * u", "energy += u", PAIR_TESTS),
    Mutant("pairs: neighbours of the list instead of those in range", PAIRS,
           "n += rr[n] < end_squared", "n += 1", PAIR_TESTS),
    Mutant("pairs: WCA cut at sigma", PAIRS, "task.end_squared *= WCA_END_SQUARED", "pass", PAIR_TESTS),
    Mutant("radial: WCA not shifted", RADIAL, "4.0 * a * (s * s - s) + a", "4.0 * a * (s * s - s)", PAIR_TESTS),
    Mutant("radial: spheres in one place are no number", RADIAL, "a * s / r if r > 0.0 else 0.0", "a * s / r", PAIR_TESTS),
    Mutant("external: stiffness of x for all axes", EXTERNAL,
           "g[c] - t.stiffness[c] * d[c]", "g[c] - t.stiffness[0] * d[c]", "tests/forces/test_external.py"),
    Mutant("external: center of the first bead for all", EXTERNAL,
           "0 if self.center.shape[0] == 1 else 3", "0", "tests/forces/test_external.py"),
    Mutant("external: field energy of the wrong sign", EXTERNAL, "- g[c] * x[c]", "+ g[c] * x[c]", "tests/forces/test_external.py"),
    Mutant("external: rows of numbers not in the order of places", FIELD_FACE,
           "np.atleast_2d(v)[order]", "np.atleast_2d(v)", "tests/forces/test_external.py"),
    Mutant("python: positions in the order of places", PYTHON,
           "&x[world.id[i], 0]", "&x[i, 0]", "tests/forces/test_python_force.py"),
    Mutant("python: forces in the order of places", PYTHON, "f[world.id[i], c]", "f[i, c]", "tests/forces/test_python_force.py"),
    Mutant("python: overwrites other forces", PYTHON, "world.f[3 * i + c] +=", "world.f[3 * i + c] =", "tests/forces/test_python_force.py"),
    Mutant("python: positions can be written", PYTHON, "positions.flags.writeable = False", "pass", "tests/forces/test_python_force.py"),
    Mutant("python: an interrupt stops half way", PYTHON,
           "                self.add(world)\n                PyErr_SetInterrupt()", "                raise", "tests/forces/test_python_force.py"),
    Mutant("python: an interrupt is swallowed", PYTHON,
           "                self.add(world)\n                PyErr_SetInterrupt()", "                self.add(world)", "tests/forces/test_python_force.py"),
    Mutant("pairs face: exclusions one way round only", PAIR_FACE,
           "np.concatenate([pairs, pairs[:, ::-1]])", "pairs", LISTS),
    Mutant("pairs face: reach of the largest balls of either group", PAIR_FACE,
           "radius[members.group != 2].max() + radius[members.group != 1].max()", "radius[members.group != 2].max()", LISTS),
    Mutant("pairs face: never acts on points", PAIR_FACE,
           "bool((row >= layout.n_cartesian).any())", "False", PAIR_TESTS),
    Mutant("last good state: nothing is put back", PROGRAM,
           "memcpy(self.kept[k].live, self.kept[k].copy", "memcpy(self.kept[k].copy, self.kept[k].live", GOOD),
    Mutant("last good state: the step number is not put back", PROGRAM,
           "        self.world.step = self.kept_step\n        self.world.positions += 1\n",
           "        self.world.positions += 1\n", GOOD),
    Mutant("last good state: forces of the faulty positions are taken for good", PROGRAM,
           "        self.world.step = self.kept_step\n        self.world.positions += 1\n",
           "        self.world.step = self.kept_step\n", GOOD),
    Mutant("last good state: no replay", PROGRAM,
           "while replay and target > self.kept_step:", "while False:", GOOD),
    Mutant("last good state: a copy outlives changes from outside", PROGRAM,
           '        """Say that somebody has written into the arrays of the state."""\n'
           "        self.world.positions += 1\n        self.kept_step = -1\n",
           '        """Say that somebody has written into the arrays of the state."""\n'
           "        self.world.positions += 1\n", GOOD),
    Mutant("last good state: what is not finite is good", PROGRAM, "return check == 0.0", "return True", GOOD),
    Mutant("last good state: copied once only", PROGRAM, "> max(\n            SIGNAL_INTERVAL", "> max(\n            1e9", GOOD),
    Mutant("last good state: what cannot be repeated is", CONTEXT,
           "self._program.recover(repeatable)", "self._program.recover(True)", GOOD),
    Mutant("last good state: the first force is named, not the strongest", CONTEXT,
           "if len(culprits) > 1:", "if False:", GOOD),
    Mutant("last good state: minimisation leaves its last attempt", "medyanpy/minimize.py",
           "r.program.restore()", "pass", GOOD),
    Mutant("work: heat and shadow work exchanged", "medyanpy/work.py",
           '"heat" if stage.kind == "O" else "shadow"', '"shadow" if stage.kind == "O" else "heat"', WORK),
    Mutant("work: kinetic energy is not noted", "medyanpy/_kernels/work.pyx", "self.last[0] = total", "pass", WORK),
    Mutant("work: potential energy at an intervention is not noted", "medyanpy/work.py",
           "self._kinetic[0], self._potential[0] = after", "self._kinetic[0] = after[0]", WORK),
    Mutant("work: changed velocities are shadow work", CONTEXT,
           "        with self.counted_as_protocol():\n            self._v[:] = v[self.layout.order]\n"
           "            self._admit_velocities()",
           "        self._v[:] = v[self.layout.order]\n        self._admit_velocities()", WORK),
    Mutant("work: not in checkpoints", CONTEXT,
           'self._meter.arrays()["work"][...] = arrays["work"]', "self._meter.start(*self._energies())", WORK),
    Mutant("virial: transposed", "medyanpy/_kernels/virial.pyx", "+= d[a] * f[b]", "+= d[b] * f[a]",
           "tests/forces/test_contract.py"),
    Mutant("virial: about a bead", CONTEXT,
           "out += np.outer(origin, np.asarray(force_sum.f_array).sum(axis=0))", "pass", "tests/forces/test_contract.py"),
    Mutant("Python force: torques replace others", PYTHON,
           "world.torque[3 * i + c] += torque[i, c]", "world.torque[3 * i + c] = torque[i, c]",
           "tests/forces/test_python_force.py"),
    Mutant("kick: torques are not cleared", KICK, "memset(world.torque, 0,", "memset(world.f, 0,",
           "tests/forces/test_python_force.py"),
    Mutant("sites: weights of the neighbouring entry", SITES,
           "add_scaled(t.weight[k], d, sum)", "add_scaled(t.weight[k - 1], d, sum)", CONTRACT),
    Mutant("sites: forces of the last evaluation stay", SITES,
           "    memset(t.f + 3 * first, 0, 3 * (last - first) * sizeof(double))", "    pass", CONTRACT),
    Mutant("sites: forces handed on without weights", SITES,
           "add_scaled(t.owner_weight[s], t.f", "add_scaled(1.0, t.f", CONTRACT),
    Mutant("sites: overwrite instead of add", SITES, "f[0] += sum[0]", "f[0] = sum[0]", CONTRACT),
    Mutant("sites: sums of a bead not in the order of sites", SITES,
           'order = np.argsort(owner_of, kind="stable")',
           "order = np.lexsort((-np.arange(len(owner_of)), owner_of))", LINK_TESTS),
    Mutant("sites: arms turned backwards", SITES,
           "_turn(q[0], q + 1, t.arm", "_turn(-q[0], q + 1, t.arm", SITE_TESTS),
    Mutant("sites: torque in space instead of the body", SITES, "back[c] = -q[1 + c]", "back[c] = 0.0", SITE_TESTS),
    Mutant("sites: torques overwrite", SITES, "torque[c] += sum[c]", "torque[c] = sum[c]", SITE_TESTS),
    Mutant("sites: a bead of both sites gives its own block once", SITES, "c *= 2.0", "pass", LINK_TESTS),
    Mutant("sites: third derivative of both ends alike", SITES,
           "return -self.rows.weight[s]", "return self.rows.weight[s]", CONTRACT),
    Mutant("sites face: weights that miss their sum", SITES_FACE,
           "weights[self._start[:-1][has_beads]] = 1.0 - others",
           "weights[self._start[:-1][has_beads]] = self._weights[self._start[:-1][has_beads]]", SITE_TESTS),
    Mutant("sites face: anchors not chosen along", SITES_FACE,
           "self._anchors[rank[chosen[counts[chosen] == 0]]]",
           "self._anchors[: int((counts[chosen] == 0).sum())]", SITE_TESTS),
    Mutant("sites face: any sum of weights", SITES_FACE,
           "_SUM_TOLERANCE * size", "_SUM_TOLERANCE * size + 1.0", SITE_TESTS),
    Mutant("links: ropes push", RADIAL, "(kind == ROPE and s < 0.0)", "False", LINK_TESTS),
    Mutant("links: a rope without length has no stiffness at rest", RADIAL,
           "(kind == ROPE and s < 0.0)", "(kind == ROPE and s <= 0.0)", LINK_TESTS),
    Mutant("links: numbers used twice", LINKS,
           "ids = np.arange(self._next_id, self._next_id + m)", "ids = np.arange(len(self), len(self) + m)", LINK_TESTS),
    Mutant("links: new links come first", LINKS,
           "self._a + new_a, self._b + new_b, numbers", "new_a + self._a, new_b + self._b, numbers", LINK_TESTS),
    Mutant("links: contexts do not notice", LINKS,
           "        self._numbers = self._checked(**numbers)\n        self._version += 1",
           "        self._numbers = self._checked(**numbers)", LINK_TESTS),
    Mutant("links: the other end moves", LINKS,
           "(self._a + new_a)[order], (self._b + new_b)[order]", "(self._a + new_b)[order], (self._b + new_a)[order]",
           LINK_TESTS),
    Mutant("links: topologies of contexts are not known", LINKS,
           "self._topologies.add(layout.topology)", "pass", LINK_TESTS),
    Mutant("links: an anchor keeps the momentum", LINKS,
           "len(self._a.anchor_positions) or len(self._b.anchor_positions)", "len(self._a.anchor_positions)", LINK_TESTS),
    Mutant("derivatives: bonds from both ends", BONDS,
           "if fault == 0 and self.owner[k] < self.other[s]:", "if fault == 0:", CONTRACT),
    Mutant("derivatives: no part across", RADIAL, "out[4 * i] += across", "pass", CONTRACT),
    Mutant("derivatives: third without its part across", RADIAL, "2.0 * s * (a[c] - s * n[c])", "0.0", CONTRACT),
    Mutant("derivatives: third without its part along", RADIAL, "u[3] * s * s * n[c] + bend", "bend", CONTRACT),
    Mutant("derivatives: pairs from both ends", PAIRS,
           "        if near.row[own] > near.row[other]:\n            return -1.0", "        pass", CONTRACT),
    Mutant("derivatives: pairs out of range count", PAIRS,
           "if r >= p[1] * p[1] * (WCA_END_SQUARED if self.kind == WCA else 1.0):", "if False:", PAIR_TESTS),
    Mutant("derivatives: pairs in the order of slots", NEIGHBORS,
           "near.slot_of[near.member[s]] = <int32_t> s\n            near.row_of[near.member[s]] = row",
           "near.slot_of[s] = <int32_t> s\n            near.row_of[s] = row", PAIR_TESTS),
    Mutant("derivatives: stiffness of x for all axes of a trap", EXTERNAL,
           "block[4 * c] = self.stiffness[c]", "block[4 * c] = self.stiffness[0]", CONTRACT),
    Mutant("pairs: sites not handed on", PAIRS, "        return self.sites.scatter(world)", "        return 0", CONTRACT),
    Mutant("pairs face: sites of two groups in one", PAIR_FACE,
           "np.array([3 if same else 1, 2], np.int32)", "np.array([3, 2], np.int32)", CONTRACT),
    Mutant("pairs face: a bead as two sites", PAIR_FACE, "        if len(twice):", "        if False:", PAIR_TESTS),
    Mutant("filament joints: the part along the link", JOINTS,
           "before * (w + e * chain.u[c][k - 1])", "before * w", CONTRACT),
    Mutant("filament joints: the lengths of the two links exchanged", JOINTS,
           "before = chain.slope[k] * chain.inverse[k - 1]", "before = chain.slope[k] * chain.inverse[k]", CONTRACT),
    Mutant("filament joints: links without length", JOINTS,
           "inverse = inverse if square > 0.0 else 0.0", "inverse = inverse", FILAMENT_FORCE_TESTS),
    Mutant("filament joints: rows that repeat nodes push too", JOINTS,
           "        if rows.owned[row]:", "        if True:", CONTRACT),
    Mutant("filament joints: the end of a batch", JOINTS,
           "    for k in range(n + 3):\n        square", "    for k in range(n + 2):\n        square", FILAMENT_FORCE_TESTS),
    Mutant("filament bending: rest angles the other way", FILAMENT_BENDING,
           "slope += bent[k]", "slope -= bent[k]", CONTRACT),
    Mutant("filament bending: straight joints with rest angles", FILAMENT_BENDING,
           "/ sine if sine > 0.0 else 0.0", "/ sine", FILAMENT_FORCE_TESTS),
    Mutant("filament bending: rows that repeat nodes have energy", FILAMENT_BENDING,
           "                if t.rows.owned[start - 2 + k]:", "                if True:", CONTRACT),
    Mutant("fixman: a ring as if it were open", FIXMAN,
           "f = -q[0] * cosine[0] if t.closed else 0.0", "f = 0.0", CONTRACT),
    Mutant("fixman: fill of the bordered row", FIXMAN, "f = -f * a[j]", "f = f * a[j]", CONTRACT),
    Mutant("fixman: the inverse without the border", FIXMAN,
           "beside = -a[j] * diagonal - h[j] * across", "beside = -a[j] * diagonal", CONTRACT),
    Mutant("fixman: half the force", FIXMAN,
           "cosine[j + 1] = -t.kT * q[j + 1] * beside", "cosine[j + 1] = -0.5 * t.kT * q[j + 1] * beside", CONTRACT),
    Mutant("fixman: singular metrics go on", FIXMAN,
           "if not (lowest > 0.0 and p_last > 0.0):", "if False:", FILAMENT_FORCE_TESTS),
    Mutant("fixman: the joint before a ring's first node", FIXMAN,
           "            cosine[-1] = cosine[last_link]\n", "", CONTRACT),
    Mutant("filament forces: mass of fixed nodes", FILAMENT_FORCES,
           "np.where(handle.fixed_beads, 0.0, 1.0 / handle.mass)", "1.0 / handle.mass", CONTRACT),
    Mutant("filament forces: the first joint of a ring", FILAMENT_FORCES,
           "np.where(first, filaments.starts[which + 1], joints) - 1, joints", "joints - 1, joints", CONTRACT),
    Mutant("filament forces: modulus by the link after", FILAMENT_FORCES,
           "0.5 * (handle.link_lengths[before] + handle.link_lengths[after])", "handle.link_lengths[after]", CONTRACT),
    Mutant("filament forces: stretching not by length", FILAMENT_FORCES,
           'self._numbers["stretching_modulus"] / length', 'self._numbers["stretching_modulus"]', CONTRACT),
    Mutant("filaments: segments of one filament are not done together", CONSTRAINTS,
           "        if b.next[0] > 0:\n", "        if False:\n", SOLVES),
    Mutant("filaments: the same, seen in lengths along a run", CONSTRAINTS,
           "        if b.next[0] > 0:\n", "        if b.next[0] > 8:\n", FILAMENT_LAWS),
    Mutant("filaments: lanes that are done go on", CONSTRAINTS,
           "_of(&active)[k] = 0.0", "pass", SOLVES),
    Mutant("filaments: any tolerance is one", CONSTRAINTS,
           "if worst <= tolerance * tolerance:", "if worst <= 1e-20:", SOLVES),
    Mutant("filaments: neighbours of a lane act backwards only", CONSTRAINTS,
           "b.left[i] * t + b.right[i] * u", "b.left[i] * t", SOLVES),
    Mutant("filaments: ends of lanes solved for without what follows", CONSTRAINTS,
           "a[i][j] += _of(b.right + e * last)[k]", "a[i][j] += 0.0", SOLVES),
    Mutant("filaments: padding answers to nothing", CONSTRAINTS,
           "b.upper[b.m - 1] - (1.0 - b.real[b.m - 1])", "b.upper[b.m - 1]", SOLVES),
    Mutant("filaments: directions of the lane before forgotten", CONSTRAINTS,
           "_of(b.d + c - 3)[b.next[k]] = _of(b.d + 3 * b.count[k] - 3 + c)[k]", "pass", SOLVES),
    Mutant("filaments: mass of the first node of a link for both", CONSTRAINTS,
           "(b.w[at] + b.w[at + 1]) * dot", "(b.w[at] + b.w[at]) * dot", SOLVES),
    Mutant("filaments: links before the flight taken from after it", CONSTRAINTS,
           "b.real[at] * (t.h * r)", "b.real[at] * (0.0 * r)", SOLVES),
    Mutant("filaments: impulses of the flight do not change velocities", CONSTRAINTS,
           "b.v[3 * at + c] - p * (1.0 / t.h)", "b.v[3 * at + c] - p * (0.0 / t.h)", SOLVES),
    Mutant("filaments: the same, seen in time reversal and energy", CONSTRAINTS,
           "b.v[3 * at + c] - p * (1.0 / t.h)", "b.v[3 * at + c] - p * (0.9 / t.h)", FILAMENT_LAWS),
    Mutant("filaments: velocities not tangent after a flight", CONSTRAINTS,
           "        if t.action == SETTLE:\n            continue",
           "        if t.action == SETTLE or t.action == FLIGHT:\n            continue", SOLVES),
    Mutant("filaments: shared nodes moved by both lanes", CONSTRAINTS,
           "if b.owned[LANES * at + k]:\n                            world.x",
           "if b.node[LANES * at + k] >= 0:\n                            world.x", SOLVES),
    Mutant("filaments: normal noise too weak", CONSTRAINTS, "sqrt(t.kT *", "sqrt(0.8 * t.kT *", SOLVES),
    Mutant("filaments: noise projected instead of velocities", CONSTRAINTS,
           "u = b.noise if t.action == NORMAL else b.v", "u = b.noise", SOLVES),
    Mutant("filaments: normal noise of the letter before", CONSTRAINTS,
           "world.step, t.letter, 0", "world.step, 0, 0", SOLVES),
    Mutant("filaments: normal noise of every step alike", CONSTRAINTS,
           "world.seed, world.step,", "world.seed, 0,", SOLVES),
    Mutant("filaments: normal noise is that of O", CONSTRAINTS,
           "t.letter, 0, CONSTRAINTS,", "t.letter, 0, 1,", SOLVES),
    Mutant("filaments: normal noise shared by lanes", CONSTRAINTS,
           "ids[i] = world.id[place] if place >= 0 else 0", "ids[i] = world.id[i // 8]", SOLVES),
    Mutant("filaments: another filament is named", CONSTRAINTS,
           "record_fault(world, NOT_CONVERGED, b.node[failed - 1], -1)",
           "record_fault(world, NOT_CONVERGED, b.node[0], -1)", FILAMENT_LAWS),
    Mutant("filaments: what does not converge passes", CONSTRAINTS,
           "            if failed > 0:\n", "            if False:\n", FILAMENT_LAWS),
    Mutant("filaments: the residual of another filament is told", CONSTRAINTS,
           "world.fault.value = table.residual[i]", "world.fault.value = table.residual[self.batches - 1]", FILAMENT_LAWS),
    Mutant("filament flow: no normal part before O", FILAMENT_FLOW,
           'if stage.kind == "O" and self._solve:', "if False:", SOLVES),
    Mutant("filament flow: B leaves velocities as they are", FILAMENT_FLOW,
           'if stage.kind in "BO" else ()', 'if stage.kind in "O" else ()', FILAMENT_LAWS),
    Mutant("filament flow: positions do not settle", FILAMENT_FLOW,
           'return (self._solve(action="settle", h=0.0, kT=0.0, letter=0),) if self._solve else ()', "return ()",
           FILAMENT_LAWS),
    Mutant("filament flow: lengths of the first segment for all", FILAMENT_FLOW,
           "lengths[link_starts[i] + a :][:n]", "lengths[link_starts[i] :][:n]", SOLVES),
    Mutant("filament flow: long rings are chains", FILAMENT_FLOW,
           "goes_on = filaments.closed or (b < n_long", "goes_on = (filaments.closed and b >= n_long) or (b < n_long", SOLVES),
    Mutant("filament flow: the first node of a ring is moved twice", FILAMENT_FLOW,
           "owned[row[b] + n, k] = 0", "owned[row[b] + n, k] = int(b >= n_long)", SOLVES),
]


def run(*command, cwd, **options):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, **options)


def build(tree, target):
    result = run(
        sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--upgrade",
        # One instruction set: a mutant is the same in all.
        f"-Cbuild-dir={tree.parent / 'build'}", "-Csetup-args=-Disa=baseline", "--target", str(target), ".", cwd=tree,
    )
    if result.returncode:
        raise RuntimeError(result.stdout + result.stderr)


def failure(tree, target, tests):
    """What pytest says where tests fail, else nothing."""
    result = run(
        sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-o",
        "addopts=--import-mode=importlib --strict-markers", *tests.split(),
        cwd=tree.parent / "tests", env={**__import__("os").environ, "PYTHONPATH": str(target)}, timeout=900,
    )
    if result.returncode not in (0, 1):
        raise RuntimeError(f"pytest did not run:\n{result.stdout}{result.stderr}")
    return result.stdout if result.returncode else ""


def main():
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(w in m.what for w in words)]
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        tree, target = Path(folder) / "tree", Path(folder) / "installed"
        ignore = shutil.ignore_patterns(".git", "build", "__pycache__")
        shutil.copytree(ROOT, tree, ignore=ignore)
        # Tests run from a copy of their own, so that the source folder cannot shadow the mutant.
        shutil.copytree(ROOT / "tests", Path(folder) / "tests" / "tests", ignore=ignore)
        shutil.copy(ROOT / "pyproject.toml", Path(folder) / "tests")
        build(tree, target)
        for test in sorted({m.tests for m in chosen}):
            said = failure(tree, target, test)
            if said:
                raise SystemExit(f"{said}\n{test} fails without any mutant")
        for mutant in chosen:
            path = tree / mutant.file
            text = path.read_text()
            if text.count(mutant.old) != 1:
                raise SystemExit(f"{mutant.what}: its text occurs {text.count(mutant.old)} times in {mutant.file}")
            path.write_text(text.replace(mutant.old, mutant.new))
            try:
                build(tree, target)
                caught = bool(failure(tree, target, mutant.tests))
            finally:
                path.write_text(text)
            print(f"{'caught  ' if caught else 'SURVIVED'} {mutant.what}", flush=True)
            if not caught:
                survivors.append(mutant.what)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants caught")
    raise SystemExit(1 if survivors else 0)


if __name__ == "__main__":
    main()
