"""Scenes, files and processes that tests of several folders share."""

import os
import signal
import traceback

import h5py
import numpy as np
import pytest

import medyanpy as mp


def orients(rng, n):
    """Return n random orientations, as unit quaternions."""
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def content(path):
    """Return datasets and attributes of an HDF5 file, bit for bit."""
    out = {}
    with h5py.File(path, "r") as file:

        def add(name, item):
            for key, value in item.attrs.items():
                if isinstance(value, h5py.Reference):
                    # What it points to, wherever that is in the file.
                    value = file[value].name
                out[name, key] = np.asarray(value).dtype.str, np.asarray(value).tolist()
            if isinstance(item, h5py.Dataset):
                value = item[()]
                out[name] = item.shape, item.dtype.str, value.tobytes() if isinstance(value, np.ndarray) else value

        file.visititems(add)
        add("/", file)
    return out


def forked(function, *arguments):
    """Run a function in a fork of this process, which ends with 0, or with 1 after an exception; returns its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        function(*arguments)
        code = 0
    except KeyboardInterrupt:
        code = 2
    except BaseException as error:
        # NumPy says this of an interrupt that comes while it compares rows, for which it calls Python.
        if isinstance(error, TypeError) and "unless they have a common dtype" in str(error):
            code = 2
        else:
            traceback.print_exc()
    finally:
        os._exit(code)


def assert_killed(function, *arguments):
    """Run a function in a fork of this process, which has to end it by SIGKILL."""
    _, status = os.waitpid(forked(function, *arguments), 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def refuses(error, phrase, call, /, *arguments, **options):
    """Assert that a call raises an error with a phrase (a regular expression) in its message."""
    with pytest.raises(error, match=phrase):
        call(*arguments, **options)


def system_with(topology, *forces, **options):
    """Return a system of a topology with forces, added in this order."""
    system = mp.System(topology, **options)
    for force in forces:
        system.add_force(force)
    return system
