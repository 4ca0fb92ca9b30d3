"""What all tests share."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

# `python -m pytest` finds the source folder of the checkout, which holds no kernels, before the installed package;
# `pytest` does not.
_CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:] = [folder for folder in sys.path if Path(folder or os.curdir).resolve() != _CHECKOUT]
# Nor must processes that tests start from the checkout.
os.environ["PYTHONSAFEPATH"] = "1"

import medyanpy as mp  # noqa: E402


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
