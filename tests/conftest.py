"""What all tests share."""

import os
import signal
import sys
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

import numpy as np
import pytest
from _pytest.doctest import DoctestModule

# `python -m pytest` finds the source folder of the checkout, which holds no kernels, before the installed package;
# `pytest` does not.
_CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:] = [folder for folder in sys.path if Path(folder or os.curdir).resolve() != _CHECKOUT]
# Nor must processes that tests start from the checkout.
os.environ["PYTHONSAFEPATH"] = "1"
# Tests share scenes and readers with the files beside this one.
sys.path.insert(0, str(Path(__file__).parent))

# And tutorials that take long are shorter here than what is stored in them.
os.environ.setdefault("MEDYANPY_QUICK", "1")

import medyanpy as mp  # noqa: E402

# What a test is warned of without failing, by the marker that says that this is meant. The texts are part of it: other
# warnings of these classes fail the test all the same.
MEANT = {
    "frictionless": (
        "beads have no friction under a word with O, on purpose",
        "ignore:.* has no friction, so that the thermostat does not act on it:medyanpy.errors.ThermostatWarning",
    ),
    "unstable": (
        "a timestep is beyond the stability limit of a force or of all together, on purpose",
        "ignore:.* is beyond the stability limit of (this force|all forces together):medyanpy.errors.TimestepWarning",
    ),
}


# Node ids of the tests that plain pytest leaves out for their time; thorough.py writes them.
THOROUGH = Path(__file__).with_name("thorough.txt")

# Scripts that checkers of types look at and that are not run: see test_types.py.
collect_ignore = ["types_right.py", "types_wrong.py"]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Collect no doctests from files of tests: pytest skips one that cannot be imported, and then its tests too."""
    collectors = yield
    return [one for one in collectors if not isinstance(one, DoctestModule)]


def pytest_configure(config):
    for name, (what, _) in MEANT.items():
        config.addinivalue_line("markers", f"{name}: {what}")


#: Names of functions that take samples.
STATISTICS = {"check_mean", "check_variance", "check_same_mean", "check_chi_square", "check_same_distribution"}


@cache
def takes_samples(test) -> bool:
    """True for a function that calls one of these, by itself or through others of its own file."""
    seen, waiting = set(), [test]
    while waiting:
        function = waiting.pop()
        if not isinstance(function, FunctionType) or function.__module__ != test.__module__ or function in seen:
            continue
        seen.add(function)
        codes = [function.__code__]
        for code in codes:
            if STATISTICS & set(code.co_names):
                return True
            codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            waiting += [function.__globals__.get(name) for name in code.co_names]
    return False


def pytest_collection_modifyitems(items):
    thorough = set(THOROUGH.read_text(encoding="utf-8").splitlines() if THOROUGH.exists() else ())
    for item in items:
        if item.nodeid in thorough:
            item.add_marker(pytest.mark.thorough)
        # Statistics take thousands of steps through kernels that other tests reach in a few.
        if takes_samples(getattr(item, "function", None)):
            item.add_marker(pytest.mark.slow)
        for name, (_, ignored) in MEANT.items():
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.filterwarnings(ignored))


def pytest_report_header(config):
    return f"medyanpy {mp.__version__} from {Path(mp.__file__).parent}"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real meshes and tables that lie beside the checkout, and are not part of it."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real meshes beside the checkout are not there")
    return folder


@pytest.fixture
def rng():
    return np.random.default_rng(20261121)


@pytest.fixture
def interruptible():
    """Interrupts are heard also where the tests were started in the background, whose shell has them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
