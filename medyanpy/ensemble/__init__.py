"""Many runs at once: sweeps and replicas on the processes of this machine, or on any cluster that Dask reaches; and
replica exchange between them.

`run` is for runs that know nothing of each other, `replica_exchange` for those that swap temperatures or numbers of
forces. :doc:`/many_runs` shows both, on one machine, with Dask, and with job schedulers alone.
"""

from medyanpy.ensemble.exchange import Exchanges, replica_exchange
from medyanpy.ensemble.running import run
from medyanpy.ensemble.seeds import seed_of
from medyanpy.ensemble.table import Table

__all__ = ["Exchanges", "Table", "replica_exchange", "run", "seed_of"]
