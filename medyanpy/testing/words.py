"""Integrators of any word, for tests that run over words."""

__all__ = ["thermal"]


def thermal(word: str, kT: float | None) -> float | None:
    """Return kT for words that keep it, with O or D; None for others, which refuse it."""
    return kT if set("DO") & set(word.upper()) else None
