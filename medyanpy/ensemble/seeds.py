"""Seeds of replicas: from the seed of the ensemble and a replica's place in it, and from nothing else."""

from medyanpy._tools.validation import seed as check_seed
from medyanpy._tools.validation import whole_number

__all__ = ["drawn", "seed_of"]

#: The purposes of random numbers of an ensemble; a purpose leads the key of a stream, so that none is used twice.
_REPLICAS, EXCHANGES = 0, 1


def drawn(seed: int, *key: int) -> int:
    """Return 64 random bits of the stream with a key."""
    # Imported late: it is a tenth of the time that importing the package takes.
    from numpy.random import SeedSequence

    return int(SeedSequence(seed, spawn_key=key).generate_state(1, "uint64")[0])


def seed_of(seed: int, parameters: int, replica: int = 0) -> int:
    """Return the seed of one replica of an ensemble.

    Parameters
    ----------
    seed : int, 0 to 2^64 - 1
        Of the ensemble.
    parameters : int, >= 0
        Which entry of the list of parameters.
    replica : int, >= 0
        Which of its replicas.

    Returns
    -------
    int
        64 bits, with which noise and first velocities of the replica are drawn:
        ``numpy.random.SeedSequence(seed, spawn_key=(0, parameters, replica)).generate_state(1, "uint64")``, which NumPy
        promises not to change.

    Raises
    ------
    ParameterError
        A number outside its domain.
    """
    seed = check_seed("seed_of: seed", seed)
    parameters = whole_number("seed_of: parameters", parameters, at_least=0)
    return drawn(seed, _REPLICAS, parameters, whole_number("seed_of: replica", replica, at_least=0))
