"""Where `Trajectory` was in 0.1, and may be imported from as before."""

from medyanpy.files.trajectory import Frame, Frames, Trajectory, TrajectoryHandle

__all__ = ["Frame", "Frames", "Trajectory", "TrajectoryHandle"]
