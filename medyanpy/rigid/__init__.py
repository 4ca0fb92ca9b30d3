"""Rigid bodies in a viscous fluid: their friction, diffusion and inertia, and proteins as such.

A 6×6 tensor has translation first, then rotation. Arguments of rigid bodies are in the body frame, the principal axes
of inertia about the centre of mass.
"""

from medyanpy.rigid.bead_models import bead_model_friction
from medyanpy.rigid.ellipsoids import ellipsoid_diffusion, ellipsoid_friction, ellipsoid_inertia
from medyanpy.rigid.euler_angles import euler_from_quaternions, quaternions_from_euler
from medyanpy.rigid.inertia import PrincipalAxes, principal_axes
from medyanpy.rigid.linkers import Linkers
from medyanpy.rigid.membranes import transmembrane_friction, upright
from medyanpy.rigid.molecules import RigidMolecule, enclosing_ellipsoid, from_structure
from medyanpy.rigid.networks import Domains, ElasticNetwork, elastic_network, rigid_domains
from medyanpy.rigid.structures import Residue, Structure, read_structure
from medyanpy.rigid.tensors import (
    center_of_diffusion,
    center_of_resistance,
    check_tensor,
    diffusion_to_friction,
    friction_to_diffusion,
    move_diffusion,
    move_friction,
    rotate_tensor,
)

__all__ = [
    "Domains", "ElasticNetwork", "Linkers", "PrincipalAxes", "Residue", "RigidMolecule", "Structure",
    "bead_model_friction", "center_of_diffusion", "center_of_resistance", "check_tensor", "diffusion_to_friction",
    "elastic_network", "ellipsoid_diffusion", "ellipsoid_friction", "ellipsoid_inertia", "enclosing_ellipsoid",
    "euler_from_quaternions", "friction_to_diffusion", "from_structure", "move_diffusion", "move_friction",
    "principal_axes", "quaternions_from_euler", "read_structure", "rigid_domains", "rotate_tensor",
    "transmembrane_friction", "upright",
]  # fmt: skip
