"""Every call that a trajectory's writer makes of the system and of HDF5 fails in turn, before and after it is done."""

import errno
import gc
import inspect
import os
import shutil
import sys
import threading

import h5py
import pytest
from fault_runs import frames, make

import medyanpy as mp
from medyanpy._tools import outputs
from medyanpy.files import hdf5 as layout
from medyanpy.files import writer
from medyanpy.reporters import _content, trajectory

OURS = {outputs.__file__, layout.__file__, writer.__file__, trajectory.__file__, _content.__file__}
HDF5 = os.path.dirname(h5py.__file__)
NEVER_FAIL = ("getpid", "fspath")


def called_by_us(frame, depth):
    while frame is not None and depth:
        if frame.f_code.co_filename in OURS:
            return True
        frame, depth = frame.f_back, depth - 1
    return False


class Failing:
    """Lets the call with this number fail: at its beginning, or when it has done what it is for."""

    def __init__(self, number, when):
        self.number, self.count, self.failed = number, 0, None
        self.events = {"before": ("c_call", "call"), "after": ("c_return", "return")}[when]

    def __call__(self, frame, event, argument):
        if event == self.events[0]:
            if argument.__module__ not in ("posix", "fcntl"):
                return
            name, error = argument.__name__, OSError(errno.EIO, "the disk is broken")
            # What cannot be closed is closed nevertheless.
            if name in NEVER_FAIL or (name, event) == ("close", "c_call"):
                return
            # Nobody can close what was opened without a word.
            if (name, event) == ("open", "c_return"):
                return
            if not called_by_us(frame, 4):
                return
        elif event == self.events[1]:
            if not frame.f_code.co_filename.startswith(HDF5) or not called_by_us(frame.f_back, 1):
                return
            # A generator that fails at its yield does not leave its blocks: h5py would keep its lock for ever.
            if frame.f_code.co_flags & inspect.CO_GENERATOR:
                return
            name, error = frame.f_code.co_name, RuntimeError("HDF5")
        else:
            return
        self.count += 1
        if self.count == self.number:
            self.failed = name
            raise error

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *exception):
        sys.setprofile(None)


def again(action, errors):
    """What a user does who sees an error of ours: try once more."""
    try:
        action()
    except mp.MedyanError as error:
        # Not the error, which holds what was open when it was raised.
        errors.append(str(error))
        action()


def lives(path):
    """Two runs that write one trajectory, one after the other."""
    return make(path, append=True), make(path, append=True)


def live(simulations, checkpoint):
    """A trajectory is created, rewound, flushed, closed, and appended to; returns the errors on the way."""
    errors = []
    first, second = simulations

    def until(simulation, step):
        return lambda: simulation.step(step - simulation.current_step)

    again(until(first, 70), errors)
    first.load_checkpoint(checkpoint)
    again(until(first, 50), errors)
    again(first.reporters[0].flush, errors)
    again(first.close, errors)
    second.load_checkpoint(checkpoint)
    again(until(second, 72), errors)
    again(second.close, errors)
    return errors


def handles():
    # An abandoned file holds its handle, but for one that was closed before the call was said to have failed.
    return len(os.listdir("/proc/self/fd")) - sum(map(bool, writer._ABANDONED))


@pytest.fixture
def checkpoint(tmp_path):
    simulation = make()
    simulation.step(30)
    simulation.save_checkpoint(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list the handles of a process")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("every", [701, pytest.param(1, marks=pytest.mark.long)])
def test_a_call_that_fails_costs_nothing(tmp_path, checkpoint, when, every):
    """The error is ours; what is asked again is done; no frame is missing, no handle, hidden file or lock is left."""
    folder = tmp_path / "run"
    path = folder / "run.h5"
    number, reached = 1, True
    while reached:
        folder.mkdir()
        gc.collect()
        simulations, before = lives(path), handles()
        with Failing(number, when) as failing:
            errors = live(simulations, checkpoint)
        del simulations
        gc.collect()
        case = (number, when, failing.failed, errors)
        assert frames(path) == list(range(1, 73)), case
        assert handles() == before, case
        left = {p.name for p in folder.iterdir()} - {"run.h5"}
        assert left <= ({".run.h5.lock"} if failing.failed == "unlink" else set()), (case, left)
        other = threading.Thread(target=h5py.is_hdf5, args=(path,), daemon=True)
        other.start()
        other.join(60.0)
        assert not other.is_alive(), (case, "HDF5 stays locked for other threads")
        shutil.rmtree(folder)
        number, reached = number + every, failing.failed is not None
    assert number > 900
