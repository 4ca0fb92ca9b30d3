"""What once found each fault, in the normal run: a table of all, and those that are tests of their own here."""

import functools
import json
import random
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp

FORCES = mp.forces

#: Of every program that found faults, the tests that would find them again.
REPRODUCERS = {
    "anchors_at_one_place_are_one_site": [
        "test_reproducers.py::test_anchors_at_one_place_are_one_site_and_that_is_said",
    ],
    "bending_vector_form": ["test_crumples.py::test_a_vesicle_that_crumpled_does_not"],
    "bombs": [
        "test_hostile_neighbours.py::test_shapes_are_not_believed_before_what_is_stored_is_seen",
        "test_hostile_neighbours.py::test_towers_of_powers_are_refused_before_they_take_memory",
        "test_hostile_neighbours.py::test_a_zipped_structure_of_newlines_is_refused",
    ],
    "box_edge_longer_than_half": ["test_reproducers.py::test_a_sheet_in_a_small_box_is_not_torn"],
    "cif_that_is_empty": ["test_structure_files.py::test_files_that_hold_nothing"],
    "contains_in_a_box": [
        "test_everywhere_in_a_box.py::test_nothing_depends_on_images",
        "test_everywhere_in_a_box.py::test_meshes_of_several_parts_are_at_several_images",
    ],
    "ctrl_c": [
        "test_interrupts.py::test_a_signal_comes_when_all_have_reported",
        "test_interrupts.py::test_a_signal_while_files_are_created_comes_when_they_are_there",
        "test_full_disk.py::test_writes_that_fail_nevertheless_are_done_again",
    ],
    "ctrl_c_without_replay": ["test_one_user.py::test_an_interrupt_in_a_python_force_leaves_the_state_of_a_step"],
    "degenerate": [
        "test_reproducers.py::test_points_on_degenerate_meshes_are_never_lost",
        "test_reproducers.py::test_systems_without_extent_are_finite_or_refused",
        "test_reproducers.py::test_absurd_timesteps_end_with_finite_files",
    ],
    "directed_curvature_64_directions": [
        "test_point_curvature.py::test_the_mean_over_64_directions_is_as_good_as_its_docstring_says",
    ],
    "ens": ["test_run.py::test_kill_9_of_workers"],
    "ensemble_faults": [
        "test_run.py::test_kill_9_of_workers",
        "test_run.py::test_kill_9_of_workers_without_files",
    ],
    "exchange_beside_a_box": [
        "test_exchange_and_jumps.py::test_every_state_keeps_its_law",
        "test_exchange_and_jumps.py::test_weights_are_those_of_the_target",
    ],
    "exchange_beside_links": [
        "test_exchange_and_jumps.py::test_every_state_keeps_its_law",
        "test_exchange_and_jumps.py::test_weights_are_those_of_the_target",
    ],
    "expressions_raw": [
        "test_hostile_texts.py::test_thousands_of_terms_work",
        "test_hostile_texts.py::test_surfaces_of_many_terms_need_no_special_form",
        "test_hostile_texts.py::test_errors_are_short_and_name_the_place",
        "test_hostile_texts.py::test_ten_megabytes_are_refused_at_once",
    ],
    "field_in_a_box_that_changes": [
        "test_refused_changes.py::test_fields_that_do_not_repeat_with_the_box_are_warned_of",
    ],
    "field_of_a_container_at_its_centre": [
        "test_expressions.py::test_a_factor_of_0_beside_an_infinite_derivative_is_0",
    ],
    "first_call_swallowed": ["test_hostile_neighbours.py::test_errors_of_the_first_call_of_a_function_are_raised"],
    "full_disk": [
        "test_full_disk.py::test_frames_wait_in_memory_until_there_is_room",
        "test_full_disk.py::test_closing_on_a_full_disk_can_be_done_again",
    ],
    "full_disk_exit_code": ["test_hostile_neighbours.py::test_a_full_disk_is_a_failed_run"],
    "full_disk_sweep": ["test_full_disk.py::test_disks_of_any_size"],
    "fuzz_api": [
        "test_reproducers.py::test_calls_with_anything_are_errors_of_ours",
        "test_hostile_calls.py::test_other_things_that_are_not_meant",
    ],
    "fuzz_readers": ["test_hostile_mutations.py::test_mutated_files_are_read_or_refused"],
    "fuzz_structures": ["test_structure_files.py::test_mutated_files_are_read_or_refused"],
    "fuzz_worker": ["test_hostile_mutations.py::test_mutated_files_are_read_or_refused"],
    "gsd_of_names_beyond_ascii": ["test_readers.py::test_gsd_of_names_beyond_ascii"],
    "h5_in_the_classic_layout": ["test_missing_parts.py::test_copies_in_other_layouts_open"],
    "hostile_by_hand": [
        "test_hostile_files.py::test_members_that_are_no_plain_array_of_numbers_are_refused",
        "test_hostile_files.py::test_documents_with_absurd_shapes_are_refused",
        "test_hostile_files.py::test_documents_do_not_make_more_points_than_they_are_worth",
        "test_hostile_files.py::test_documents_of_nothing_take_no_memory",
        "test_hostile_files.py::test_meshes_of_nothing_take_no_memory",
        "test_hostile_texts.py::test_errors_are_short_and_name_the_place",
        "test_reproducers.py::test_names_in_a_document_are_not_run",
    ],
    "hostile_checkpoint": [
        "test_hostile_files.py::test_members_are_read_only_as_they_lie_there",
        "test_hostile_files.py::test_members_that_are_no_plain_array_of_numbers_are_refused",
        "test_hostile_files.py::test_a_state_that_none_can_be_is_refused_and_changes_nothing",
    ],
    "hydrodynamics_taken_away": [
        "test_interactions.py::test_friction_follows_the_fluid",
        "test_changes.py::test_everything_follows",
    ],
    "kill_at_creation": ["test_trajectory_files.py::test_a_kill_while_a_file_is_created"],
    "kill_drive": [
        "test_killed_runs.py::test_killed_runs_leave_the_files_of_undisturbed_ones",
        "test_trajectory_files.py::test_kills_while_files_are_created_resumed_and_rewound",
    ],
    "kill_mixed": ["test_killed_runs.py::test_killed_runs_leave_the_files_of_undisturbed_ones"],
    "kill_mixed_drive": ["test_killed_runs.py::test_killed_runs_leave_the_files_of_undisturbed_ones"],
    "kill_on_resume_loses_trajectory": ["test_trajectory_files.py::test_kill_while_a_run_resumes"],
    "kill_sim": ["test_killed_runs.py::test_killed_runs_leave_the_files_of_undisturbed_ones"],
    "lanczos_tolerance_soft_modes": ["test_steps.py::test_no_motion_has_another_temperature"],
    "last_constraint_taken_away": ["test_changes.py::test_everything_follows"],
    "last_rod_removed": ["test_changes.py::test_forces_without_beads_resume_from_a_checkpoint"],
    "link_longer_than_half_the_box": [
        "test_long_terms.py::test_terms_longer_than_half_of_the_box_are_refused",
    ],
    "links_in_a_box_restart": ["test_reproducers.py::test_links_in_a_box_that_changes_restart_with_the_same_bits"],
    "links_in_a_box_that_changes": ["test_reproducers.py::test_links_in_a_box_that_changes_are_drawn_from_their_list"],
    "links_lengths_in_box": ["test_everywhere_in_a_box.py::test_nothing_depends_on_images"],
    "metropolised_stuck_in_a_crumple": ["test_crumples.py::test_acceptance_does_not_end_in_a_crumple"],
    "mixed_system": [
        "test_bits.py::test_pairs_of_jumps",
        "test_work.py::test_the_parts_are_the_change_of_the_total_energy",
    ],
    "msd_while_the_box_is_scaled": [
        "test_everywhere_in_a_box.py::test_displacements_in_a_box_that_changes_are_refused_or_scaled",
    ],
    "obj_comment_that_ends_in_a_backslash": ["test_text_formats.py::test_files_that_hold_it_are_read_whole"],
    "off_with_a_fourth_coordinate": ["test_text_formats.py::test_files_that_hold_it_are_read_whole"],
    "off_with_fewer_faces_than_it_says": [
        "test_text_formats.py::test_files_that_do_not_hold_what_they_announce_are_refused_by_line",
    ],
    "one_context_two_threads": ["test_one_user.py::test_a_second_thread_is_refused_and_changes_nothing"],
    "overflow_in_outputs": ["test_not_finite.py::test_a_run_that_blows_up"],
    "pdb_byte_order_mark": ["test_structure_files.py::test_forms_of_files"],
    "pdb_end_of_chain_in_the_middle": ["test_structure_files.py::test_residues_behind_ter_are_of_the_protein"],
    "pdb_left_aligned_names": ["test_structure_files.py::test_elements_of_amino_acids_follow_from_names"],
    "pdb_ligand_in_its_own_chain": ["test_structure_files.py::test_ligands_wherever_they_are"],
    "pdb_model_by_its_number": ["test_structure_files.py::test_models_by_the_numbers_of_the_file"],
    "pdb_names_of_protonation": ["test_structure_files.py::test_names_of_force_fields_are_amino_acids"],
    "pdb_numbers_that_repeat": ["test_structure_files.py::test_copies_under_one_letter_are_molecules_of_their_own"],
    "pdb_two_kinds_in_one_place": ["test_structure_files.py::test_kinds_that_take_turns_in_one_place"],
    "planted_links_are_followed": [
        "test_hostile_neighbours.py::test_planted_links_keep_what_they_point_to",
        "test_hostile_neighbours.py::test_files_are_made_under_names_that_none_can_foresee",
        "test_hostile_neighbours.py::test_folders_of_replicas_are_not_followed_out_of_the_ensemble",
    ],
    "pressure_of_a_mesh_turned_inside_out": ["test_inside_out.py::test_forces_of_volumes_refuse_it"],
    "random_systems_bits": ["test_reproducers.py::test_random_systems_have_the_same_bits_however_they_are_run"],
    "raw_errors": [
        "test_hostile_neighbours.py::test_calls_that_once_raised_something_else",
        "test_hostile_neighbours.py::test_names_that_no_file_can_hold_are_refused_when_they_are_given",
        "test_hostile_neighbours.py::test_names_that_are_too_long_are_refused",
        "test_hostile_neighbours.py::test_a_damaged_file_fails_its_replica_by_name_and_no_other",
        "test_hostile_neighbours.py::test_results_of_any_size_are_columns_and_text_is_text",
    ],
    "recovery_with_work": [
        "test_one_user.py::test_a_run_that_blew_up_is_back_at_the_step_that_failed_also_where_work_is_measured",
    ],
    "reentrant_python_force": [
        "test_one_user.py::test_a_python_force_that_uses_its_own_context_is_refused",
        "test_one_user.py::test_numbers_set_inside_a_step_hold_from_the_next_call_of_step_on",
    ],
    "refused_ramp_stays": ["test_refused_changes.py::test_a_refused_change_leaves_nothing_behind"],
    "run_faults": [
        "test_hostile_neighbours.py::test_a_full_disk_is_a_failed_run",
        "test_killed_runs.py::test_the_command_killed_leaves_the_files_of_one_that_was_not",
    ],
    "second_writer": ["test_trajectory_files.py::test_a_second_writer_is_refused"],
    "sigint_random": ["test_interrupts.py::test_random_interrupts_cost_nothing"],
    "soak": [
        "test_bits.py::test_pairs_of_jumps",
        "test_work.py::test_the_parts_are_the_change_of_the_total_energy",
    ],
    "stl_of_several_solids_cut_short": [
        "test_text_formats.py::test_files_that_do_not_hold_what_they_announce_are_refused_by_line",
    ],
    "stl_without_its_last_line": [
        "test_text_formats.py::test_files_that_do_not_hold_what_they_announce_are_refused_by_line",
    ],
    "table_titles_with_quotes": ["test_state_data.py::test_titles_are_those_of_csv"],
    "twistable_filament_removed": ["test_changes.py::test_everything_follows"],
    "vesicle_162_runs_away": ["test_crumples.py::test_a_vesicle_that_crumpled_does_not"],
    "vtkhdf_after_an_edit": [
        "test_changes.py::test_a_run_with_all_changes_is_exported",
        "test_changes.py::test_vtkhdf_has_the_ids_of_segments_with_and_without_them",
    ],
    "zhang_skeel_first_choice_lost": ["test_stability.py::test_warning_where_heat_moves_stiff_links_too_far"],
}


@pytest.mark.slow
def test_every_reproducer_has_its_tests():
    """They are functions of files that pytest collects."""
    here = Path(__file__).parent
    names = {test.partition("::")[0] for tests in REPRODUCERS.values() for test in tests}
    there = {f"{path.name}::{name}" for path in here.parent.rglob("test_*.py") if path.name in names
             for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)}  # fmt: skip
    assert {test for tests in REPRODUCERS.values() for test in tests} - there == set()
    originals = here.parents[2] / "shared" / "research" / "findings" / "repro"
    if originals.is_dir():
        assert REPRODUCERS.keys() == {path.stem for path in originals.rglob("*.py")}


# Sites ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shift", "calls"), [(0.0, "each"), (0.0, "one"), (1e-3, "each")])
def test_anchors_at_one_place_are_one_site_and_that_is_said(shift, calls):
    """40 beads with an anchor and a jump each, bound with probability 1/2: at one place one of them is. Apart, their
    number is 20 with a standard deviation of 3.2, of which 5 (false alarms 6e-7) tell it from 1."""
    n, side = 40, 4.0
    topology = mp.Topology()
    beads = topology.add_beads(np.random.default_rng(1).uniform(0.0, side, (n, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology, box=(side, side, side))
    links = system.add_force(FORCES.Links([], [], stiffness=60.0, length=0.5))
    places = [[2.0 + shift * k, 2.0, 2.0] for k in range(n)]
    together = mp.Sites.anchors(places)
    jumps = [
        system.add_jump(
            mp.jumps.LinkBinding(
                links, mp.Sites.beads(beads)[k : k + 1],
                mp.Sites.anchors(places[k : k + 1]) if calls == "each" else together[k : k + 1],
                off_rate=30.0, dissociation_constant=1 / 64, name=f"j{k}", reach=12.0,
            )
        )
        for k in range(n)
    ]  # fmt: skip
    integrator = mp.SplittingIntegrator("JBAOABJ", 0.02, kT=1.0, seed=5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        context = mp.Context(system, integrator, threads=1)
    told = [str(w.message) for w in caught if w.category is mp.SitesWarning]
    assert len(told) == (shift == 0.0 and calls == "each")
    assert all("j0: it has an anchor at the same place as j1, j2, j3 and 36 more" in text for text in told)
    context.step(200)
    state = context.get_state(positions=True)
    bound = sum(len(state.jumps[jump.name]["links"]) for jump in jumps)
    assert bound == 1 if shift == 0.0 else abs(bound - 20) < 16


# A box that changes ---------------------------------------------------------------------------------------------------


def links_in_a_box(seed, off_rate, step, rate, threads=1):
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    beads = topology.add_beads(rng.uniform(0, 8.0, (40, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology, box=(8.0, 8.0, 8.0))
    links = system.add_force(FORCES.Links([], [], stiffness=20.0, length=0.8))
    system.add_jump(mp.jumps.LinkBinding(links, beads, off_rate=off_rate, on_rate=3.0 * off_rate))
    system.add_jump(mp.jumps.BoxArea(pressure=0.08, rate=rate, step=step))
    integrator = mp.SplittingIntegrator("JBAOABJ", 2e-3, kT=1.0, seed=seed)
    simulation = mp.Simulation(system, integrator, threads=threads)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=seed)
    return simulation


def test_links_in_a_box_that_changes_are_drawn_from_their_list():
    """Half of such runs ended in a segmentation fault within 600 steps."""
    for seed in range(1, 4):
        simulation = links_in_a_box(seed, off_rate=300.0, step=0.03, rate=300.0)
        simulation.step(2000)
        binding, box = simulation.context.get_state().counts.values()
        assert binding.accepted > 1000
        assert box.accepted > 200


@pytest.mark.parametrize("seed", range(1, 11))
def test_links_in_a_box_that_changes_restart_with_the_same_bits(seed, tmp_path):
    whole, cut = (links_in_a_box(seed, off_rate=100.0, step=0.01, rate=100.0) for _ in range(2))
    cut.step(23)
    cut.save_checkpoint(tmp_path / "run")
    again = mp.Simulation.resume(tmp_path / "run", threads=1)
    whole.step(40)
    for one in (cut, again):
        one.step(17)
        state, expected = (s.context.get_state(positions=True, velocities=True) for s in (one, whole))
        assert np.array_equal(state.positions, expected.positions)
        assert state.box == expected.box
        assert state.counts == expected.counts


def test_a_sheet_in_a_small_box_is_not_torn():
    mesh = mp.TriangleMesh.flat_sheet(4, 4, 1.0, periodic=True)
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0)
    system = system_with(topology, FORCES.MembraneEdgeSprings(sheet, 16.0, length=1.0),
                         FORCES.HarmonicTrap(sheet, (0, 0, 8.0), (0, 0, 0)), box=mesh.box)  # fmt: skip
    system.add_jump(mp.jumps.BoxArea(tension=1.0, rate=12.0, step=0.1))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.02, kT=1.0, seed=3), threads=1)
    refuses(mp.SimulationError, r"its edge to bead .* more than half of the box there", context.step, 120_000)
    state = context.get_state(positions=True)
    x, box = state.positions[:, :2], np.array(state.box[:2])
    d = x[np.roll(mesh.faces, -1, axis=1)] - x[mesh.faces]
    d -= box * np.rint(d / box)
    assert np.abs(d.sum(axis=1)).max() < 1e-9


# Degenerate geometry --------------------------------------------------------------------------------------------------


def bipyramid(n):
    """Two apexes of valence n."""
    angle = 2.0 * np.pi * np.arange(n) / n
    rim = np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    faces = [[i, (i + 1) % n, n] for i in range(n)] + [[(i + 1) % n, i, n + 1] for i in range(n)]
    return mp.TriangleMesh(np.vstack([rim, [[0.0, 0, 1], [0.0, 0, -1]]]), faces)


def needle(width, length):
    x = [[0.0, 0, 0], [width, 0, 0], [0, length, 0], [0, 0, width]]
    return mp.TriangleMesh(x, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])


#: Mesh, typical length of a step, greatest relative error of speeds; or what the run ends with.
DEGENERATE = {
    "needle": (lambda: needle(0.01, 10.0), 1.0, 1e-9),
    "needle too thin": (lambda: needle(1e-6, 1000.0), 50.0, "crosses edges without end"),
    "apexes of 3": (lambda: bipyramid(3), 0.3, 1e-12),
    "apexes of 300": (lambda: bipyramid(300), 0.3, 1e-10),
    "far from the origin": (lambda: mp.TriangleMesh.icosphere(500.0, 3).translated([1e9, 0, 0]), 30.0, 1e-11),
    "open": (lambda: mp.TriangleMesh.flat_sheet(10, 10, 1.0), 0.5, 1e-11),
    "round the sphere": (lambda: mp.TriangleMesh.icosphere(500.0, 2), 1e4, 1e-11),
    "much too fast": (lambda: mp.TriangleMesh.icosphere(500.0, 2), 1e9, "crosses edges without end"),
}
STARTS = {"anywhere": None, "corners": [0.0, 0, 1], "edges": [0.5, 0.5, 0]}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("shape", DEGENERATE)
def test_points_on_degenerate_meshes_are_never_lost(shape, start):
    make, length, expected = DEGENERATE[shape]
    mesh, n = make(), 300
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, 1.0, fixed=True)
    if STARTS[start] is None:
        points = topology.add_intriangle_points(membrane, n, mass=1.0, seed=1)
    else:
        where = {"triangles": np.arange(n) % len(mesh.faces), "barycentric": [STARTS[start]] * n}
        points = topology.add_intriangle_points(membrane, **where, mass=1.0)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAGAB", 1.0), threads=1)
    v = np.zeros((topology.n_beads, 3))
    v[points.beads] = np.random.default_rng(2).normal(0.0, length, (n, 3))
    context.set_velocities(v)
    # Along the surface, as the context takes them.
    before = np.linalg.norm(context.get_state(velocities=True).velocities[points.beads], axis=1)
    if isinstance(expected, str):
        refuses(mp.SimulationError, expected, context.step, 20)
    else:
        context.step(20)
    state = context.get_state(positions=True, velocities=True)
    b = state.intriangle.barycentric
    assert np.isfinite(state.positions).all()
    assert (b >= 0.0).all()
    assert abs(b.sum(axis=1) - 1.0).max() < 1e-12
    assert ((state.intriangle.triangles >= 0) & (state.intriangle.triangles < len(mesh.faces))).all()
    speed = np.linalg.norm(state.velocities[points.beads], axis=1)
    assert abs(speed / before - 1.0).max() < (1e-12 if isinstance(expected, str) else expected)


LINE = np.column_stack([np.arange(6.0), np.zeros(6), np.zeros(6)])
PAIRWISE = {
    "WCA": lambda b: FORCES.WCA(b, b, 1.0, 1.0),
    "LennardJones": lambda b: FORCES.LennardJones(b, b, 1.0, 1.0),
    "SoftSphere": lambda b: FORCES.SoftSphere(b, b, 1.0, 1.0),
    "Coulomb": lambda b: FORCES.Coulomb(b, [1.0, 1.0, -1.0]),
    "Ricker": lambda b: FORCES.Ricker(b, b, 1.0, 1.0),
    "Morse": lambda b: FORCES.Morse(b, b, 1.0, 1.0, 1.0, cutoff=3.0),
    "Yukawa": lambda b: FORCES.Yukawa(b, b, 1.0, 1.0, cutoff=3.0),
    "TabulatedPair": lambda b: FORCES.TabulatedPair(b, b, [0.0, 1.0, 2.0, 3.0], [1.0, 0.5, 0.1, 0.0]),
    "CustomPair": lambda b: FORCES.CustomPair(b, b, "exp(-r)", cutoff=3.0),
    "HarmonicBonds": lambda b: FORCES.HarmonicBonds([[0, 1]], 1.0, 1.0),
    "Links": lambda b: FORCES.Links([0], [1], 1.0, 1.0),
    "AngleLinks": lambda b: FORCES.AngleLinks([0], [1], [2], 1.0, 1.0),
    "DirectionLinks": lambda b: FORCES.DirectionLinks([0], [1], [1], [2], 1.0, 1.0),
    "OrthonormalFramePenalty": lambda b: FORCES.OrthonormalFramePenalty([[0, 1, 2]], 1.0),
    "RigidTrianglePenalty": lambda b: FORCES.RigidTrianglePenalty([[0, 1, 2]], 1.0, [1.0, 1.0, 1.0]),
}


def chain(*nodes, **options):
    topology = mp.Topology()
    f = topology.add_filaments([np.array(x, dtype=float) for x in nodes], node_mass=1.0, node_friction=0.5, **options)
    system = system_with(topology, FORCES.FilamentBending(f, 5.0), FORCES.SoftCollisions([f], 10.0, [0.5]))
    return system


def three(make, distance):
    def system():
        topology = mp.Topology()
        beads = topology.add_beads(distance * np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), 1.0, 0.1)
        out = system_with(topology, make(beads))
        return out

    return system


def membrane_of(mesh, form):
    def system():
        topology = mp.Topology()
        membrane = topology.add_membrane(mesh(), 1.0, 0.5)
        topology.add_intriangle_points(membrane, 20, mass=1.0, friction=0.1, seed=1)
        out = mp.System(topology)
        for force in (FORCES.MembraneBending(membrane, 1.0, 0.0, form), FORCES.MembraneArea(membrane, 1.0)):
            out.add_force(force)
        return out

    return system


def folded_rod():
    topology = mp.Topology()
    x, q = mp.rods.uniform(4, 1.0)
    q[1:] = [[0.0, 1, 0, 0]]
    topology.add_rod(x, q, 1.0, 1.0, [1.0, 1, 1.5], (1.0, 2.0), rotational_friction=1.0)
    return mp.System(topology)


WITHOUT_EXTENT = {
    "two filaments in one place": lambda: chain(LINE, LINE),
    "filaments that cross": lambda: chain(LINE, LINE[:, [1, 0, 2]] + [2.5, -2.5, 0]),
    "nodes in one place": lambda: chain(np.vstack([LINE[:3], LINE[2:]])),
    "folded": lambda: chain([[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]]),
    "directors on a fold": lambda: chain(
        [[0, 0, 0], [1, 0, 0], [0, 0, 0]], directors="parallel", director_mass=1.0, director_friction=0.1
    ),
    "links that vanish": lambda: chain(LINE + 1e16),
    "a rod folded": folded_rod,
    "a flat triangle": lambda: mp.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [1, 1, 0]], [[0, 1, 2], [0, 2, 3]]),
    **{
        f"{name} at {d}": three(make, d) for name, make in PAIRWISE.items() for d in (0.0, 1e-160, 1e160)
    },
    **{
        f"{name}, {form}": membrane_of(mesh, form)
        for form in ("vertex", "dihedral")
        for name, mesh in {
            "needles": lambda: needle(1e-6, 1000.0),
            "a tiny sphere": lambda: mp.TriangleMesh.icosphere(1e-9, 1),
            "a huge sphere": lambda: mp.TriangleMesh.icosphere(1e9, 1),
            "a far sphere": lambda: mp.TriangleMesh.icosphere(10.0, 1).translated([1e12, 0, 0]),
        }.items()
    },
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::medyanpy.errors.TimestepWarning", "ignore::medyanpy.errors.UnitsWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # Squares of 1e160, in estimates.
@pytest.mark.parametrize("what", WITHOUT_EXTENT)
def test_systems_without_extent_are_finite_or_refused(what):
    try:
        system = WITHOUT_EXTENT[what]()
    except mp.MedyanError as error:
        assert any(word in str(error) for word in ("link", "node", "face"))  # noqa: PT017
        return
    context = mp.Context(system, mp.BAGOGABIntegrator(1e-3, kT=1.0, seed=1), threads=1)
    try:
        context.step(50)
    except mp.SimulationError as error:
        assert error.bead is not None  # noqa: PT017
    state = context.get_state(positions=True, velocities=True)
    assert np.isfinite(state.positions).all()
    assert np.isfinite(state.velocities).all()


@pytest.mark.filterwarnings("ignore::medyanpy.errors.TimestepWarning", "ignore::medyanpy.errors.UnitsWarning")
@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("timestep", [10.0, 1e6, 1e300])
def test_absurd_timesteps_end_with_finite_files(tmp_path, timestep, watched):
    simulation = mp.Simulation(everything(3), mp.BAGOGABIntegrator(timestep, kT=1.0, seed=1), threads=1)
    if not watched:
        simulation.context.runaway = None
    table, trajectory, checkpoint = (tmp_path / name for name in ("a.csv", "a.h5", "a.cp"))
    simulation.reporters += [
        mp.reporters.StateDataReporter(table, 1, step=True, potential_energy=True, temperature=True, area=True),
        mp.reporters.TrajectoryReporter(trajectory, 1, velocities=True),
        mp.reporters.CheckpointReporter(checkpoint, 1),
    ]
    with pytest.raises(mp.SimulationError):
        simulation.step(1000)
    simulation.close()
    assert not {"nan", "inf"} & set(table.read_text().replace("-", "").replace("\n", ",").split(","))
    if trajectory.exists():
        with mp.Trajectory(trajectory) as frames:
            for name in ("positions", "velocities", "barycentric", "potential_energy", "temperature"):
                assert np.isfinite(frames.read(name)).all()
    if checkpoint.exists():
        # Of a last state whose energies are too large for a table, there is none.
        saved = mp.Simulation.resume(checkpoint, threads=1, reporters=False)
        assert simulation.current_step - saved.current_step in (0, 1)


# Systems drawn at random ----------------------------------------------------------------------------------------------


def everything(seed):
    """Some of all that moves, of random numbers, and forces on it."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, 4.0, (int(rng.integers(2, 3000)), 3)), 1.0, 0.3)
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(20.0, 2), 1.0, 0.5, fixed=bool(rng.integers(2)))
    points = topology.add_intriangle_points(vesicle, int(rng.integers(1, 400)), mass=0.7, friction=0.3, seed=seed)
    lines = [np.cumsum(rng.normal(0.0, 0.2, (10, 3)) + [1.0, 0, 0], axis=0) for _ in range(6)]
    actin = topology.add_filaments(lines, node_mass=1.0, node_friction=0.5, constrained=bool(rng.integers(2)))
    n = int(rng.integers(1, 50))
    axes = rng.normal(size=(n, 4))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    bodies = topology.add_rigid_bodies(rng.normal(0.0, 9.0, (n, 3)), axes, 1.0, (1.0, 2.0, 2.5), 0.4)
    system = mp.System(topology)
    for force in (
        FORCES.MembraneBending(vesicle, 2.0), FORCES.MembraneEdgeSprings(vesicle, 30.0),
        FORCES.FilamentBending(actin, 5.0), FORCES.SoftSphere(beads, bodies, 3.0, 1.0),
        FORCES.HarmonicTrap(bodies, 1.0, [0.0, 0, 0]),
        FORCES.SoftCollisions([actin, points], 10.0, [0.5, 0.5]),
    ):  # fmt: skip
        if rng.random() < 0.8:
            system.add_force(force)
    return system


def digest(simulation):
    state = simulation.context.get_state(positions=True, velocities=True, forces=True, energy=True)
    return [a.tobytes() for a in (state.positions, state.velocities, state.forces, state.torques)], state.energies


@pytest.mark.filterwarnings("ignore::medyanpy.errors.TimestepWarning", "ignore::medyanpy.errors.ThermostatWarning")
@pytest.mark.parametrize("seed", range(5))
def test_random_systems_have_the_same_bits_however_they_are_run(tmp_path, seed):
    def simulation(threads):
        word = ("BAGOGAB", "ABGOGBA", "OGABAGO", "BAGAB", "GABAG")[seed]
        kT = 1.0 if "O" in word else None
        out = mp.Simulation(everything(seed), mp.SplittingIntegrator(word, 2e-3, kT=kT, seed=seed), threads=threads)
        out.context.set_velocities_to_temperature(kT=1.0, seed=seed)
        return out

    once = simulation(1)
    once.step(8)
    looked_at = simulation(3)
    for _ in range(8):
        looked_at.context.get_state(energy=True, forces=True, virial=True)
        looked_at.step(1)
    cut = simulation(2)
    cut.step(1 + seed)
    cut.save_checkpoint(tmp_path / "cut")
    resumed = mp.Simulation.resume(tmp_path / "cut", threads=4)
    loaded = simulation(1)
    loaded.step(2)
    loaded.load_checkpoint(tmp_path / "cut")
    for other in (cut, resumed, loaded):
        other.step(8 - other.current_step)
    for other in (looked_at, cut, resumed, loaded):
        assert digest(other) == digest(once)


# Calls ----------------------------------------------------------------------------------------------------------------


class Odd:
    def __float__(self):
        raise RuntimeError("odd float")

    def __array__(self, *args, **kwargs):
        raise RuntimeError("odd array")


ANYTHING = [0, 1, -1, 2, 0.5, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 2**31, 2**63, 2**64, 10**30,
            10**400, True, None, "", "x", "1.0", b"x", 1j, object(), [], (), {}, set(), np.float32(1.5),
            np.uint64(2**64 - 1), np.array(np.nan), np.array([]), len, ..., slice(3), "\0", np.array("a"),
            np.datetime64("2020-01-01"), Odd(), [None], [[]], {"a": 1}, [np.nan] * 3, [1e308] * 3, [0, 0, 0],
            [[0, 1, 2], [2, 1, 0]], np.zeros((6, 3)), np.full((6, 3), np.nan), np.full(6, -1.0), np.zeros(0, int),
            np.zeros((0, 3)), [[1.0], [2.0, 3.0]], np.arange(6), np.arange(18.0).reshape(6, 3),
            np.arange(9, dtype=object), np.zeros((3, 3), bool), np.array([["a"] * 3] * 3), [10**400] * 3, range(3),
            iter([1, 2])]  # fmt: skip


def calls():
    """A function, and arguments that it takes."""
    t = mp.Topology()
    beads = t.add_beads(np.arange(18.0).reshape(6, 3), 1.0, 0.3)
    mesh = mp.TriangleMesh.icosphere(5.0, 1)
    m = t.add_membrane(mesh, 1.0, 0.5)
    points = t.add_intriangle_points(m, 5, mass=1.0, friction=0.2, seed=1)
    actin = t.add_filament(np.arange(12.0).reshape(4, 3), 1.0, 0.5)
    system = mp.System(t)
    links = system.add_force(FORCES.Links([0, 1], [2, 3], 1.0, 1.0, name="links"))
    context = mp.Context(system, mp.BAGOGABIntegrator(1e-3, kT=1.0), threads=1)
    table = mp.reporters.StateDataReporter  # Not to files of any name.
    x, sphere = np.arange(12.0).reshape(4, 3), mp.surfaces.Sphere(3.0)
    return [
        (t.add_beads, (x, 1.0, 0.3), {"name": "n"}),
        (t.add_filaments, ([x], 1.0, 0.5, True, False, "parallel"), {"director_mass": 1.0, "director_friction": 0.1}),
        (t.add_membrane, (mesh, 1.0, 0.5), {"fixed": False}),
        (t.add_intriangle_points, (m,), {"triangles": [0], "barycentric": [[0.2, 0.3, 0.5]], "mass": 1.0}),
        (t.add_rigid_bodies, (x[:1], [[1.0, 0, 0, 0]], 1.0, (1.0, 2.0, 2.5), np.eye(6)), {}),
        (t.add_rod, (*mp.rods.uniform(5, 0.5), 0.5, 1.0, [1.0, 1, 1.5], (1.0, 2.0)), {"rotational_friction": 1.0}),
        (t.add_surface_points, (sphere, [[3.0, 0, 0]], 1.0, 0.1), {"tolerance": 1e-12}),
        (FORCES.WCA, (beads, beads, 1.0, 0.5), {"exclusions": [[0, 1]], "skin": 0.1}),
        (FORCES.Coulomb, (beads, np.ones(6), 1.0), {"exclusions": None}),
        (FORCES.ExternalField, (beads, "d*x**2"), {"d": 1.0, "group": 0}),
        (FORCES.HarmonicBonds, ([[0, 1]], 1.0, 1.0), {"name": "n", "group": 0}),
        (FORCES.HarmonicTrap, (beads, 1.0, [0.0, 0, 0]), {}),
        (FORCES.MembraneBending, (m, 1.0, 0.1, "vertex"), {}),
        (FORCES.MembraneArea, (m, 1.0, 300.0, False), {}),
        (FORCES.FilamentBending, (actin, 1.0, 0.0), {}),
        (FORCES.SoftCollisions, ([m, actin], 5.0, [0.1, 0.1]), {"layers": 1, "exclusions": None, "skin": 0.1}),
        (links.set, (), {"stiffness": 2.0, "length": 0.5}),
        (links.move, ([0],), {"a": [1], "b": [2]}),
        (mp.surfaces.Torus, (3.0, 1.0, [0.0, 0, 0], [0.0, 0, 1]), {}),
        (mp.surfaces.Polynomial, ("x**2+y**2-R**2",), {"bounding_box": [[-1.5] * 3, [1.5] * 3], "R": 1.0}),
        (sphere.project, (np.ones((3, 3)),), {}),
        (mp.TriangleMesh, (mesh.vertices, mesh.faces), {}),
        (mp.TriangleMesh.repair, (mesh.vertices, mesh.faces), {}),
        (mesh.contains, (np.ones((3, 3)),), {}),
        (mesh.positions, ([0], [[0.2, 0.3, 0.5]]), {}),
        (mp.Sites.from_arrays, ([0, 1, 2], [0, 1], [1.0, 1.0], np.zeros((0, 3)), None, ()), {}),
        (mp.SplittingIntegrator, ("BAOAB", 0.01), {"kT": 1.0, "seed": 3, "order": 2}),
        (mp.kicks.ZhangSkeel, (0.25,), {}),
        (mp.rigid.ellipsoid_friction, ([1.0, 2.0, 3.0], 1.0), {}),
        (mp.rigid.principal_axes, (x, [1.0] * 4, 0.1), {}),
        (context.set_velocities, (np.zeros((t.n_beads, 3)),), {}),
        (context.set_positions, (context.get_state(positions=True).positions,), {}),
        (context.hessian, (["links"], False), {}),
        (t.bead_indices, (points, [0, 1]), {}),
        (functools.partial(table, sys.stdout), (5,), {"step": True, "total_steps": 10, "separator": ","}),
    ]


@pytest.mark.filterwarnings("ignore")
def test_calls_with_anything_are_errors_of_ours():
    rng = random.Random(20261122)
    choices, typed = calls(), 0
    for k in range(6000):
        function, given, named = rng.choice(choices)
        given, named = list(given), dict(named)
        slot = rng.choice([*range(len(given)), *named])
        (given if isinstance(slot, int) else named)[slot] = value = rng.choice(ANYTHING)
        if k % 500 == 0:  # Objects are added to the topology.
            choices = calls()
        try:
            function(*given, **named)
        except mp.MedyanError as error:
            typed += 1
            assert len(str(error)) < 2000  # noqa: PT017
        except Exception as error:
            raise AssertionError(f"{function}, {slot} = {value!r}: {error!r}") from error
    assert typed > 3000


# What documents name --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [
    {"type": "PythonForce", "arguments": {"function": {"function": "os:abort"}}},
    {"type": "medyanpy.reporters.checkpoint:CheckpointReporter", "arguments": {"path": "run.cp", "interval": 1}},
    {"type": "ExternalField", "arguments": {"beads": [0], "energy": "__import__('os').abort()"}},
    {"type": "os:abort", "arguments": {}},
])  # fmt: skip
def test_names_in_a_document_are_not_run(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mp.ParameterError):
        mp.deserialize(json.dumps({"format": "medyanpy document", "version": 2, "content": content}))
    assert not list(tmp_path.iterdir())
