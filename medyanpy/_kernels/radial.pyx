"""The numbers of radial energies, for Python: `Radial`; everything is in radial.pxd."""
