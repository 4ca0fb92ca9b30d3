"""Trajectories in the formats of other programs."""

from medyanpy.files.exports.exporting import ExportReport, export

__all__ = ["ExportReport", "export"]
