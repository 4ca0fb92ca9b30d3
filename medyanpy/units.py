"""The unit system, and factors into it.

Lengths are in nm, forces in pN and times in s. Everything else follows: energies are in pN·nm, masses in
pN·s²/nm (one of them is one gram), frictions in pN·s/nm, pressures in pN/nm² (one of them is one MPa).
Multiply by a factor to come into the system, divide by it to leave.

>>> from medyanpy import units
>>> 3.0 * units.micrometer
3000.0
>>> round(300.0 * units.boltzmann, 3)      # kT at 300 K, in pN nm
4.142
"""

from math import pi as _pi

# Lengths (nm).
nanometer: float = 1.0
micrometer: float = 1e3
angstrom: float = 0.1
meter: float = 1e9
# Forces (pN).
piconewton: float = 1.0
nanonewton: float = 1e3
newton: float = 1e12
# Times (s).
second: float = 1.0
millisecond: float = 1e-3
microsecond: float = 1e-6
nanosecond: float = 1e-9
# Energies (pN nm).
joule: float = newton * meter
# CODATA 2019 (exact): k_B = 1.380649e-23 J/K.
boltzmann: float = 1.380649e-23 * joule
# N_A = 6.02214076e23 / mol, 1 kcal = 4184 J.
kilojoule_per_mole: float = 1e3 * joule / 6.02214076e23
kilocalorie_per_mole: float = 4.184 * kilojoule_per_mole
# Energy times distance of two elementary charges in empty space (pN nm^2): e^2 / 4 pi epsilon_0, with
# e = 1.602176634e-19 C (exact) and epsilon_0 = 8.8541878128e-12 F/m (CODATA 2018).
coulomb_constant: float = 1.602176634e-19**2 / (4.0 * _pi * 8.8541878128e-12) * joule * meter
# Masses (pN s^2/nm).
gram: float = 1.0
kilogram: float = 1e3 * gram
# 1 Da = 1.66053906660e-27 kg (CODATA 2018).
dalton: float = 1.66053906660e-27 * kilogram
# Viscosities (pN s/nm^2).
pascal_second: float = newton / meter**2
# Diffusion constants (nm^2/s).
micrometer2_per_second: float = micrometer**2
# Concentrations (1/nm^3): N_A per litre.
molar: float = 6.02214076e23 / 1e24
micromolar: float = 1e-6 * molar
# Rates of reactions of two molecules (nm^3/s).
per_micromolar_second: float = 1.0 / micromolar
kelvin: float = 1.0
