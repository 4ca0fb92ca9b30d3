"""Checks of what every jump must satisfy, as functions that tests call with a case of the jump."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from medyanpy.errors import ParameterError
from medyanpy.files.documents import deserialize, serialize
from medyanpy.simulation import Simulation
from medyanpy.state import State
from medyanpy.testing.statistics import check_chi_square, check_mean

__all__ = ["JumpCase", "check_jump", "check_jumps_together"]


@dataclass(frozen=True)
class JumpCase:
    """A jump in a system whose discrete states can be counted: many copies that do not see each other, of beads that
    do not move.

    Parameters
    ----------
    name : str
    make : callable (copies, seed, threads, timestep) -> Simulation
        With so many copies of the system; its jumps are all of the kind that is tested.
    states : callable (State) -> (copies,) int array
        In which state each copy is, counted from 0; of a state with positions and energy.
    rates : (m, m) float array, 1/s
        At which a copy goes from state i to j, i in rows; the diagonal is not read.
    energies : (m,) float array, pN nm
        Potential energy of a copy in each state, up to one constant.
    kT : float, pN nm
    weights : (m,) float array
        Of states, beside exp(-E/kT); all 1 where none are given. Of driven jumps they are not read.
    start : int
        The state in which all copies start.
    driven : bool
        Whether the rates are not in balance on purpose.
    """

    name: str
    make: Callable[[int, int, int, float], Simulation]
    states: Callable[[State], np.ndarray]
    rates: np.ndarray
    energies: np.ndarray
    kT: float = 1.0  # noqa: N815 - the symbol of the papers
    weights: np.ndarray | None = None
    start: int = 0
    driven: bool = False
    generator: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rates = np.array(self.rates, float)
        m = len(rates)
        if rates.shape != (m, m) or len(self.energies) != m or m < 2:
            raise ParameterError(f"{self.name}: rates must have shape (m, m), and energies (m,), of m >= 2 states")
        np.fill_diagonal(rates, 0.0)
        object.__setattr__(self, "generator", rates - np.diag(rates.sum(axis=1)))

    @property
    def at_rest(self) -> np.ndarray:
        """Distribution that the rates keep, (m,)."""
        m = len(self.generator)
        equations = np.vstack([self.generator.T, np.ones(m)])
        rest: np.ndarray = np.linalg.lstsq(equations, np.append(np.zeros(m), 1.0), rcond=None)[0]
        return rest

    def after(self, time: float) -> np.ndarray:
        """Return the distribution at a time, s, by the master equation, (m,)."""
        from scipy.linalg import expm

        distribution: np.ndarray = expm(self.generator * time)[self.start]
        return distribution


def check_jump(case: JumpCase, copies: int = 20_000, sees: float = 0.1) -> None:
    """Check what a jump promises; an AssertionError tells what is broken, or that the sample is too small to tell.

    - Balance: the rates of the case keep exp(-E/kT) times the weights, pair by pair, unless it is driven.
    - Time: the distribution at three times, one at rest, is that of the master equation, however time is cut into
      steps, and the number of events is that of the rates.
    - Books: heat or chemical work of all events is the change of the energy, and closes to 1e-12 of the largest term.
    - Events: one for each change, in the order of time, within their steps; driven by nothing where they are balanced.
    - Bits: any number of threads, any cut into calls of ``step``, a replay from the last good state, a checkpoint that
      is loaded or resumed, and the document give the same.

    Statistical checks are wrong once in a million times each.

    Parameters
    ----------
    case : JumpCase
    copies : int
    sees : float
        The relative error of probabilities (root mean square over states, each weighted with its share) that is found
        with a probability of 0.999; twice as large for the number of events. Too few copies for it are refused. 10⁶
        copies see 1 %.
    """
    check_balance(case)
    check_time(case, copies, sees)
    check_books(case)
    check_bits(case)


def _look(simulation: Simulation) -> State:
    return simulation.context.get_state(positions=True, velocities=True, energy=True)


def _fastest(case: JumpCase) -> float:
    """Return the highest rate at which a state is left, 1/s."""
    return float(-np.diag(case.generator).min())


def check_balance(case: JumpCase) -> None:
    """Check the rates of the case against its energies and weights: exact."""
    if case.driven:
        return
    weights = np.ones(len(case.energies)) if case.weights is None else np.asarray(case.weights, float)
    pi = weights * np.exp(-(np.asarray(case.energies) - np.min(case.energies)) / case.kT)
    flow = (pi / pi.sum())[:, None] * np.where(np.eye(len(pi), dtype=bool), 0.0, case.generator)
    np.testing.assert_allclose(flow, flow.T, rtol=1e-9, atol=1e-300, err_msg=f"{case.name}: the rates do not balance")


def check_time(case: JumpCase, copies: int, sees: float = 0.1) -> None:
    """Check against the master equation, in time and at rest."""
    fastest = _fastest(case)
    slowest = np.sort(np.abs(np.linalg.eigvals(case.generator)))[1]
    # Three times, one of them early; in one step, in many, and the last of them at rest.
    runs = (0.3 / fastest, 1), (1.5 / fastest, 7), (1.5 / fastest, 1), (12.0 / slowest, 40)
    for k, (time, steps) in enumerate(runs):
        simulation = case.make(copies, 11 + k, 1, time / steps)
        assert (case.states(_look(simulation)) == case.start).all(), f"{case.name}: copies do not start as said"
        simulation.step(steps)
        counts = np.bincount(case.states(_look(simulation)), minlength=len(case.generator))
        expected = case.after(time) * copies
        if k == 3:
            np.testing.assert_allclose(expected, case.at_rest * copies, rtol=1e-3)
        _check_counts(f"{case.name} after {time:.3g} s in {steps} steps", counts, expected, sees)
    _check_events(case, copies, sees)


def _check_counts(what: str, counts: np.ndarray, expected: np.ndarray, sees: float) -> None:
    """Check counts by chi-square; states that are hardly ever seen are taken together."""
    rare = expected < 25.0
    if rare.any() and expected[rare].sum() > 0.0:
        # They are merged with the least of the others, where they are still too few.
        merged = np.append(expected[~rare], expected[rare].sum()), np.append(counts[~rare], counts[rare].sum())
        expected, counts = merged
        while expected[-1] < 25.0:
            least = np.argmin(expected[:-1])
            expected[least] += expected[-1]
            counts[least] += counts[-1]
            expected, counts = expected[:-1], counts[:-1]
    else:
        assert not counts[rare].any(), f"{what}: states that cannot be"
        expected, counts = expected[~rare], counts[~rare]
    if len(expected) > 1:
        check_chi_square(what, counts, expected * counts.sum() / expected.sum(), sees=sees)


def _check_events(case: JumpCase, copies: int, sees: float) -> None:
    """Check the number of events, on average over runs: the integral of the rates over the distribution."""
    time, runs = 1.0 / _fastest(case), 24
    grid = np.linspace(0.0, time, 201)
    rate = np.array([-np.diag(case.generator) @ case.after(t) for t in grid])
    h = grid[1]
    expected = h * (rate[0] + 4.0 * rate[1:-1:2].sum() + 2.0 * rate[2:-1:2].sum() + rate[-1]) / 3.0
    each = max(copies // runs, 50)
    counts = []
    for seed in range(runs):
        simulation = case.make(each, 100 + seed, 1, time / 3)
        simulation.step(3)
        counts.append(sum(accepted for _, accepted in _look(simulation).counts.values()) / each)
    check_mean(f"{case.name}: events per copy", np.array(counts), expected, sees=2.0 * sees * expected)


def check_books(case: JumpCase, copies: int = 200) -> None:
    """Check energies, events and their times."""
    energies = np.asarray(case.energies, float)
    h = 0.2 / _fastest(case)
    simulation = case.make(copies, 5, 1, h)
    simulation.report_work = True
    heard = simulation.context.events()
    start = _look(simulation)
    simulation.step(25)
    end = _look(simulation)
    parts = _check_sum(case.name, start, end)
    jumped = (energies[case.states(end)] - energies[case.states(start)]).sum()
    scale = max(np.abs(energies).max() * copies, 1e-300)
    events = heard.heard()
    told = sum(event.energy for event in events)
    booked = parts["chemical"] if case.driven else parts["heat"]
    # Where beads do not move, all other heat is that of the thermostat, on beads that nothing pulls.
    still = start.kinetic_energy == end.kinetic_energy == 0.0
    assert abs(told - jumped) <= 1e-9 * scale, f"{case.name}: events tell of {told}, states of {jumped} pN nm"
    if case.driven or still:
        assert abs(booked - told) <= 1e-9 * scale, f"{case.name}: {booked} pN nm are booked, events tell of {told}"
    assert len(events) == sum(accepted for _, accepted in end.counts.values()) > 0, f"{case.name}: events are missing"
    steps, times = (np.array(column) for column in list(zip(*events, strict=True))[:2])
    assert (np.diff(times) >= 0.0).all(), f"{case.name}: events are not in the order of time"
    inside = ((steps - 1) * h <= times * (1.0 + 1e-12)) & (times <= steps * h * (1.0 + 1e-12))
    assert inside.all(), f"{case.name}: an event is outside of its step"
    if not case.driven:
        chemical = [event.chemical_energy for event in events]
        assert np.isfinite(chemical).all(), f"{case.name}: a balanced event has no way back"


def check_bits(case: JumpCase, copies: int = 300) -> None:
    """Check for the same bits, whatever was cut, threaded, repeated or saved in between."""
    h = 0.2 / _fastest(case)

    def same(name: str, how: str, one: State, two: State) -> None:
        assert np.array_equal(case.states(one), case.states(two)), f"{name}: {how}: other states"
        _same_states(name, how, one, two)

    _check_bits(case.name, lambda threads: case.make(copies, 3, threads, h), same)


def check_jumps_together(name: str, make: Callable[[int], Simulation], steps: int = 30) -> None:
    """Check jumps beside each other, in one system.

    Bits are the same for any number of threads, any cut into calls of ``step`` with looks in between, a replay from the
    last good state, a checkpoint that is loaded or resumed, and the document. Books close to 1e-12 of the largest term.

    Parameters
    ----------
    name : str
    make : callable (threads) -> Simulation
        The same one at every call, at its start.
    steps : int, >= 6
        After so many, each of its jumps must have been accepted.
    """
    _check_bits(name, make, _same_states, steps)
    simulation = make(1)
    simulation.report_work = True
    start = _look(simulation)
    simulation.step(steps)
    end = _look(simulation)
    _check_sum(name, start, end)


def _same_states(name: str, how: str, one: State, two: State) -> None:
    assert one.counts == two.counts, f"{name}: {how}: other counts"
    assert one.box == two.box, f"{name}: {how}: another box"
    for what in ("positions", "velocities", "ids"):
        same = np.array_equal(getattr(one, what), getattr(two, what), equal_nan=what != "ids")
        assert same, f"{name}: {how}: other {what}"
    assert list(one.pools) == list(two.pools), f"{name}: {how}: other pools"
    for pool, own in one.pools.items():
        for species, n in own.items():
            assert np.array_equal(n, two.pools[pool][species]), f"{name}: {how}: other {species} in {pool}"
    for what in ("faces", "jumps"):
        assert repr(getattr(one, what)) == repr(getattr(two, what)), f"{name}: {how}: other {what}"


def _check_sum(name: str, start: State, end: State) -> dict[str, float]:
    """Check that the energy balance closes; return heat, shadow, protocol and chemical work."""
    parts = {"heat": end.heat, "shadow": end.shadow_work, "protocol": end.protocol_work, "chemical": end.chemical_work}
    largest = max(map(abs, [*parts.values(), start.total_energy, end.total_energy]))
    change = end.total_energy - start.total_energy
    assert abs(change - sum(parts.values())) <= 1e-12 * largest, f"{name}: {parts} do not make up {change}"
    return parts


def _check_bits(
    name: str, made: Callable[[int], Simulation], same: Callable[[str, str, State, State], None], steps: int = 30
) -> None:
    first, second = 2 * steps // 5, steps // 3
    simulation = made(1)
    simulation.step(steps)
    whole = _look(simulation)
    accepted = {jump: counts.accepted for jump, counts in whole.counts.items()}
    assert all(accepted.values()), f"{name}: nothing happens: accepted are {accepted}"
    threaded = made(3)
    threaded.step(steps)
    same(name, "threads", whole, _look(threaded))
    cut = made(1)
    for n in (1, 2, second - 1, steps - second - 2):
        cut.step(n)
        _look(cut)
    same(name, "calls of step, and looks between", whole, _look(cut))
    replayed = made(1)
    replayed.step(first)
    program = replayed.context._store.program
    program.keep()
    replayed.context.step(second)
    program.restore()
    replayed.context._schedule.jumping.rewound()
    # Where steps take long, the program has made a later copy meanwhile.
    assert first <= replayed.current_step < first + second, f"{name}: a replay does not go back"
    replayed.step(steps - replayed.current_step)
    same(name, "a replay from the last good state", whole, _look(replayed))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        written = made(1)
        written.step(first)
        written.save_checkpoint(path)
        resumed = Simulation.resume(path, threads=2)
        resumed.step(steps - first)
        same(name, "resumed", whole, _look(resumed))
        loaded = made(1)
        loaded.step(5)
        loaded.load_checkpoint(path)
        loaded.step(steps - first)
        same(name, "loaded", whole, _look(loaded))
    system, integrator = deserialize(serialize(made(1)))
    again = Simulation(system, integrator, threads=1)
    again.context.set_state(_look(made(1)))
    again.step(steps)
    same(name, "made again from its document", whole, _look(again))
