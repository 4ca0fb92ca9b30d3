"""What all tests share."""

import os
from pathlib import Path

import numpy as np
import pytest

import medyanpy as mp

# Processes that tests start from the checkout must not find its source folder before the installed package.
os.environ["PYTHONSAFEPATH"] = "1"


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
