"""What filaments resist: bending and stretching; and what makes stiff constraints sample as stiff springs do."""

from typing import Any

import numpy as np

from medyanpy._kernels import numerics
from medyanpy._kernels.selected import filament_bending, fixman
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._base import Force, expect_handle
from medyanpy.forces.bonds import _HARMONIC, bind_pairs
from medyanpy.topology import Filaments
from medyanpy.validation import number, per_item, thermal_energy

__all__ = ["FilamentBending", "FilamentStretching", "FixmanPotential"]


class _FilamentForce(Force):
    """A force on the nodes of filaments, with no direction or place in space of its own."""

    conserves_momentum = True

    def __init__(self, filaments: Filaments, *, name: str | None, group: int) -> None:
        super().__init__(name=name, group=group)
        self._filaments = expect_handle(f"{self.name}: filaments", filaments, Filaments, "filaments")

    @property
    def filaments(self) -> Filaments:
        """The filaments acted on."""
        return self._filaments

    @property
    def handles(self):
        return (self._filaments,)


class FilamentBending(_FilamentForce):
    r"""Bending energy of filaments: of the angles between successive links.

    .. math:: U = \sum_j \frac{B_j}{\ell_j} \bigl(1 - \cos(\theta_j - \theta_{0j})\bigr)

    over the inner nodes j (of rings: all nodes). θ, from 0 to π, is the angle between the links that meet there, and
    ℓ the mean of their rest lengths, ``filaments.link_lengths``. For fine links this is the energy
    :math:`\tfrac{B}{2} \int (1/R)^2\,ds` of an elastic rod; its persistence length is B/kT.

    Parameters
    ----------
    filaments : Filaments
        With J inner nodes, listed by `joints`.
    bending_modulus : float or (J,) float, pN nm², >= 0
        B = EI; for actin about 17 µm · kT = 7e4 pN nm².
    rest_angle : float or (J,) float, radians, >= 0 and < π
        θ0. An angle and no direction: a filament with rest angles coils either way.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Not the handle of filaments.
    ParameterError
        A number outside its domain.

    Notes
    -----
    Where θ0 > 0, the force has no limit as θ goes to 0 or π: every direction in which to bend (or to straighten a
    folded joint) is as good as any other. There it is zero, the mean over all. With θ0 = 0 it is smooth. A link without
    length, possible in unconstrained filaments only, has no angle: its joints have the energy B/ℓ and no force, again
    the mean over all directions for θ0 = 0.

    Cost: O(nodes), for any number of filaments.

    References
    ----------
    O. Kratky, G. Porod, Recl. Trav. Chim. Pays-Bas 68, 1106 (1949). L. D. Landau, E. M. Lifshitz, Theory of
    Elasticity, § 18. F. Gittes et al., J. Cell Biol. 120, 923 (1993): actin and microtubules.

    Examples
    --------
    >>> import numpy as np
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> actin = topology.add_filament(np.linspace([0.0, 0.0, 0.0], [270.0, 0.0, 0.0], 11), node_mass=4e-12)
    >>> mp.forces.FilamentBending(actin, bending_modulus=7e4)
    FilamentBending(bending_modulus=70000, rest_angle=0)
    """

    changeable = ("bending_modulus", "rest_angle")

    def __init__(
        self,
        filaments: Filaments,
        bending_modulus: Any,
        rest_angle: Any = 0.0,
        *,
        name: str | None = None,
        group: int = 0,
    ) -> None:
        super().__init__(filaments, name=name, group=group)
        self._joints = _joints(filaments)
        self._joints.flags.writeable = False
        self._declare(bending_modulus=bending_modulus, rest_angle=rest_angle)

    @property
    def joints(self) -> np.ndarray:
        """(J,) the inner nodes, among the handle's nodes: filament after filament."""
        return self._joints

    def _checked(self, *, bending_modulus: Any, rest_angle: Any) -> dict[str, Any]:
        n = len(self._joints)
        angle = per_item(f"{self.name}: rest_angle", rest_angle, n, at_least=0.0)
        if (angle >= np.pi).any():
            j = int(np.argmax(angle >= np.pi))
            where = "" if np.ndim(rest_angle) == 0 else f"[{j}]"
            raise ParameterError(f"{self.name}: rest_angle{where} = {angle[j]} but must be < π (radians)")
        return {
            "bending_modulus": per_item(f"{self.name}: bending_modulus", bending_modulus, n, at_least=0.0),
            "rest_angle": angle,
        }

    def bind(self, layout):
        handle = self._filaments
        node, owned, joint = _table(handle, layout.slice_of(handle).start)
        before, after = _links_of_joints(handle, self._joints)
        length = 0.5 * (handle.link_lengths[before] + handle.link_lengths[after])
        modulus = self._numbers["bending_modulus"] / length
        sine, cosine = np.empty(len(modulus)), np.empty(len(modulus))
        numerics.sincos(np.ascontiguousarray(self._numbers["rest_angle"]), sine, cosine)
        rows = (_in_rows(joint, values) for values in (modulus, modulus * cosine, modulus * sine))
        return filament_bending.FilamentBending(self.name, node, owned, *rows)


class FilamentStretching(_FilamentForce):
    r"""Springs along the links of filaments that are not constrained.

    .. math:: U = \sum_l \frac{Y_l}{2 \ell_l} (|d_l| - \ell_l)^2

    with the rest lengths ℓ, ``filaments.link_lengths``: the energy of a rod with the stretching modulus Y.

    Parameters
    ----------
    filaments : Filaments
        Added with ``constrained=False``; L links.
    stretching_modulus : float or (L,) float, pN, >= 0
        Y, Young's modulus times the area of the cross-section, in the order of ``filaments.links``. For actin about
        4e4 pN.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Not the handle of filaments, or of constrained ones: their links do not change their lengths.
    ParameterError
        A number outside its domain.

    Notes
    -----
    Stiff: the period of a link of length ℓ between nodes of mass m is about :math:`\pi\sqrt{2 m \ell/Y}`, and the
    timestep must be a small part of it. Constrained filaments have no such limit. Two nodes in one place have no
    direction to push in; the force is then zero, as of `HarmonicBonds`. Second and third derivatives are offered.

    References
    ----------
    H. Kojima, A. Ishijima, T. Yanagida, Proc. Natl. Acad. Sci. USA 91, 12962 (1994): actin.

    Examples
    --------
    >>> import numpy as np
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> x = np.linspace([0.0, 0.0, 0.0], [270.0, 0.0, 0.0], 11)
    >>> actin = topology.add_filament(x, node_mass=4e-12, constrained=False)
    >>> mp.forces.FilamentStretching(actin, stretching_modulus=4e4)
    FilamentStretching(stretching_modulus=40000)
    """

    changeable = ("stretching_modulus",)

    def __init__(
        self, filaments: Filaments, stretching_modulus: Any, *, name: str | None = None, group: int = 0
    ) -> None:
        super().__init__(filaments, name=name, group=group)
        if filaments.constrained:
            raise TopologyError(
                f"{self.name}: the links of {filaments!r} are constrained to their lengths, so nothing stretches them: "
                "leave this force out, or add the filaments with constrained=False"
            )
        self._declare(stretching_modulus=stretching_modulus)

    def _checked(self, *, stretching_modulus: Any) -> dict[str, Any]:
        n = len(self._filaments.link_lengths)
        return {
            "stretching_modulus": per_item(f"{self.name}: stretching_modulus", stretching_modulus, n, at_least=0.0)
        }

    def bind(self, layout):
        handle = self._filaments
        length = handle.link_lengths
        stiffness = self._numbers["stretching_modulus"] / length
        return bind_pairs(self.name, _HARMONIC, layout, handle.links + handle.first_bead, (stiffness, length))


class FixmanPotential(_FilamentForce):
    r"""What makes constrained filaments sample the shapes that filaments of infinitely stiff springs have.

    .. math:: U = \frac{kT}{2} \ln\det C, \qquad
              C_{ll} = 1, \quad C_{l,l+1} = \frac{-w_{l+1}\cos\theta_{l+1}}{\sqrt{(w_l + w_{l+1})(w_{l+1} + w_{l+2})}}

    of each filament, with the inverse masses w of its nodes and the angle θ between its links l and l + 1. C is the
    metric :math:`J M^{-1} J^T` of the constraints on the lengths of links, without factors that are constant.

    Parameters
    ----------
    filaments : Filaments
        Constrained.
    temperature : float, kelvin, > 0
        The temperature that is sampled: give the integrator's.
    kT : float, pN nm, > 0
        Instead of `temperature`; `set` takes this one.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Not the handle of filaments, or of ones that are not constrained: these have no constraint metric.
    ParameterError
        A number outside its domain, or neither or both of temperature and kT.

    Notes
    -----
    Constrained dynamics at a temperature has the density :math:`e^{-E/kT} \sqrt{\det J M^{-1} J^T}` in the shapes of
    filaments, which depends on the masses of nodes; that of springs in the limit of infinite stiffness,
    :math:`e^{-E/kT}`, does not. This potential takes away the root. With equal masses, one joint
    between two links varies by 0.144 kT: constraints favour right angles, the potential straight and folded joints.

    U is zero where all joints are at right angles, and does not depend on lengths. It has no lower bound where fixed
    nodes hold a filament straight at its full length; constraints cannot hold that either.

    Cost: O(nodes). The determinant of one filament is computed in order, on one thread.

    References
    ----------
    M. Fixman, Proc. Natl. Acad. Sci. USA 71, 3050 (1974). E. J. Hinch, J. Fluid Mech. 271, 219 (1994). M. Pasquali,
    D. C. Morse, J. Chem. Phys. 116, 1834 (2002): forces in O(nodes).

    Examples
    --------
    >>> import numpy as np
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> trimer = topology.add_filament([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], node_mass=1.0)
    >>> mp.forces.FixmanPotential(trimer, kT=4.0)
    FixmanPotential(kT=4)
    """

    changeable = ("kT",)

    def __init__(
        self,
        filaments: Filaments,
        temperature: float | None = None,
        kT: float | None = None,
        *,
        name: str | None = None,
        group: int = 0,
    ) -> None:
        super().__init__(filaments, name=name, group=group)
        if not filaments.constrained:
            raise TopologyError(
                f"{self.name}: the links of {filaments!r} are not constrained: there is no constraint metric to make "
                "up for. Leave this force out"
            )
        kT = thermal_energy(temperature, kT, self.name)
        if kT is None:
            raise ParameterError(f"{self.name}: give temperature= (kelvin) or kT= (pN nm)")
        self._declare(kT=kT)

    def _checked(self, *, kT: Any) -> dict[str, Any]:
        return {"kT": number(f"{self.name}: kT", kT, above=0.0)}

    def _arguments_now(self):
        # kT in place of the temperature, so that no rounding is repeated.
        return {**super()._arguments_now(), "temperature": None}

    def bind(self, layout):
        handle = self._filaments
        node, owned, joint = _table(handle, layout.slice_of(handle).start)
        w = np.where(handle.fixed_beads, 0.0, 1.0 / handle.mass)
        links, nodes = handle.links, _joints(handle)
        both = w[links].sum(axis=1)
        before, after = _links_of_joints(handle, nodes)
        q = _in_rows(joint, w[nodes] / np.sqrt(both[before] * both[after]))
        counts = np.diff(handle.starts)
        start = np.flatnonzero(owned)[handle.starts[:-1]] - 2
        return fixman.Fixman(
            self.name, node, owned, q, start.astype(np.int32), counts.astype(np.int32), handle.closed,
            self._numbers["kT"],
        )  # fmt: skip


def _joints(filaments: Filaments) -> np.ndarray:
    """(J,) nodes between two links: of rings all, else all but the ends."""
    nodes = np.arange(len(filaments))
    return nodes if filaments.closed else np.delete(nodes, np.r_[filaments.starts[:-1], filaments.starts[1:] - 1])


def _links_of_joints(filaments: Filaments, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(J,), (J,) the links before and after each joint."""
    which = np.searchsorted(filaments.starts, joints, side="right") - 1
    if not filaments.closed:
        # Each filament before has one link less than nodes.
        return joints - which - 1, joints - which
    first = joints == filaments.starts[which]
    return np.where(first, filaments.starts[which + 1], joints) - 1, joints


def _table(filaments: Filaments, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of _kernels/joints.pxd and two more at both ends: place of the node, whether the row is its own, and
    the number of the joint or -1."""
    starts, repeats = filaments.starts, 2 if filaments.closed else 0
    n = np.diff(starts)
    rows = n + 2 * repeats
    which = np.repeat(np.arange(len(n)), rows)
    # Which node of its filament: from -2 in rings.
    k = np.arange(rows.sum()) - (np.cumsum(rows) - rows)[which] - repeats
    node = starts[which] + k % n[which]
    owned = (k >= 0) & (k < n[which])
    inner = (k >= -1) & (k <= n[which]) if filaments.closed else (k > 0) & (k < n[which] - 1)
    joint = np.where(inner, node if filaments.closed else node - 2 * which - 1, -1)
    return (
        (first + np.pad(node, 2, mode="edge")).astype(np.int32),
        np.pad(owned, 2).astype(np.int32),
        np.pad(joint, 2, constant_values=-1),
    )


def _in_rows(joint: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A number of every joint, where the table has the joint; 0 elsewhere."""
    out = np.zeros(len(joint))
    out[joint >= 0] = values[joint[joint >= 0]]
    return out
