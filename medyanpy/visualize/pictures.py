"""Figures of Matplotlib, which is imported when a figure is made, since that takes its time."""

from io import BytesIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["Picture"]


class Picture(Figure):
    """A figure without a window, which a notebook shows where it is the last line of a cell.

    Notebooks show figures of Matplotlib by themselves only once pyplot has been imported.
    """

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=self.dpi)
        return file.getvalue()
