"""Break the program on purpose, and see that the tests fail.

    python tests/mutants.py [WORD ...]                   one mutant for every law of docs/validation.md
    python tests/mutants.py --generated 100 --seed 1     mutants made from the syntax
    python tests/mutants.py --list [WORD ...]            what would be run; nothing is built
    python tests/mutants.py ... --skip N                 goes on after the first N of either

A mutant is one edit of one file. The tree is copied and built once (baseline alone: a mutant is the same in all
instruction sets); an edit of Python then costs no build, and one of a kernel that of the modules it is part of. Those
that the tests pass are listed as survivors, and the exit code is 1; so it is where the mutant of a law cannot be built.

Laws are broken one by one, and tested by what their row in docs/validation.md names. Words choose them by what their
names contain. A row without a mutant, and an edit that finds its place no longer, fail the command: the list is mended
when it is run.

Generated mutants are drawn with a seed: the file by its lines of code, then a rule, then a place. They meet at most a
minute (of processor time) of the tests that name what they break, most specific first. Needs the build tools of
pyproject.toml in the running environment (meson-python, cython, ninja) beside the `test` extra.
"""

import argparse
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import tokenize
from functools import cache
from itertools import islice
from pathlib import Path

from mutations import MINUTE, ROOT, Mutant, generated, lines_of, tokens_of

# Laws ---------------------------------------------------------------------------------------------------------------

# A part of the law as docs/validation.md has it; file and function; what is replaced there by what, whatever the layout.
LAWS = [
    ("every component of the force", "_kernels/forces/bonds.pyx", "_bonds", "f[0] += row[0]", "f[0] = row[0]"),
    ("second and third derivatives where", "_kernels/forces/radial.pxd", "third", "2.0 * s * (a[c] - s * n[c])", "0.0"),
    ("second and third derivatives of membrane bending", "_kernels/beads/membrane.pxd", "facet_of", "out.length[2] += 0.5 * out.length[0] * dot(out.n + 3, out.n + 3)", "pass"),
    ("stiffnesses of areas of triangles", "_kernels/forces/membrane_totals.pyx", "_along", "add_scaled(held, part, row + 3 * i)", "pass"),
    ("second and third derivatives of twist", "_kernels/forces/filament_twisting.pyx", "higher", "0.5 * _scalar(g + 12, z) * g[c]", "0.0"),
    ("products with the stiffness of a bending membrane", "_kernels/forces/bending.pxd", "weights", "u[1] = -u[0] * (0.5 * area[1] / area[0])", "u[1] = 0.0"),
    ("independent reference that rotates", "_kernels/beads/flight.pxd", "fly", "rate[0] = -rate_i * sqrt(nn / nn_new)", "rate[0] = -rate_i"),
    ("kinetic energy, the momentum and angular", "_kernels/beads/flight.pxd", "_recoil", "sums[3 * <Py_ssize_t> corner[1] + c] += second", "sums[3 * <Py_ssize_t> corner[2] + c] += second"),
    ("G is reversible", "_kernels/beads/flight.pxd", "fly", "rest = max(rest - tau, 0.0)", "rest = rest"),
    ("the recoil is minus", "_kernels/beads/flight.pxd", "fly", "_recoil(sums, pushes, corner, v, mass, rate[1] * rest, rate[2] * rest)", "pass"),
    ("straight lines and mirror images", "_kernels/beads/flight.pxd", "fly", "if (1.0 - weight[1]) - weight[2] < 0.0:", "if False:"),
    ("velocities stay in their planes", "_kernels/letters/drift.pyx", "_ride", "frame_of(&world.box, world.x, corners, &frame)", "frame_of(&world.box, t.before, corners, &frame)"),
    ("words without O retrace", "_kernels/letters/kick.pyx", "_kick_points", "project(&frame, u)", "pass"),
    ("retrace their path to 1e-9, of order 2", "_kernels/letters/geodesic.pyx", "_fly_one", "own[c] = t.sense * v[c]", "own[c] = v[c]"),
    ("one step of order 4 is the geodesic", "_kernels/letters/geodesic.pyx", "__init__", "self.task.sense = 1.0 if h >= 0.0 else -1.0", "self.task.sense = 1.0"),
    ("with points tied to both", "_kernels/letters/kick.pyx", "run", "task.chain = &self.forces.chain[0, 0]", "pass"),
    ("is velocity Verlet", "_kernels/letters/kick.pyx", "run", "if self.forces.count == 0 or self.evaluated == world.positions:", "if self.forces.count == 0 or self.evaluated > 0:"),
    ("lists of neighbours follow beads that come", "_kernels/core/neighbors.pyx", "is_same", "if x[c] != near.now[4 * slot + c]:", "if False:"),
    ("collisions are those of filaments that stay", "_kernels/forces/shapes.pxi", "_surround", "t.there[m] = PARKED", "pass"),
    ("have the bits of new lists", "_kernels/forces/shapes.pxi", "renew", "self.neighbors.hide(near.slot_of[m])", "pass"),
    ("cuts gain what the whole energy does", "_kernels/forces/fixman.pxi", "look", "first + self.task.nodes[term]", "first + 1"),
    ("in-triangle points without velocities", "core/letters.py", "_displace", "2.0 / stage.h", "1.0 / stage.h"),
    ("the same bits for any number", "_kernels/core/rows.pyx", "_find_row", "sort_short(near.id, out, n)", "pass"),
    ("killed at any moment and started again", "reporters/_table.py", "go_on", "self._marked = mark", "pass"),
    ("a run in a folder ends in time", "runs.py", "_was_done", "st_mtime_ns < newest", "st_mtime_ns <= 2 * newest"),
    ("a run in a folder ends in time", "runs.py", "_was_done", "if any(is_lock(name) for name in there):", "if False:"),
    ("many runs have the bits of each alone", "ensemble/replicas.py", "begun", "replica.seed", "replica.index[1]"),
    ("walkers that swap states", "ensemble/exchange.py", "enter", "math.sqrt(after / before)", "after / before"),
    ("after a fault the state", "_kernels/core/program.pyx", "restore", "memcpy(self.kept[k].live, self.kept[k].copy", "memcpy(self.kept[k].copy, self.kept[k].live"),
    ("a run that runs away ends", "_kernels/core/kinetic_watch.pyx", "make_limits", "2.0 * self.made_for / self.mass[i]", "9.0 * self.made_for / self.mass[i]"),
    ("the watch names the bead with the most", "_kernels/core/kinetic_watch.pyx", "blame", "if not energy <= largest and largest < INFINITY:", "if energy > 0.0 and largest < 0.0:"),
    ("bodies that spin away", "_kernels/core/kinetic_watch.pyx", "_of_rotation", "energy += 0.5 * w[c] * spin[c] * spin[c]", "pass"),
    ("is that of samples of neighbourhoods", "_kernels/core/neighbors.pyx", "near_pairs", "if s < row[k]:", "if s <= row[k] + 1:"),
    ("Perrin's closed forms", "rigid/ellipsoids.py", "_mobilities", "chi + alpha", "chi + 0.99 * alpha"),
    ("two proteins agree with those of GRPY", "_kernels/letters/mean_distances.pxi", "_mean_distance", "(3.0 - 15.0 * p.c * i2)", "(3.0 - 14.0 * p.c * i2)"),
    ("documents, pickles and copies", "files/documents.py", "described", 'tree["numbers"] = self._arguments(rest, name)', "pass"),
    ("a block M( ), accepted, is", "_kernels/letters/metropolis.pyx", "run", "self.state.put_back(True)", "self.state.put_back(False)"),
    ("constraints are not solved back", "_kernels/letters/metropolis.pyx", "run", "NO_FAULT if is_back else NOT_CONVERGED", "NO_FAULT"),
    ("energies and forces that are not finite, beads", "_kernels/letters/metropolis.pyx", "ends_the_run", "if fault in (NOT_FINITE, NOT_SOLVED, TOO_FAR, NO_GEODESIC, TOO_CURVED, TOO_WIDE):", "if False:"),
    ("under M( ) wells have the width", "_kernels/letters/metropolis.pyx", "is_drawn", "energy <= -self.kT * log_core(u)", "True"),
    ("blocks have no bias in the anharmonic well", "_kernels/letters/metropolis.pyx", "run", "(self.find_kinetic(world) - kinetic)", "0.0"),
    ("blocks have no bias of", "_kernels/letters/metropolis.pyx", "run", "self.potential = potential", "pass"),
    ("heat + shadow work", "engine/work.py", "after", "LETTERS[stage.kind].thermal and not self._overdamped", "not LETTERS[stage.kind].thermal"),
    ("forces on sites are the derivatives", "_kernels/core/sites.pxd", "where", "add_scaled(t.weight[k], d, sum)", "add_scaled(t.weight[k - 1], d, sum)"),
    ("energies of spheres as spheres", "_kernels/forces/ellipsoids.pyx", "_finish", "+= 0.5 * u", "+= u"),
    ("an ellipsoid in front of a wall", "_kernels/forces/walls.pyx", "_repel", "slope /= reach", "slope *= reach"),
    ("have to grow until they touch", "_kernels/forces/ellipsoid_contact.pxd", "touch_segment", "half_width(a, out.n) + R", "half_width(a, out.n) + 0.99 * R"),
    ("joined at sites, keep momentum", "_kernels/core/sites.pxd", "where", "rotate(q[0], q + 1, t.arm + 3 * i, d)", "rotate(-q[0], q + 1, t.arm + 3 * i, d)"),
    ("against a dense SHAKE/RATTLE", "_kernels/beads/constraints_rows.pxi", "_set_up", "(w + w_after) * dot", "(w + w) * dot"),
    ("links keep their lengths", "_kernels/beads/constraints.pxi", "_one_batch", "if t.action == SETTLE: return 0", "if t.action == SETTLE or t.action == FLIGHT: return 0"),
    ("angles between sites of every kind", "_kernels/forces/angles.pyx", "_angles", "else -1.0", "else 1.0"),
    ("angles to the normal of a membrane", "_kernels/forces/normal_links.pyx", "term", "self.pull_at(corner[i], -t.weight[i], along)", "pass"),
    ("friction of a cylinder across a membrane", "rigid/membranes.py", "transmembrane_friction", "- np.euler_gamma", ""),
    ("against differences with 60 digits", "_kernels/core/cosine.pxd", "slopes", "slope[2] = 3.0 * slope[1]", "slope[2] = slope[1]"),
    ("energies written as text", "_kernels/forces/fields.pyx", "", "[0, 1, 2, 1, 3, 4, 2, 4, 5]", "[0, 1, 2, 1, 4, 3, 2, 3, 5]"),
    ("friction along and across a filament damps", "_kernels/letters/thermostat.pyx", "_along", "a.along[2 * i + 1] - a.across[2 * i + 1]", "0.0"),
    ("great circles turned", "_kernels/beads/surface_constraints.pyx", "_chunks", "along[k] = w.multiplier[k] / t.h", "along[k] = 0.5 * w.multiplier[k] / t.h"),
    ("lengths of geodesics between beads", "_kernels/forces/along_surface.pyx", "_advance", "rule.w[i] * (1.0 - rule.s[i]) * q[MOST * c + i]", "rule.w[i] * rule.s[i] * q[MOST * c + i]"),
    ("forces along a surface are the gradient", "_kernels/forces/along_surface.pyx", "_keep", "pair.on_b[c] = -size * line.end[c]", "pair.on_b[c] = -size * line.start[c]"),
    ("nothing reaches along a surface", "_kernels/forces/along_surface.pyx", "_begin", "max(1.0 - 0.5 * curved, t.least_cosine)", "-2.0"),
    ("constraints of a user's own, solved jointly", "_kernels/beads/joint_constraints.pyx", "_newton", "_push(s, component, s.start, s.right, -1.0, s.x, turning, s.slot)", "_push(s, component, s.gradient, s.right, -1.0, s.x, turning, s.slot)"),
    ("rigid water, pendula and rotations", "_kernels/beads/joint_constraints.pyx", "_one_block", "_push(s, component, s.start, s.multiplier, -1.0 / t.h, s.v, 0.0, s.slot)", "pass"),
    ("constraints that depend on each other", "beads/constraint_rows.py", "", "INDEPENDENT = 1e-6", "INDEPENDENT = 0.0"),
    ("run backwards on surfaces", "_kernels/beads/surface_constraints.pyx", "_chunks", "_copy(3 * WIDTH, kept, d)", "_copy(3 * WIDTH, G, d)"),
    ("free rotation keeps", "_kernels/letters/rotation.pyx", "_rotate", "scale_to_unit(b.q[0][lane], b.q[1][lane], b.q[2][lane], b.q[3][lane])", "1.0"),
    ("Brownian bodies turn exactly", "_kernels/core/rotations.pxd", "turn", "s = scale_to_unit(w, x, y, z)", "s = 1.0"),
    ("forces and torques of elastic rods", "_kernels/forces/rods.pyx", "_strain", "arm = _cross(g, f)", "arm = _cross(f, g)"),
    ("follow the paths of independent programs", "_kernels/letters/implicit_kicks.pyx", "_into_band", "t.scale * block[3 * a + b]", "block[3 * a + b]"),
    ("conjugate gradients find kicks", "_kernels/letters/conjugate_gradients.pxi", "_go_down", "memset(a + 3 * first, 0, 3 * n * sizeof(double))", "pass"),
    ("waves of vesicles at ten times", "_kernels/letters/conjugate_gradients.pxi", "_into_rows", "w[3 * b + a] += scale * block[3 * a + b]", "w[3 * a + b] += scale * block[3 * a + b]"),
    ("rods at rest in any shape", "_kernels/forces/rods.pyx", "_strain", "turn = _beyond(m.v, rate, _of(&j.c[9][0], k))", "turn = _beyond(m.v, rate, _of(&j.c[6][0], k))"),
    ("cantilever, clamped column", "_kernels/forces/rods.pyx", "_middle", "b1 = 2.0 * (b1 - a1)", "b1 = 2.02 * (b1 - a1)"),
    ("harmonic modes of any frequency", "core/words.py", "weights_of", "(*half, 1.0 - 2.0 * sum(half), *half[::-1])", "(*half, half[0], *half[::-1])"),
    ("multipliers of links and surfaces", "beads/filaments.py", "multipliers", "weight = np.repeat(np.where(self.fixed_beads, 0.0, 1.0 / self.handle.mass), 3)", "weight = np.repeat(1.0 / self.handle.mass, 3)"),
    ("pendula by SHAKE", "forces/penalties.py", "bind", "self.pairs, (omega * omega, length)", "self.pairs, (omega, length)"),
    ("Philox gives the published", "_kernels/core/philox.pxd", "philox_rounds", "k0 + 9 * w0", "k0 + 8 * w0"),
    ("energy error of NVE words", "core/words.py", "parse_word", "1.0 / count[name]", '(1.02 if name[0] == "B" else 1.0) / count[name]'),
    ("errors of energy and of places fall", "engine/schedule.py", "_word", "word[-1][1].substep == letter.substep", "True"),
    ("order 4 has larger errors than order 2", "_kernels/forces/radial.pxd", "pull", "return a * s / r", "return 0.5 * a * s / r"),
    ("up to which order 4 is stable", "integrators.py", "longest_flight", "if self._order == 2 or longest == 0.0:", "if True:"),
    ("at crossings under a force", "_kernels/beads/flight.pxd", "fly", "rate_i * uE - rate[0] * uE_new", "rate_i * uE + rate[0] * uE_new"),
    ("at the edges of an octahedron", "_kernels/letters/thermostat.pyx", "_thermostat", "t.c2[i] * gz[k]", "1.05 * t.c2[i] * gz[k]"),
    ("membranes have the energies of closed form", "_kernels/forces/membrane_curvatures.pyx", "_value_of_face", "out += 0.25 * _turn", "out += 0.26 * _turn"),
    ("a vesicle of a given tension", "_kernels/forces/membrane_totals.pyx", "slope", "self.kt * (self.c - self.particles() / volume)", "self.kt * (self.c - 1.01 * self.particles() / volume)"),
    ("domains bud", "_kernels/forces/membrane_lines.pyx", "_border", "total += length if side == 1 else 0.0", "total += length"),
    ("bumps of a flat domain grow", "_kernels/forces/membrane_lines.pyx", "_border", "add_scaled(t.tension, pull", "add_scaled(0.97 * t.tension, pull"),
    ("a membrane round a sphere wraps", "_kernels/forces/membrane_adhesion.pyx", "_vertices", "area * t.strength[v], t.pull", "0.95 * area * t.strength[v], t.pull"),
    ("vertices that are fixed stay", "beads/membranes.py", "degrees_of_freedom", "~self._held", "self._held"),
    ("fields on a membrane written as text", "_kernels/forces/membrane_fields.pyx", "_written", "slope * (value[corners[2]] - value[corners[0]])", "slope * (value[corners[2]] - value[corners[1]])"),
    ("in the vertex form a crumpled star", "_kernels/forces/membrane_bending.pyx", "_respond_by_vectors", "dots(lines, g, g, gg)", "dots(lines, b, g, gg)"),
    ("a vesicle that crumples", "_kernels/forces/membrane_bending.pyx", "__init__", "self.projected = projected", "self.projected = True"),
    ("bending energy of a sphere", "_kernels/forces/membrane_bending.pyx", "_respond_by_vectors", "energy += 0.5 * share[0]", "energy += 1.5 * share[0]"),
    ("pairs in a Ricker well", "_kernels/forces/radial.pxd", "pull", "return 4.5 * r * q * (s - 1.0)", "return 4.5 * r * q * s"),
    ("pair energies that end", "_kernels/forces/radial.pxd", "fade", "s1 = -30.0 * w", "s1 = -24.0 * w"),
    ("distances from spheres and capsules", "_kernels/forces/walls.pyx", "_distance", "min(max(s, 0.0), 1.0)", "s"),
    ("TIP3P water", "presets/water.py", "charges", "np.array([-0.5, 1.0, -0.5])", "np.array([-0.5, 1.0, 0.5])"),
    ("areas and volumes of spheres", "mesh/shapes.py", "red_cell_half_thickness", "c0 + c2 * square", "c0 + 0.99 * c2 * square"),
    ("bending waves of a free rod have", "_kernels/forces/joints.pxd", "pull", "before * (w + e * chain.u[c][k - 1])", "before * w"),
    ("the energy of free flight are right", "_kernels/beads/surface_constraints.pyx", "_chunks", "_copy(3 * WIDTH, kept, d)", "pass"),
    ("Kirchhoff's rod against", "beads/chains.py", "shares_of_links", "0.5 * (link + np.roll(link, 1))", "link"),
    ("higher orders of rods", "_kernels/core/free_rotation.pxd", "turn_by_parts", "_turn(b, 2, h, small)", "_turn(b, 2, 0.99 * h, small)"),
    ("free rotation at once", "_kernels/core/free_rotation.pxd", "_fly", "d[1][lane] = s.h[lane] * (b.rate[0][lane] - b.rate[2][lane])", "d[1][lane] = s.h[lane] * (b.rate[1][lane] - b.rate[2][lane])"),
    ("against Euler's equations", "_kernels/core/free_rotation.pxd", "turn_by_parts", "_turn(b, 2, h, small)", "_turn(b, 2, 0.5 * h, small)"),
    ("energy of bodies tied to points", "_kernels/core/sites.pyx", "scatter", "if fault == 0 and self.rows.n_bodies > 0:", "if False:"),
    ("energy of a needle that bounces", "_kernels/forces/walls.pyx", "_repel", "(a[2] * a[2] - a[0] * a[0])", "(a[0] * a[0] - a[2] * a[2])"),
    ("energy of ellipsoids in a closed membrane", "_kernels/forces/ellipsoid_collisions.pyx", "_share", "torque[c] += q * pair[i].torque[c]", "torque[c] += pair[i].torque[c]"),
    ("the energy of a circle let go", "_kernels/forces/rods.pyx", "_strain", "rate = 0.125 / m.c", "rate = 0.12 / m.c"),
    ("geodesics over finer and finer", "_kernels/beads/flight.pxd", "fly", "rate_k = rate_k + (rate_i * uE - rate[0] * uE_new) / EE", "rate_k = rate_k + (rate_i * uE) / EE"),
    ("a free triangle with springs", "_kernels/beads/flight.pxd", "_recoil", "q =", "q = 1.15 * "),
    ("ideal points on a deforming closed mesh", "_kernels/letters/drift.pyx", "run", "if ride:", "if False:"),
    ("pressure of ideal points", "_kernels/letters/geodesic.pyx", "run", "t.scale = t.sense * scale_at(&t.groups, 0)", "t.scale = 0.9 * t.sense * scale_at(&t.groups, 0)"),
    ("from canonical starts", "_kernels/beads/flight.pxd", "fly", "rate[0] = -rate_i * sqrt(nn / nn_new)", "rate[0] = -0.98 * rate_i * sqrt(nn / nn_new)"),
    ("right to 1.5 %", "_kernels/letters/drift.pyx", "_ride", "v[c] = w1 * a[c] + w2 * b[c]", "v[c] = 1.01 * (w1 * a[c] + w2 * b[c])"),
    ("points on a frozen mesh are uniform", "_kernels/beads/flight.pxd", "fly", "-rate_i * sqrt(nn / nn_new)", "-rate_i"),
    ("x\\coth x", "_kernels/core/noise.pxd", "_normals", "world.seed, world.step, letter", "world.seed, 0, letter"),
    ("temperature after O exact", "_kernels/letters/thermostat.pyx", "_thermostat", "t.c2[i] * gx[k]", "0.9 * t.c2[i] * gx[k]"),
    ("averages of position under BAOAB", "core/flows.py", "ornstein_uhlenbeck", "np.exp(-exponent)", "1.0 - exponent"),
    ("asymmetric bodies with coupled friction", "_kernels/core/free_rotation.pxd", "turn_by_parts", "_turn(b, 2, h, small) _turn(b, 1, 0.5 * h, small)", "_turn(b, 1, 0.5 * h, small); _turn(b, 2, h, small)"),
    ("uniformly within triangles", "_kernels/beads/flight.pxd", "fly", "rest = max(rest - tau, 0.0)", "rest = 0.0"),
    ("velocities relax as", "core/flows.py", "ornstein_uhlenbeck", "np.exp(-exponent)", "np.exp(-0.5 * exponent)"),
    ("Zwanzig, Jarzynski", "engine/work.py", "intervene", "self._kinetic[0], self._potential[:] = after[0], (after[1], 0.0)", "self._kinetic[0] = after[0]"),
    ("a rigid trimer", "_kernels/beads/constraints.pxi", "_draw", "t.letter, CONSTRAINTS, 0, gx, gy, gz", "t.letter, CONSTRAINTS, 0, gx, gx, gz"),
    ("worm-like chains with", "_kernels/forces/fixman.pxi", "_slopes", "-t.kT * t.q[BLOCK * row + i] * inverse[i]", "-0.5 * t.kT * t.q[BLOCK * row + i] * inverse[i]"),
    ("chains of stiff springs", "_kernels/beads/constraints.pxi", "_one_batch", "p.noise if t.action == NORMAL else p.v", "p.noise"),
    ("constraints of a user's own with frictions", "beads/joint.py", "before_o", "if self._is_even and not self.mixed", "if True"),
    ("persistence lengths of sampled", "analysis/estimates.py", "jackknife", "np.sqrt((parts - 1) / parts *", "np.sqrt((parts - 1) / parts / 4.0 *"),
    ("Brownian motion: $6Dt$", "analysis/diffusion.py", "for_lag", "merged *= 2", "return merged"),
    ("ideal gases in a ball", "analysis/pairs.py", "_counted", "len(first) * len(second) - same", "len(first) * len(second)"),
    ("lifetimes of contacts that part", "analysis/pairs.py", "_lifetime", "-np.log1p(-gone) / dt", "gone / dt"),
    ("Clausius' theorem for a gas", "analysis/stress.py", "virial_stress", "kinetic -= (mass[rows] * v.T) @ v / size", "kinetic -= 0.5 * (mass[rows] * v.T) @ v / size"),
    ("averages of series that remember", "analysis/estimates.py", "mean_of", "share * values.var() / (1.0 - share)", "values.var() / len(values)"),
    ("mean-square displacements are those", "analysis/diffusion.py", "_paths", "(ids == ids[:1]).all()", "True"),
    ("pairs by distance, contacts and clusters", "analysis/pairs.py", "contact_counts", "near = near - groups.is_both[there]", "pass"),
    ("contacts begin and end as frame", "analysis/pairs.py", "contact_times", "found.append((*pair, began.pop(pair), k))", "found.append((*pair, began.pop(pair), k + 1))"),
    ("fields written as text act on images", "_kernels/forces/fields.pyx", "_load", "nearest_image(box, image)", "pass"),
    ("analyses in periodic boxes", "_tools/images.py", "images_between", "np.rint(d * inverse)", "np.floor(d * inverse)"),
    ("curvatures of membranes through", "analysis/surfaces.py", "curvatures", "of(self.x, self.faces, self.box)", "of(self.x, self.faces)"),
    ("a plane wave on a lattice of triangles", "_kernels/forces/membrane_bending.pyx", "_respond_by_vectors", "energy += 0.5 * share[0]", "energy += 0.25 * share[0]"),
    ("analysis finds that lengths of paths", "analysis/paths.py", "_searched", "order[ends]", "ends"),
    ("paths along a membrane rolled out", "_kernels/forces/mesh_pairs.pyx", "_turned", "z[1] = -(come[0] * go[1] - come[1] * go[0])", "z[1] = come[0] * go[1] - come[1] * go[0]"),
    ("diffusion on a sphere, rolled out", "analysis/rolling.py", "_developed", "places[k, which] = places[k - 1, which] + hops", "places[k, which] = hops"),
    ("a patch in its box, whose vertices", "analysis/spectra.py", "patch_spectrum", "0.25 * (cosines**2 + sines**2)", "0.5 * (cosines**2 + sines**2)"),
    ("waves of known amplitude on disordered", "analysis/spectra.py", "_fitted", "out = out + step * direction", "pass"),
    ("the work of a ramp is what", "reporters/ramp.py", "_act", "0.5 * (first + last)", "first"),
    ("errors of bending modulus and tension", "analysis/spectra.py", "fit_spectrum", "power[i:j].sum(axis=0) for i, j in blocks", "power[k::parts].sum(axis=0) for k in range(parts)"),
    ("Jarzynski's equality for a trap", "reporters/ramp.py", "_between", "(place - k) * (points[k + 1] - points[k])", "0.0 * place * (points[k + 1] - points[k])"),
    ("the virial stress turns with", "analysis/stress.py", "virial_stress", "-virial / size for name, virial in state", "-virial.T / size for name, virial in state"),
    ("Clausius' theorem at every moment", "analysis/stress.py", "_of_constraints", "values / one.share", "values"),
    ("torsional waves", "_kernels/forces/filament_twisting.pyx", "_angles", "slope = modulus[k] * angle if", "slope = 0.99 * modulus[k] * angle if"),
    ("torsional equipartition", "forces/filaments.py", "bind", "handle.link_lengths**2 / handle.directors.mass", "1e3 * handle.link_lengths**2 / handle.directors.mass"),
    ("constrained filaments keep their", "_kernels/letters/thermostat.pyx", "_along", "a.across[2 * i + 1] * g[c]", "0.9 * a.across[2 * i + 1] * g[c]"),
    ("Brownian motion on a sphere", "beads/surface_points.py", "after_b", 'self._make("tangent")', "()"),
    ("two beads in a well along a sphere", "_kernels/forces/along_surface.pyx", "_keep", "evaluate(t.kind, t.p, sqrt(line.square), 1, u)", "evaluate(t.kind, t.p, sqrt(line.chord_squared), 1, u)"),
    ("barometric heights", "surfaces/surface.py", "_hits", "keep[which] * normal.sum(axis=1) < np.linalg.norm(normal, axis=1)", "keep[which] < 0.5"),
    ("itself diffuse alike", "_kernels/beads/flight.pxd", "fly", "rate[0] = -rate_i * sqrt(nn / nn_new)", "rate[0] = -0.9 * rate_i * sqrt(nn / nn_new)"),
    ("one O of bodies", "_kernels/letters/rotation.pyx", "_stir", "c[PADDED * j + a] * p[j]", "c[PADDED * a + j] * p[j]"),
    ("means and covariances of all six", "beads/oriented.py", "_brownian", "np.linalg.cholesky(2.0 * step).T", "np.linalg.cholesky(2.0 * step)"),
    ("bodies like screws", "beads/oriented.py", "mean_drift", "skew = diffusion[:3, 3:].T - diffusion[:3, 3:]", "skew = diffusion[:3, 3:] - diffusion[:3, 3:].T"),
    ("proteins are read by the rules", "rigid/structures.py", "_add", "weight * mass / own", "weight"),
    ("elastic networks against matrices", "rigid/linkers.py", "fitted_linkers", "network.stiffness * s[which]", "0.99 * network.stiffness * s[which]"),
    ("copies of molecules are where", "rigid/molecules.py", "arguments", "body.center_of_mass - middle", "body.center_of_mass"),
    ("three ties to lipids hold bodies", "_kernels/core/sites.pyx", "_torques", "torque[c] += sum[c]", "torque[c] += 0.5 * sum[c]"),
    ("mobilities of many spheres", "_kernels/letters/images.pxi", "_add_images", "g = h * (2.0 / 3.0 * b2 - sum2)", "g = h * (2.0 / 3.0 * a2 - sum2)"),
    ("the divergence of the mobility", "_kernels/letters/mobility.pxi", "_set_near", "p.tt_d = -h[1]", "p.tt_d = -0.9 * h[1]"),
    ("one step of D and of O of bodies", "_kernels/letters/krylov.pxi", "lanczos_take", "d[k] = a.norm * value * z[k * m]", "d[k] = a.norm * value * z[k]"),
    ("equilibrium does not know of the fluid", "_kernels/letters/hydrodynamics.pyx", "move", "add_scaled(t.h * t.kT * lift, t.axes + 6, out)", "pass"),
    ("filaments in a fluid are mixed", "beads/filament_constraints.py", "before_o", "(self.mixed or not self._is_even)", "not self._is_even"),
    ("ellipsoids that sink onto a wall", "_kernels/forces/walls.pyx", "_repel", "reach += a[c] * n[c] * a[c] * n[c]", "reach += a[c] * n[c] * n[c]"),
    ("ellipsoids in a trap around a link", "_kernels/forces/ellipsoid_collisions.pyx", "_touch", "slope *= found.size", "slope *= 0.0"),
    ("ellipses in a plane", "_kernels/letters/brownian.pyx", "_displace_and_turn", "x[a] += moved[a]", "x[a] += d[a]"),
    ("equipartition of shear", "beads/oriented.py", "rows", "numbers[8:].reshape(6, 6) * free", "numbers[8:].reshape(6, 6)"),
    ("against the master equation", "_kernels/jumps/link_binding.pyx", "add_rates", "self.off_rate += self.task.rates[b]", "self.off_rate += 1.1 * self.task.rates[b]"),
    ("a pair of sites alone", "_kernels/jumps/link_binding.pyx", "off_rate_of", "exp_(rule.off_share * u)", "exp_(0.9 * rule.off_share * u)"),
    ("a pool of", "_kernels/jumps/link_binding.pyx", "share_of", "(<double> self.numbers[0]) / self.pool", "0.0"),
    ("that two jumps may bind", "_kernels/jumps/link_binding.pyx", "held_at", "_holding(s.row[i], s.end, s.held, s.partners)", "0"),
    ("exclusion of its own sites", "_kernels/jumps/link_binding.pyx", "is_crowded", "self.apart[k] == j or self.held_at(self.apart[k]) > (self.apart[k] == but)", "False"),
    ("waits for exponential times", "_kernels/jumps/link_binding.pyx", "act", "t += draw_exponential(u[0]) / total", "t = draw_exponential(u[0]) / total"),
    ("crosslinkers of two heads", "jumps/_heads.py", "_set_rates", "volume, closing = self.volume(kT)", "volume, closing = self.volume(2.0 * kT)"),
    ("motors: stall", "_kernels/jumps/heads.pyx", "set_walk", "self.rates[b, 0] * exp_(-fmin(b * e, LARGEST_EXPONENT))", "self.rates[b, 0] * exp_(-fmin(0.8 * b * e, LARGEST_EXPONENT))"),
    ("motors: stall", "_kernels/jumps/heads.pyx", "set_walk", "share / kT", "0.8 * share / kT"),
    ("motors: stall", "_kernels/jumps/heads.pyx", "set_walk", "0.5 * share * (1.0 - share)", "0.4 * share * (1.0 - share)"),
    ("motors: stall", "_kernels/jumps/heads.pyx", "stepped", "(-self.fuel if back else self.fuel)", "self.fuel"),
    ("motors: stall", "_kernels/jumps/heads.pyx", "walk_alone", "if self.is_full(next):", "if self.head[next] > 1:"),
    ("motors: stall", "_kernels/jumps/heads.pyx", "walk_alone", "self.task.walk.leaves and not back", "not back"),
    ("motors: stall", "jumps/motors.py", "_off_rate", "n * math.log1p(on / off)", "(n - 1) * math.log1p(on / off)"),
    ("motors: stall", "_kernels/jumps/heads.pyx", "velocity_at", "self.stall_force + load / self.alpha", "self.stall_force + load"),
    ("motors: stall", "_kernels/jumps/heads.pyx", "hold_by", "self.rate_at(world, i, self.other[i])", "pass"),
    ("motors: stall", "_kernels/jumps/link_binding.pyx", "_part_of", "t.held[i] <= 1", "True"),
    ("heads that slide", "_kernels/jumps/heads.pyx", "set_walk", "if e > 0.0:", "if True:"),
    ("heads that slide", "jumps/crosslinkers.py", "_sliding", "spacing**2", "(0.5 * spacing**2)"),
    ("places that several jumps hold", "jumps/_linking.py", "check_room", "(np.sum(held, axis=0) > room)", "(np.sum(held, axis=0) > room + 1)"),
    ("links and heads that are set by hand", "jumps/_heads.py", "_keep_known", "left.difference_update(same[:1])", "pass"),
    ("branches begin at", "_kernels/jumps/branching.pyx", "draw_direction", "self.angle[1] * cosine", "0.8 * self.angle[1] * cosine"),
    ("transitions of beads written as text", "_kernels/jumps/transitions.pyx", "thin", "u[0] * most < rate", "u[0] * most < 1.2 * rate"),
    ("states of links written as text", "_kernels/jumps/transitions.pyx", "attempt", "rate *= exp_(-min(gain / self.kT, 700.0))", "pass"),
    ("states of links written as text", "_kernels/jumps/transitions.pyx", "do", "self.given[4] = -gain", "pass"),
    ("states of links written as text", "_kernels/jumps/link_binding.pyx", "move", "self.state[to] = self.state[slot]", "pass"),
    ("100 filaments in dilute solution", "_kernels/jumps/heads.pyx", "share_of", "self.closing[2 - self.head[i if self.is_alone(i) else j]]", "self.closing[self.head[i if self.is_alone(i) else j] - 1]"),
    ("beads that activate branches", "_kernels/jumps/branching.pyx", "count", "max(self.close[p], 0)", "1"),
    ("transitions of links written as text", "_kernels/jumps/transitions.pyx", "attempt", "rate *= self.binding.share_of(i, j)", "pass"),
    ("joints of bodies, rods, vertices", "_kernels/beads/joint_constraints.pyx", "_one_block", "s.multiplier, -1.0 / t.h, s.v, 0.0, s.slot)", "s.multiplier, -0.9 / t.h, s.v, 0.0, s.slot)"),
    ("constraints on in-triangle points:", "_kernels/beads/joint_points.pxi", "_fly_component", "s.w[slot] * s.push[3 * slot + c]", "0.0 * s.push[3 * slot + c]"),
    ("points at constraints sample", "_kernels/beads/joint_system.pxi", "_pass_on", "add_scaled(s.weights[2 * k + 1],", "add_scaled(0.0 * s.weights[2 * k + 1],"),
    ("SO(2) to SO(5) and SE(3)", "_kernels/beads/joint_system.pxi", "_push", "factor * s.w[slot] * multiplier[row]", "factor * multiplier[row]"),
    ("a double pendulum of two lopsided bodies", "_kernels/beads/joint_system.pxi", "_push", "turning * s.w[slot] * multiplier[row]", "0.9 * turning * s.w[slot] * multiplier[row]"),
    ("multipliers of twistable filaments", "beads/constraint_rows.py", "solved", "rows.form.bends(places, rows.own, speeds) + np", "0.9 * rows.form.bends(places, rows.own, speeds) + np"),
    ("corrections at a kink", "tests/validation/kinks/kinks.py", "impulse", "(t - 0.5 * h)", "(t - 0.4 * h)"),
    ("weights of orders 4, 6 and 8", "core/words.py", "", "0.78451361047755726382", "0.78451361047755826382"),
    ("kicks beyond positions", "core/kick_flows.py", "__init__", "(gamma - 0.5)", "(gamma - 0.49)"),
    ("charges and all their images", "_kernels/forces/ewald.pyx", "_weight", "4.0 * t.splitting", "3.99 * t.splitting"),
    ("bodies as clusters", "rigid/bead_models.py", "friction_of_clusters", "(x - middles[body]) / length", "1.02 * (x - middles[body]) / length"),
    ("in a periodic box: Beenakker", "_kernels/letters/lattice.pxi", "_of_waves", "term / (2 * m - 1)", "term / (2 * m + 1)"),
    ("a pool inside of a vesicle", "_kernels/forces/membrane_totals.pyx", "particles", "n += self.counts[s]", "n = self.counts[s]"),
    ("growth by an averaged force", "_kernels/jumps/polymerization.pyx", "measure", "1.0 - exp_(-h / self.average)", "1.0 - exp_(-2.0 * h / self.average)"),
    ("caps hold", "_kernels/jumps/capping.pyx", "act", "on = self.on * self.pool", "on = 1.1 * self.on * self.pool"),
    ("states of subunits by age", "_kernels/jumps/ageing.pyx", "attempt", "u[0] * self.fastest < self.rates[state[0]]", "u[0] * self.fastest < 1.2 * self.rates[state[0]]"),
    ("a bead joined to a place on a link", "beads/joints.py", "place", "side.weights[:, k]", "side.weights[:, 0]"),
    ("a body that hangs in a field", "_kernels/letters/metropolis.pyx", "run", "(potential - self.potential) + (self", "0.5 * (potential - self.potential) + (self"),
    ("points held to a mesh by local corrections", "tests/validation/held/local_corrections.py", "drift", "back = (weight / self.M)", "back = (0.9 * weight / self.M)"),
    ("averaged tensions", "_kernels/jumps/link_binding.pyx", "_average", "(1.0 - t.passed) * slope", "1.1 * (1.0 - t.passed) * slope"),
    ("networks of a pool", "_kernels/jumps/networks.pyx", "propensity", "- c.minus[k]", "- 0.5 * c.minus[k]"),
    ("points of a membrane that react", "_kernels/jumps/point_reactions.pyx", "rate_of", "return r.rate * self.most * n if", "return 2.0 * r.rate * self.most * n if"),
    ("points of a membrane that react", "_kernels/jumps/point_reactions.pyx", "attempt", "if k >= n:", "if k >= min(n, 1):"),
    ("points of a membrane that react", "_kernels/jumps/point_reactions.pyx", "create", "self.kT / self.masses[species]", "self.kT"),
    ("points of a membrane that react", "_kernels/jumps/grounds.pyx", "beyond", "if not x * x + y * y < self.reach * self.reach:", "if world.opposite[3 * flat.face + i] < 0 or not x * x + y * y < self.reach * self.reach:"),
    ("cycles through several jumps", "jumps/_balance.py", "_log_activities", "logs - rows @ z", "0.0 * (logs - rows @ z)"),
    ("beads in space that react", "_kernels/jumps/grounds.pyx", "draw_line", "max(u[0], max(u[1], v[0]))", "1.0"),
    ("rigid bodies that react", "_kernels/jumps/grounds.pyx", "draw_turn", "out.spin[c] /= sqrt(rate[c])", "out.spin[c] *= 1.0"),
    ("beads that land", "_kernels/jumps/exchange.pyx", "attempt", "self.feet.low + u[0] * (self.feet.high - self.feet.low)", "0.5 * (self.feet.low + self.feet.high)"),
    ("bent filaments are cut faster", "_kernels/jumps/severing.pyx", "energy_of_joint", "&self.joint, 0.5 * self.rise", "&self.joint, self.rise"),
    ("rates of bent filaments at rest", "_kernels/jumps/annealing.pyx", "cut", "(asked - asked_before + joint) / self.kT", "(asked - asked_before) / self.kT"),
    ("room for links of filaments", "_kernels/beads/present.pyx", "list_rows", "self.slots[i, self.first[i] + k]", "self.slots[i, k]"),
    ("filaments that part and join", "_kernels/jumps/annealing.pyx", "rate_of", "rate *= 2.0 * exp_(", "rate *= 4.0 * exp_("),
    ("filaments that grow", "_kernels/jumps/polymerization.pyx", "attempt", "cdef double most = 1.0", "cdef double most = 0.9"),
    ("filaments that grow", "_kernels/jumps/polymerization.pyx", "attempt", "excess = energy / self.kT", "excess = energy / self.kT - 2.0 * log_((<double> then) / now)"),
    ("filaments that grow", "_kernels/jumps/polymerization.pyx", "attempt", "excess += self.log_joint(world, end, k, then) - self.log_joint(world, end, k, now)", "pass"),
    ("links at ends that split", "_kernels/jumps/polymerization.pyx", "change_chain", "self.ends.draw_velocities(world, one.filament, self.kT, draws)", "pass"),
    ("links at ends that split", "_kernels/jumps/polymerization.pyx", "draw_direction", "draw_two(draws, u)", "out[0] = draws.next; draws.next = 7; draw_two(draws, u); draws.next = <unsigned int> out[0]"),
    ("links at ends that split", "_kernels/jumps/polymerization.pyx", "log_split", "joint + self.log_chain(chain.first, chain.links, self.most)", "self.log_chain(chain.first, chain.links, self.most)"),
    ("links at ends that split", "_kernels/jumps/polymerization.pyx", "change_chain", "0.5 / chain.pivot if self.counts_chains() else 0.0", "0.0"),
    ("stall forces of actin", "_kernels/jumps/polymerization.pyx", "act", "on / each, draws", "1.02 * on / each, draws"),
    ("no heat at rest", "jumps/link_binding.py", "update", "(1.0 - share, share, 0.0, 0.0, 0.0)", "(0.0, share, 0.0, 0.0, 0.0)"),
    ("100 filaments that link", "jumps/_site_tables.py", "too_near", "2.0 * separation", "0.0"),
    ("rates follow lengths", "_kernels/jumps/link_binding.pyx", "try_pair", "if not x < factor * self.share_of(i, j) * there:", "if False:"),
    ("beads come and go", "topology.py", "_grow", "self._next_id += n", "self._next_id += 0"),
    ("points of one membrane", "_kernels/core/accumulate.pyx", "__cinit__", "if self.n_groups > 1:", "if False:"),
    ("inactive rows take no part", "_kernels/core/neighbors.pyx", "_find_living", "near.all_there = world.alive == NULL", "near.all_there = True"),
    ("creates and removes", "_kernels/core/capacity.pyx", "put_to_sleep", "self.settle(world, place)", "pass"),
    ("trajectories tell who is there", "files/series.py", "_segment_of", 'side="right"', 'side="left"'),
    ("edges that are flipped", "_kernels/core/triangles.pyx", "enter", "while s > self.rings.starts[vertex] and corners[s - 1] > corner:", "while False:"),
    ("its place in the square", "_kernels/core/changes.pyx", "carry", "p = dot(by_x, v)", "p = 1.01 * dot(by_x, v)"),
    ("what `difference` says", "_kernels/beads/membrane.pyx", "touch", "self.touch_vertex(quad.b - m.first_bead)", "pass"),
    ("edges that flip by themselves", "_kernels/jumps/edge_flips.pyx", "attempt", "if not u[0] < exp_(-gained):", "if not u[0] < exp_(-0.5 * gained):"),
    ("ideal points triangulations weigh", "_kernels/jumps/edge_flips.pyx", "attempt", "gained = (energy + kinetic) / self.kT", "gained = energy / self.kT"),
    ("guard against slivers", "_kernels/jumps/edge_flips.pyx", "is_in_shape", "for i in range(4):", "for i in range(2):"),
    ("exponential waiting times, the contract", "_kernels/beads/membrane.pyx", "mend", "self.area += flip.area", "self.area += 1.01 * flip.area"),
    ("flips have the same bits", "_kernels/core/triangles.pyx", "run", "if fault == 0 and self.triangles.n_faces > 0 and self.triangles.follow():", "if False:"),
    ("tether of edges", "_kernels/forces/membrane_edges.pyx", "wall", "slope[0] = u * (over * over + 1.0 / w)", "slope[0] = u * over * over"),
    ("at once, boxes that change", "_kernels/jumps/edge_flips.pyx", "act", "not self.fits(world)", "False"),
    ("at once, boxes that change", "_kernels/jumps/box_area.pyx", "attempt", "exponent -= n * log_", "exponent -= (n - 1.0) * log_"),
    ("at once, boxes that change", "_kernels/jumps/trial.pyx", "gain_below", "energy[0] += gained", "energy[0] += gained if k != 2 else 0.0"),
    ("do not fold onto each other", "_kernels/forces/membrane_folds.pyx", "of_flip", "(k == 1) == (i == 0)", "(k == 1) != (i == 0)"),
    ("do not fold onto each other", "jumps/edge_flips.py", "remarks", "if self._membrane in force.handles", "if True"),
    ("figures of the source texts", "tests/validation/figures/plates.py", "but", 'self.line.verdict != "CHECK"', "False"),
    ("distances along a membrane are", "_kernels/forces/mesh_pairs.pyx", "_bend", "if not (distance < s.range):", "if True:"),
    ("points that meet along a membrane: on", "_kernels/forces/mesh_pairs.pyx", "_pull", "tension * (1.0 - share)", "tension * share"),
    ("drives the weights of its points alone", "_kernels/forces/membrane_fields.pyx", "_corners", "-= to_grid(weight[i]", "+= to_grid(weight[i]"),
    ("energy of points that meet along", "_kernels/forces/mesh_pairs.pyx", "_before", "bend[c] = after[c] - tangent[c]", "bend[c] = 0.0"),
    ("pairs of points in a well along", "_kernels/forces/mesh_pairs.pyx", "_search", "s.targets[k].row, u[1])", "s.targets[k].row, 1.5 * u[1])"),
    ("curvature of a membrane is continuous over edges", "_kernels/forces/point_curvature.pyx", "_interpolate", "mu = near.eta / height if height > 0.0 else 0.5", "mu = 0.5"),
    ("directed points have on spheres and tubes", "_kernels/forces/point_curvature.pyx", "_missing_angle", "e + 3 * ((corner + 2) % 3)", "e + 3 * ((corner + 1) % 3)"),
    ("points that are curved have the density", "_kernels/forces/point_curvature.pyx", "_points", "field.slope[2 * k + i] = by_h * patch.slope[i]", "field.slope[2 * k + i] = 1.2 * by_h * patch.slope[i]"),
    ("points in a field on a membrane have", "_kernels/forces/membrane_fields.pyx", "_linear", "t.slope[2 * k + 1] = t.value[corners[2] - t.first] - u", "t.slope[2 * k + 1] = 0.5 * (t.value[corners[2] - t.first] - u)"),
    ("rates of replica exchange", "ensemble/exchange.py", "_exchange", "delta <= 0.0 or chance < math.exp(-delta)", "delta <= 0.0"),
    ("uncorrelated between uses", "_kernels/core/philox.pxd", "counter_word3", "(purpose & 0xFF) << 24", "(0 * purpose) << 24"),
    ("functions in expressions, real powers", "surfaces/graph.py", "_slope", "self.power(self._sech(a), 2)", "self._sech(a)"),
    ("choices in expressions have", "surfaces/graph.py", "_by_rules", "rest if kind == \"max\" else rest[::-1]", "rest"),
    ("SymPy expressions as texts", "surfaces/texts.py", "_write_piecewise", "in reversed(first)", "in first"),
    ("in a periodic box every force is", "_kernels/core/box.pxd", "nearest_image", "d[c] -= box.length[c]", "d[c] -= 0.999 * box.length[c]"),
    ("fluids and patches in boxes", "_kernels/core/neighbors.pyx", "_shift", "return -near.frame.length[c]", "return 0.0"),
    ("boxes at constant tension and pressure", "_kernels/jumps/box_area.pyx", "attempt", "exponent = (gained + kinetic", "exponent = (gained"),
    ("bonds written as text", "_kernels/forces/bonds.pyx", "_find", "t.others[t.q * j + p]", "t.others[p]"),
]  # fmt: skip


def law_rows(root: Path = ROOT) -> dict[str, list[str]]:
    """{law: its tests} of docs/validation.md."""
    rows = re.findall(r"^\| ([^|]+) \| ((?:`tests/[^`|]+`(?:, )?)+) \|$", (root / "docs" / "validation.md").read_text(), re.MULTILINE)
    return {law: re.findall(r"`([^`]+)`", tests) for law, tests in rows}


def law_mutants(root: Path = ROOT) -> tuple[list[tuple[Mutant, list[str]]], list[str]]:
    """All that apply with their tests, and what is wrong with the list."""
    found, wrong, rows = [], [], law_rows(root)
    for part, name, function, old, new in LAWS:
        file = name if name.startswith("tests/") else f"medyanpy/{name}"
        named = [law for law in rows if part in law]
        spots = matches((root / file).read_text(), function, old)
        if len(named) != 1:
            wrong.append(f"{part!r} is part of {len(named)} laws in docs/validation.md")
        elif len(spots) != 1:
            wrong.append(f"{part!r}: {old!r} is {len(spots)} times in {function or 'the module'} of {name}")
        else:
            found.append((Mutant(f"{part} ({name})", file, *spots[0], new), rows[named[0]]))
    broken = {law for law in rows for part, *_ in LAWS if part in law}
    return found, wrong + [f"no mutant breaks the law {law!r}" for law in rows if law not in broken]


def matches(text: str, function: str, old: str) -> list[tuple[int, int]]:
    """Where these tokens stand in a function, or outside of all ("")."""
    wanted = [token.text for token in tokens_of(old) if token.kind != tokenize.NEWLINE]
    tokens = [token for scope, line in lines_of(text) for token in line if (scope[-1:] or ("",))[0] == function]
    spans = (tokens[k : k + len(wanted)] for k in range(len(tokens)))
    return [(span[0].start, span[-1].end) for span in spans if [token.text for token in span] == wanted]


# Which tests --------------------------------------------------------------------------------------------------------


@cache
def words_of_tests(root: Path) -> dict[str, set[str]]:
    """{test file: the names in it and in its path}."""
    files = sorted(p for p in (root / "tests").rglob("test_*.py") if "benchmarks" not in p.parts)
    return {str(p.relative_to(root)): set(re.findall(r"[A-Za-z_]\w*", f"{p.read_text()} {p.stem[5:]}")) for p in files}


def pick_tests(mutant: Mutant, root: Path = ROOT, most: int = 6) -> list[str]:
    """Files of tests: that of the same name, and those that name what is broken or are in the folder of its name, the
    most specific first: a name counts by how few tests have it."""
    path = root / mutant.file
    weights = dict.fromkeys(mutant.scope, 3.0) | {path.stem: 3.0}
    if path.suffix == ".py":
        weights |= {s[0]: 1.0 for s, line in lines_of(path.read_text()) if s and s[0] not in weights and line}
    else:
        # Functions and classes of Python that use these kernels: selected.rods, or what they import from there.
        stems = {Path(kernel).stem for kernel in kernels_with(mutant.file, root)}
        weights |= dict.fromkeys(stems, 1.0)
        for file in (root / "medyanpy").rglob("*.py"):
            text = file.read_text()
            imported = re.findall(rf"_kernels\.\w+\.(?:{'|'.join(stems)}) import \(?([\w,\s]+)", text)
            chosen = re.findall(r"_kernels\.selected import \(?([\w,\s]+)", text)
            names = set(re.findall(r"\w+", " ".join(imported))) | set(re.findall(r"\w+", " ".join(chosen))) & stems
            for scope, line in lines_of(text) if names else ():
                if scope and {token.text for token in line} & names:
                    weights |= dict.fromkeys(scope, 1.0)
    words = words_of_tests(root)
    score = {file: 10.0 * (Path(file).stem == f"test_{path.stem}") for file in words}
    for name, weight in weights.items():
        named = [file for file, found in words.items() if name in found]
        for file in named:
            score[file] += weight / len(named)
    beside = [file for file in words if Path(file).parent.name == path.parent.name]
    for file in beside:
        score[file] += 2.0 / len(beside)
    ranked = sorted((file for file in score if score[file] > 0.0), key=lambda file: -score[file])
    module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return [f"--doctest-modules --pyargs {module}"] * (path.suffix == ".py") + ranked[:most]


def kernels_with(file: str, root: Path = ROOT) -> list[str]:
    """The kernels that a file of Cython is part of."""
    folder = root / "medyanpy" / "_kernels"
    places = {p.name: p.relative_to(root).as_posix() for p in folder.rglob("*.pyx")}
    texts = {p.name: p.read_text() for e in ("pyx", "pxd", "pxi") for p in folder.rglob(f"*.{e}")}
    part_of = {Path(file).name}
    while True:
        more = set(part_of)
        for name, text in texts.items():
            for part in part_of:
                stem, kind = part.rsplit(".", 1)
                if kind == "pxd" and (re.search(rf"_kernels\.\w+\.{stem} cimport", text) or name == f"{stem}.pyx"):
                    more.add(name)
                if kind == "pxi" and f'include "{part}"' in text:
                    more.add(name)
        if more == part_of:
            return sorted(places[name] for name in part_of if name.endswith(".pyx"))
        part_of = more


# Running ------------------------------------------------------------------------------------------------------------


def run(*command, cwd, **options):
    return subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, **options)


def judge(tests: list[str], package: Path, cwd: Path, seconds: int, without: tuple[str, ...] = ()) -> tuple[str, str]:
    """("caught", the test that failed), ("survived", "") or ("survived", "in this time"); `package` is the folder to
    import from. What crashes and what cannot be imported is caught."""
    ended = run(
        sys.executable, "-P", "-m", "pytest", "-x", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-m", "not long",
        "-o", "addopts=--import-mode=importlib --strict-markers",
        *(part for test in tests for part in (test.split() if test.startswith("--") else [test])),
        *(f"--deselect={test}" for test in without), cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(package), "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1",
             "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10)),
    )  # fmt: skip
    if ended.returncode == 0 or ended.returncode == 5:  # 5: no tests
        return "survived", ""
    if ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "survived", "in this time"
    failed = failed_tests(ended.stdout)
    return "caught", failed[0] if failed else f"exit code {ended.returncode}"


def failed_tests(summary: str) -> list[str]:
    """Their names in the summary of a run; names in brackets may have spaces."""
    return re.findall(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\](?= - |$))?)", summary, re.MULTILINE)


class Workshop:
    """A copy of the tree, built once and installed beside it."""

    def __init__(self, folder: Path, seconds: int) -> None:
        self.tree, self.installed, self.build = folder / "tree", folder / "installed", folder / "build"
        self.parts = self.build / "medyanpy" / "_kernels"
        self.seconds = seconds
        self.known: dict[str, bool] = {}
        shutil.copytree(ROOT, self.tree, ignore=shutil.ignore_patterns(".git", "build", "__pycache__"), dirs_exist_ok=True)
        if (ROOT.parent / "shared").exists() and not (folder / "shared").exists():
            (folder / "shared").symlink_to((ROOT.parent / "shared").resolve())
        # The C of an earlier run's mutants.
        self.left = self.build / "mutated.txt"
        for name in self.left.read_text().split() if self.left.exists() else ():
            (self.parts / name).unlink(missing_ok=True)
        made = run(
            sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--upgrade",
            f"-Cbuild-dir={self.build}", "-Csetup-args=-Disa=baseline", "--target", self.installed, ".", cwd=self.tree,
        )  # fmt: skip
        if made.returncode:
            raise SystemExit(made.stdout + made.stderr)

    def test(self, tests: list[str]) -> tuple[str, str]:
        """As `judge`, without tests that fail here anyway."""
        while True:
            without = tuple(test for test, good in self.known.items() if not good)
            verdict, by = judge(tests, self.installed, self.tree, self.seconds, without)
            if "::" not in by or self.known.get(by):
                return verdict, by
            self.undo()
            self.known[by] = judge([by], self.installed, self.tree, self.seconds)[0] == "survived"
            self.redo()

    def try_(self, mutant: Mutant, tests: list[str]) -> tuple[str, str]:
        """As `judge`, or ("not built", "")."""
        source, text = self.tree / mutant.file, (self.tree / mutant.file).read_text()
        if source.suffix == ".py":
            folder = self.tree if mutant.file.startswith("tests/") else self.installed
            changed = {folder / mutant.file: mutant.of(text).encode()}
        else:
            changed = self.compiled(source, mutant)
            if not changed:
                return "not built", ""
        originals = {path: path.read_bytes() for path in changed}

        def put(files):
            for path, content in files.items():
                path.unlink()  # a library that is in use keeps its own
                path.write_bytes(content)

        self.undo, self.redo = lambda: put(originals), lambda: put(changed)
        self.redo()
        try:
            return self.test(tests)
        finally:
            self.undo()

    def compiled(self, source: Path, mutant: Mutant) -> dict[Path, bytes]:
        """The modules that the mutant changes. Sources keep their times: only the C of the mutant is compiled anew."""
        kernels = [self.tree / kernel for kernel in kernels_with(mutant.file, self.tree)]
        commands = run("ninja", "-t", "commands", cwd=self.build).stdout.splitlines()
        words = shlex.split(next(line for line in commands if "translate.py" in line))
        at = next(k for k, word in enumerate(words) if word.endswith("translate.py"))
        head, options = words[: at + 1], words[at + 3 : words.index("--")]
        text, times = source.read_text(), source.stat()
        relative = [os.path.relpath(kernel, self.build) for kernel in kernels]
        with self.left.open("a") as file:
            print(*(f"{kernel.stem}.c" for kernel in kernels), file=file)
        folder = os.path.relpath(self.parts, self.build)

        def write(content):
            source.write_text(content)
            os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))

        write(mutant.of(text))
        for kernel in kernels:
            # That of the mutant before is newer than the source.
            (self.parts / f"{kernel.stem}.c").unlink(missing_ok=True)
        made = run(*head, folder, self.build / "mutant.d", *options, "--", *relative, cwd=self.build)
        # The source stays as the mutant has it: ninja translates a whole group again when the C of its first is new.
        good = made.returncode == 0 and run("ninja", cwd=self.build).returncode == 0
        write(text)
        if not good:
            return {}
        stems = {kernel.stem for kernel in kernels}
        # Variants lie in folders of their own where they are built, too; the others lie side by side there.
        built = {p.relative_to(self.parts): p for p in self.parts.rglob("*.so") if p.name.split(".")[0] in stems}
        places = {p.relative_to(self.installed / "medyanpy" / "_kernels"): p for p in self.installed.rglob("*.so")}
        modules = {
            place: built[key].read_bytes()
            for name, place in places.items()
            for key in (name, Path(name.name))
            if key in built
        }
        # What the compiler makes the same of is not a mutant.
        return {path: content for path, content in modules.items() if content != path.read_bytes()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="laws whose names contain one of these")
    parser.add_argument("--generated", type=int, metavar="N", help="so many generated mutants instead of laws")
    parser.add_argument("--seed", type=int, default=1, help="of the generated mutants (default: 1)")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="go on after the first N")
    parser.add_argument("--list", action="store_true", help="print the mutants, build nothing")
    parser.add_argument("--folder", type=Path, help="where to build, to be used again (default: a temporary one)")
    chosen = parser.parse_args()
    if chosen.generated is None:
        listed, wrong = law_mutants()
        listed = [(m, tests) for m, tests in listed if not chosen.words or any(w in m.name for w in chosen.words)]
        work, wanted, seconds = iter(listed), len(listed), 15 * MINUTE
    else:
        work, wanted, seconds = ((m, pick_tests(m)) for m in generated(chosen.seed)), chosen.generated, MINUTE
        wrong = []
    work, wanted = islice(work, chosen.skip, None), wanted - chosen.skip
    print("\n".join(wrong))
    if chosen.list:
        for mutant, tests in islice(work, wanted):
            print(mutant.name, "->", mutant.new, "|", *tests)
        raise SystemExit(1 if wrong else 0)
    count: dict[str, int] = {}
    survivors = []
    with tempfile.TemporaryDirectory() as temporary:
        workshop = Workshop((chosen.folder or Path(temporary)).resolve(), seconds)
        for mutant, tests in work:
            verdict, by = workshop.try_(mutant, tests)
            count[verdict] = count.get(verdict, 0) + 1
            print(f"{verdict:9s} {mutant.name} [{by}]", flush=True)
            if verdict == "survived":
                survivors.append((mutant, tests))
            if count.get("caught", 0) + count.get("survived", 0) == wanted:
                break
    print(", ".join(f"{n} {verdict}" for verdict, n in count.items()))
    for mutant, tests in survivors:
        print("SURVIVED", mutant.name, "->", mutant.new, "|", *tests)
    missed = chosen.generated is None and "not built" in count
    raise SystemExit(1 if survivors or wrong or missed else 0)


if __name__ == "__main__":
    main()
