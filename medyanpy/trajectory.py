"""Where `Trajectory` was in 0.1, and may be imported from as before."""

from medyanpy.files.trajectory import Frame, Trajectory, TrajectoryHandle

__all__ = ["Frame", "Trajectory", "TrajectoryHandle"]
