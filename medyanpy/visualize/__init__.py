"""Pictures and movies of membranes, surfaces and the beads on them.

A small renderer (orthographic projection, depth buffer, smooth shading, ambient occlusion) makes the image, since
Matplotlib sorts polygons and cannot hide objects behind a fold; Matplotlib adds the scale bar and writes the file.
"""

from medyanpy.visualize.figures import draw
from medyanpy.visualize.interactive import View, export_gltf, export_html, show
from medyanpy.visualize.movies import movie

__all__ = ["View", "draw", "export_gltf", "export_html", "movie", "show"]
