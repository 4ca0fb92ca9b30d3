"""Rigid bodies in a viscous fluid: their friction, diffusion and inertia.

A 6×6 tensor has translation first, then rotation. What rigid bodies take is in the body frame, the principal axes of
inertia about the centre of mass.
"""

from medyanpy.rigid.bead_models import bead_model_friction
from medyanpy.rigid.ellipsoids import ellipsoid_diffusion, ellipsoid_friction, ellipsoid_inertia
from medyanpy.rigid.inertia import PrincipalAxes, principal_axes
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
    "PrincipalAxes",
    "bead_model_friction",
    "center_of_diffusion",
    "center_of_resistance",
    "check_tensor",
    "diffusion_to_friction",
    "ellipsoid_diffusion",
    "ellipsoid_friction",
    "ellipsoid_inertia",
    "friction_to_diffusion",
    "move_diffusion",
    "move_friction",
    "principal_axes",
    "rotate_tensor",
]
