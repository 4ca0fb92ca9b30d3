"""Triangle meshes: build, check, mend, read and write.

Everything here runs before a simulation starts. SciPy and networkx are imported inside the
functions that need them, so that ``import medyanpy`` loads none of them.
"""

from medyanpy.mesh.checks import DefectPlace, MeshDefect
from medyanpy.mesh.remeshing import MeshFigures, RemeshReport
from medyanpy.mesh.repair import RepairReport
from medyanpy.mesh.triangle_mesh import TriangleMesh

__all__ = ["DefectPlace", "MeshDefect", "MeshFigures", "RemeshReport", "RepairReport", "TriangleMesh"]
