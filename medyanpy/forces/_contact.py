"""Forms of the law of a contact (_kernels/forces/contact.pxd), by their names for users."""

from medyanpy.errors import ParameterError

__all__ = ["ENDS", "FORMS", "expect_form"]

#: Numbers of the forms in _kernels/forces/contact.pxd, and the factor by which shapes are grown where each ends.
FORMS = {"WCA": 0, "soft": 1}
ENDS = {"WCA": 2.0 ** (1.0 / 6.0), "soft": 1.0}


def expect_form(force: str, form: str) -> str:
    """Return `form` if it is one, else refuse it."""
    if form not in FORMS:
        raise ParameterError(f"{force}: form = {form!r} but must be {' or '.join(map(repr, FORMS))}")
    return form
