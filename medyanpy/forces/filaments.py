"""Forces on filaments: bending, stretching, twisting, and the Fixman potential of constrained filaments."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.beads.present import PresentRows
from medyanpy._kernels.core import numerics
from medyanpy._kernels.forces.radial import Radial
from medyanpy._kernels.selected import filament_bending, filament_twisting, fixman, fixman_twistable
from medyanpy._tools.images import displacement
from medyanpy.beads import Filaments
from medyanpy.beads.chains import with_edges
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._base import AtTemperature, Each, OnHandle, argument, declared, number
from medyanpy.forces._stiffness import Coordinates, Start
from medyanpy.forces.bonds import bind_pairs

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout

__all__ = ["FilamentBending", "FilamentStretching", "FilamentTwisting", "FixmanPotential"]


@declared
class _FilamentForce(OnHandle):
    """A force on the nodes of filaments, independent of direction and place in space."""

    _on = ("filaments", Filaments, "filaments")
    conserves_momentum = True
    filaments: Filaments = argument("Filaments", attribute="The filaments acted on.")

    def _keys(self, per: str) -> np.ndarray | None:
        return self.filaments.ids[self.filaments.links[:, 0]] if per == "filaments.links" else None


class _JointForce(_FilamentForce):
    """An energy of the angle between successive links."""

    @property
    def joints(self) -> np.ndarray:
        """Inner nodes (J,), among the handle's nodes, filament after filament."""
        return self.filaments.kind.joints

    def _keys(self, per: str) -> np.ndarray | None:
        return self.filaments.ids[self.joints] if per == "joints" else super()._keys(per)

    def _per_length(self, modulus: np.ndarray) -> np.ndarray:
        """Divide moduli by the mean rest length of the two links of each joint, (J,) pN nm."""
        before, after = self.filaments.kind.links_at_joints
        length = self.filaments.link_lengths
        out: np.ndarray = modulus / (0.5 * (length[before] + length[after]))
        return out

    def _at_joints(self, start: Start, sizes: Any) -> Coordinates:
        """Return coordinates (J,) that the three nodes of each joint move by sizes over the lengths of its links."""
        before, after = self.filaments.kind.links_at_joints
        links, length = self.filaments.links, self.filaments.link_lengths
        nodes = self.filaments.beads[np.column_stack([links[before, 0], self.joints, links[after, 1]])]
        first, second = 1.0 / length[before], 1.0 / length[after]
        return start.coordinates(nodes, np.column_stack([first, first + second, second]) * np.reshape(sizes, (-1, 1)))


@declared
class FilamentBending(_JointForce):
    r"""Bending energy of filaments: of the angles between successive links.

    .. math:: U = \sum_j \frac{B_j}{\ell_j} \bigl(1 - \cos(\theta_j - \theta_{0j})\bigr)

    over the inner nodes j (of rings: all nodes). θ, from 0 to π, is the angle between the links that meet there, and
    ℓ the mean of their rest lengths, ``filaments.link_lengths``. Of filaments that grow, these are the lengths of now.
    For fine links this is the energy
    :math:`\tfrac{B}{2} \int (1/R)^2\,ds` of an elastic rod; its persistence length is B/kT.

    Parameters
    ----------
    filaments
        With J inner nodes, listed by `joints`.

    Notes
    -----
    Where θ0 > 0, the force is zero at θ = 0 and π, the mean over all directions of bending. With θ0 = 0 it is smooth. A
    link without length, possible in unconstrained filaments only, has no angle: its joints have the energy B/ℓ and no
    force. Cost: O(nodes). Second and third derivatives are offered.

    References
    ----------
    O. Kratky, G. Porod, Recl. Trav. Chim. Pays-Bas 68, 1106 (1949). L. D. Landau, E. M. Lifshitz, Theory of Elasticity,
    § 18. F. Gittes et al., J. Cell Biol. 120, 923 (1993): actin and microtubules.
    """

    bending_modulus: Each = number(
        "pN nm²", "B = EI; for actin about 17 µm · kT = 7e4 pN nm².", at_least=0.0, per="joints", many="(J,)"
    )
    rest_angle: Each = number(
        "radians", "θ0. An angle and no direction: a filament with rest angles coils either way.",
        default=0.0, at_least=0.0, below=np.pi, per="joints", many="(J,)",
    )  # fmt: skip

    def _one_of_all(self, name: str) -> np.ndarray:
        """Return the number that all joints have, (1,), also of those that come."""
        value = self._number_of_all(name)
        if value is None:
            raise ParameterError(
                f"{self.name}: {name} differs between joints, but filaments with capacity_links= need one number"
            )
        return np.full(1, value, float)

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        # The angle turns by the displacement of a node over the length of its link.
        return start.springs(self._at_joints(start, 1.0), self._per_length(self._numbers["bending_modulus"]))

    def bind(self, layout: "Layout") -> "Operation":
        node, owned, _, joint = _table(self.filaments, layout)
        rise, modulus, rest = self.filaments._rise, self._numbers["bending_modulus"], self._numbers["rest_angle"]
        if rise is None:
            modulus = self._per_length(modulus)
        elif self.filaments.kind.slots is not None:
            modulus, rest = (self._one_of_all(name) for name in ("bending_modulus", "rest_angle"))
        sine, cosine = _sincos(rest)
        rows = (_in_rows(joint, values) for values in (modulus, modulus * cosine, modulus * sine))
        present = _present(self.filaments, layout)
        return filament_bending.FilamentBending(self.name, node, owned, *rows, rise=rise or 0.0, present=present)


def refuse_constrained(force: str, filaments: Filaments) -> None:
    """Refuse filaments with links that keep their lengths."""
    if filaments.constrained:
        raise TopologyError(
            f"{force}: the links of {filaments!r} are constrained to their lengths, so nothing stretches them: "
            "leave this force out, or add the filaments with constrained=False"
        )


@declared
class FilamentStretching(_FilamentForce):
    r"""Springs along the links of filaments that are not constrained.

    .. math:: U = \sum_l \frac{Y_l}{2 \ell_l} (|d_l| - \ell_l)^2

    with the rest lengths ℓ, ``filaments.link_lengths``: the energy of a rod with the stretching modulus Y.

    Parameters
    ----------
    filaments
        Added with ``constrained=False``; L links.

    Raises
    ------
    TopologyError
        Not the handle of filaments, or of constrained ones: their links do not change their lengths.
    ParameterError
        A number outside its domain.

    Notes
    -----
    Stiff: the period of a link of length ℓ between nodes of mass m is about :math:`\pi\sqrt{2 m \ell/Y}`, and the
    timestep must be a small part of it. Two nodes in one place do not push each other. Second and third derivatives are
    offered.

    References
    ----------
    H. Kojima, A. Ishijima, T. Yanagida, Proc. Natl. Acad. Sci. USA 91, 12962 (1994): actin.
    """

    stretching_modulus: Each = number(
        "pN", "Y, Young's modulus times the area of the cross-section, in the order of ``filaments.links``. For actin "
        "about 4e4 pN.", at_least=0.0, per="filaments.links", many="(L,)",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        refuse_constrained(self.name, given["filaments"])

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        handle = self.filaments
        return start.bonds(handle.beads[handle.links], self._numbers["stretching_modulus"] / handle.link_lengths)

    def bind(self, layout: "Layout") -> "Operation":
        handle = self.filaments
        numbers = self._numbers["stretching_modulus"] / handle.link_lengths, handle.link_lengths
        return bind_pairs(self.name, Radial.HARMONIC, layout, handle.beads[handle.links], numbers)


@declared
class FilamentTwisting(_JointForce):
    r"""Twisting energy of twistable filaments: of the turns between the directors of successive links.

    .. math:: U = \sum_j \frac{C_j}{2\,\ell_j} (\varphi_j - \varphi_{0j})^2

    over the inner nodes j (of rings: all nodes). φ is the right-handed angle about the link after, from the director of
    the link before to its own. The former is first carried along by the smallest rotation that takes its link to the
    direction of the next. ℓ is the mean of the rest lengths of the two. For fine links this is the energy
    :math:`\tfrac{C}{2} \int \tau^2\,ds` of an elastic rod of twist τ.

    Parameters
    ----------
    filaments
        With directors, and J inner nodes, listed by `joints`.

    Raises
    ------
    TopologyError
        Not the handle of filaments, or of ones without directors.
    ParameterError
        A number outside its domain.

    Notes
    -----
    φ - φ0 is taken from (-π, π]: full turns are not counted. At π the energy, :math:`\pi^2 C/2\ell`, has a kink: links
    much shorter than C/kT have it far above kT. A joint that is folded back (θ = π) has no defined twist: as it folds,
    the force grows as tan(θ/2); at θ = π energy and force are zero.

    Stiff: the fastest torsional wave, of links with the moment of inertia I (``director_mass``), has the period
    :math:`\pi\sqrt{\ell I/C}`, and the timestep must be a small part of it. A force on a director, pN nm, is across its
    link and itself: the torque about the link. Its length does not count.

    Cost: O(nodes). Second and third derivatives are offered, with nodes and directors as the five beads of a joint. The
    stiffness is the second derivative at rest, :math:`\tfrac{C}{\ell}\,\nabla\varphi\,\nabla\varphi^{\mathsf T}`.

    References
    ----------
    M. Bergou et al., ACM Trans. Graph. 27, 63 (2008): twist by parallel transport. Y. Tsuda, H. Yasutake, A. Ishijima,
    T. Yanagida, Proc. Natl. Acad. Sci. USA 93, 12937 (1996): actin.
    """

    twist_modulus: Each = number(
        "pN nm²", "C = GJ; for actin about 8e4 pN nm² (Tsuda et al. 1996).", at_least=0.0, per="joints", many="(J,)"
    )
    rest_twist: Each = number(
        "radians", "φ0, any number; only what it is modulo 2π matters. A link of actin that holds n monomers has -166° "
        "times n.", default=0.0, per="joints", many="(J,)",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        if self.filaments.directors is None:
            raise TopologyError(
                f"{self.name}: {self.filaments!r} has no directors, so nothing says how its links are turned: add the "
                'filaments with directors= (an array, or "parallel") and director_mass='
            )

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        handle: Any = self.filaments
        before, after = handle.kind.links_at_joints
        x = start.positions[handle.beads[handle.links]]
        t = displacement(x[:, 0], x[:, 1], start.box)
        t /= np.linalg.norm(t, axis=1)[:, None]
        cosine = np.einsum("ij,ij->i", t[before], t[after])
        # A joint that is bent by θ twists as its nodes leave the plane: by tan(θ/2) of their displacement over a link.
        slope = np.sqrt(np.maximum(1.0 - cosine, 0.0) / np.maximum(1.0 + cosine, 1e-6))
        turns = start.coordinates(handle.directors.beads[np.column_stack([before, after])])
        twist = turns + self._at_joints(start, slope)
        return start.springs(twist, self._per_length(self._numbers["twist_modulus"]))

    def bind(self, layout: "Layout") -> "Operation":
        node, owned, director, joint = _table(self.filaments, layout)
        modulus = self._per_length(self._numbers["twist_modulus"])
        sine, cosine = _sincos(self._numbers["rest_twist"])
        rows = (_in_rows(joint, values) for values in (modulus, cosine, sine))
        return filament_twisting.FilamentTwisting(self.name, node, owned, director, *rows)


@declared
class FixmanPotential(AtTemperature, _FilamentForce):
    r"""Fixman potential: constrained filaments sample the shapes that filaments of infinitely stiff springs have.

    .. math:: U = \frac{kT}{2} \ln\det C, \qquad
              C_{ll} = 1, \quad C_{l,l+1} = \frac{-w_{l+1}\cos\theta_{l+1}}{\sqrt{(w_l + w_{l+1})(w_{l+1} + w_{l+2})}}

    of each filament, with the inverse masses w of its nodes and the angle θ between its links l and l + 1. C is the
    metric :math:`J M^{-1} J^T` of the constraints on the lengths of links, without factors that are constant. Of
    twistable filaments it is that of all their constraints (:doc:`/forces/filaments`), and depends on their directors,
    too.

    Parameters
    ----------
    filaments
        Constrained.

    Raises
    ------
    TopologyError
        Not the handle of filaments, or of ones that are not constrained: these have no constraint metric.
    ParameterError
        A number outside its domain, or neither or both of temperature and kT.

    Notes
    -----
    Constrained dynamics at a temperature has the density :math:`e^{-E/kT} \sqrt{\det J M^{-1} J^T}` in the shapes of
    filaments, which depends on the masses of nodes; springs in the limit of infinite stiffness have :math:`e^{-E/kT}`.
    With equal masses, the potential of one joint varies by 0.144 kT: constraints favour right angles, it straight and
    folded joints. U is zero where all joints are at right angles, and does not depend on lengths. It has no lower bound
    where fixed nodes hold a filament straight at its full length. Cost: O(nodes), of one filament in order, on one
    thread.

    References
    ----------
    M. Fixman, Proc. Natl. Acad. Sci. USA 71, 3050 (1974). E. J. Hinch, J. Fluid Mech. 271, 219 (1994). M. Pasquali,
    D. C. Morse, J. Chem. Phys. 116, 1834 (2002): forces in O(nodes).
    """

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        if not self.filaments.constrained:
            raise TopologyError(
                f"{self.name}: the links of {self.filaments!r} are not constrained: there is no constraint metric to "
                "make up for. Leave this force out"
            )

    def bind(self, layout: "Layout") -> "Operation":
        handle = self.filaments
        if layout.topology.joint is not None:
            taken = layout.topology.joint.taken(handle, handle.kind.n_chains)
            if taken.any():
                raise TopologyError(
                    f"{self.name}: filament {int(np.argmax(taken))} of {handle.name!r} is solved together with "
                    f"{layout.topology.joint.first!r}, and its metric is that of all of them: use "
                    "ConstraintFixmanPotential, and add other filaments with a handle of their own"
                )
        node, owned, director, joint = _table(handle, layout)
        if handle.kind.slots is not None:
            # Nodes are alike, and each joint has two links of two nodes: q is 1/2.
            n, width = handle.kind.slots.shape
            return fixman.Fixman(
                self.name, node, owned, director, _in_rows(joint, np.full((1, 1), 0.5)),
                (width * np.arange(n)).astype(np.int32), np.full(n, width, np.int32), False, self._numbers["kT"],
                present=_present(handle, layout),
            )  # fmt: skip
        w = np.where(handle.kind.fixed_beads, 0.0, 1.0 / handle.mass)
        links, nodes = handle.links, handle.kind.joints
        # Of each link and each of its constraints: the metric of that constraint with itself, for unit vectors.
        metric = w[links].sum(axis=1)[:, None]
        if handle.directors is not None:
            metric = np.column_stack([metric, metric[:, 0] + handle.link_lengths**2 / handle.directors.mass])
        before, after = handle.kind.links_at_joints
        q = w[nodes, None, None] / np.sqrt(metric[before, :, None] * metric[after, None, :])
        counts = np.diff(handle.starts)
        start = np.flatnonzero(owned)[handle.starts[:-1]] - 2
        kernel = fixman if handle.directors is None else fixman_twistable
        return kernel.Fixman(
            self.name, node, owned, director, _in_rows(joint, q.reshape(len(nodes), metric.shape[1] ** 2)),
            start.astype(np.int32), counts.astype(np.int32), handle.closed, self._numbers["kT"],
        )  # fmt: skip


def _sincos(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sine and cosine of any angles, with the same bits on all machines."""
    # The remainder is exact; that 2π is rounded changes less than the rounding of such a number.
    angle = np.fmod(angle, 2.0 * np.pi)
    sine, cosine = np.empty(len(angle)), np.empty(len(angle))
    numerics.sincos(angle, sine, cosine)
    return sine, cosine


def _present(filaments: Filaments, layout: "Layout") -> PresentRows | None:
    """Return the rows of the nodes that are there, of filaments with room for more."""
    slots = filaments.kind.slots
    return None if slots is None else PresentRows(layout.rank[slots].astype(np.int32))


def _table(filaments: Filaments, layout: "Layout") -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of _kernels/forces/joints.pxd and two more at both ends.

    They are: places of nodes, whether rows are their own, places of the directors of links or -1, and joints or -1.
    """
    slots = filaments.kind.slots
    if slots is not None:
        inside = np.full(slots.shape, -1)
        inside[:, 1:-1] = 0
        return (
            layout.rank[with_edges(slots.ravel(), 2)].astype(np.int32), np.pad(np.ones(slots.size, np.int32), 2),
            np.full(slots.size + 4, -1, np.int32), np.pad(inside.ravel(), 2, constant_values=-1),
        )  # fmt: skip
    node, which, k = filaments.kind.chain_rows(2)
    n = np.diff(filaments.starts)[which]
    owned = (k >= 0) & (k < n)
    inner = (k >= -1) & (k <= n) if filaments.closed else (k > 0) & (k < n - 1)
    joint = np.where(inner, node if filaments.closed else node - 2 * which - 1, -1)
    director = np.full(len(node), -1)
    if filaments.directors is not None:
        link = node if filaments.closed else node - which
        has_link = filaments.closed | (k < n - 1)
        director = np.where(has_link, layout.slice_of(filaments.directors).start + link, -1)
    place = layout.slice_of(filaments).start + with_edges(node, 2)
    director, joint = (np.pad(rows, 2, constant_values=-1) for rows in (director, joint))
    return place.astype(np.int32), np.pad(owned, 2).astype(np.int32), director.astype(np.int32), joint


def _in_rows(joint: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the numbers of every joint, where the table has the joint; 0 elsewhere."""
    out = np.zeros((len(joint), *values.shape[1:]))
    out[joint >= 0] = values[joint[joint >= 0]]
    return out
