"""Small pictures for tests of demos."""

import inspect

import pytest

from medyanpy.visualize import draw


@pytest.fixture(scope="module", autouse=True)
def small_pictures():
    """A tenth of the pixels, which are most of the time of a small demo."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(inspect.unwrap(draw).__kwdefaults__, "size", (480, 360))
        yield
