"""What ours is compared with on the screen: pyqtgraph's plots, matplotlib's canvas, and the textbook's torch."""

import numpy as np
import torch


def textbook_weights(q, k, triangle):
    """Causal weights (H, L, L) in fresh tensors: scores / 8, masked_fill, softmax."""
    scores = (q @ k.transpose(1, 2)) / 8
    return torch.softmax(scores.masked_fill(triangle, float("-inf")), dim=-1)


def triangle_of(length):
    """The cells that lie in the future."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


class Plots:
    """A shown `GraphicsLayoutWidget` of PlotItems with an `ImageItem` of float32 each.

    With ``levels`` the items have a lookup table of 256 colours and these fixed levels, else they choose levels for
    every array. Close it: a window that is open when the interpreter ends brings it down.
    """

    def __init__(self, count, across, size=(1920, 1080), *, levels=None, arrays=None):
        import pyqtgraph as pg

        self._levels = levels
        self.window = pg.GraphicsLayoutWidget(size=size)
        self.items = []
        for place in range(count):
            plot = self.window.addPlot(row=place // across, col=place % across)
            plot.invertY(True)
            item = pg.ImageItem(axisOrder="row-major") if levels is None else _with_table(pg, levels)
            if arrays is not None:
                item.setImage(arrays[place], **self._fixed())
            plot.addItem(item)
            self.items.append(item)
        self.window.resize(*size)
        self.window.show()

    def _fixed(self):
        return {} if self._levels is None else {"levels": self._levels}

    def show_arrays(self, arrays):
        """Give every item its array and paint before this returns."""
        for item, array in zip(self.items, arrays, strict=True):
            item.setImage(array, **self._fixed())
        self.paint()

    def paint(self):
        self.window.viewport().repaint()

    def close(self):
        self.window.close()


def _with_table(pg, levels):
    from attnviz import colour

    table = np.stack([colour.table("viridis") >> shift & 255 for shift in (16, 8, 0)], 1).astype(np.uint8)
    return pg.ImageItem(axisOrder="row-major", lut=table, levels=levels)


class Axes:
    """A shown QtAgg canvas of matplotlib, an `imshow` a head, ticks and all; ``draw`` renders, the blit comes later."""

    def __init__(self, count, length, size=(1920, 1080)):
        from matplotlib.backends.backend_qtagg import FigureCanvasQTAgg
        from matplotlib.figure import Figure

        self.canvas = FigureCanvasQTAgg(Figure(figsize=(size[0] / 100, size[1] / 100), dpi=100))
        axes = self.canvas.figure.subplots(3, -(-count // 3)).ravel()
        nothing = np.zeros((length, length), np.float32)
        self.images = [one.imshow(nothing, vmin=0.0, vmax=0.05) for one in axes[:count]]
        self.canvas.resize(*size)
        self.canvas.show()

    def show_arrays(self, arrays):
        for image, array in zip(self.images, arrays, strict=True):
            image.set_data(array)
        self.canvas.draw()

    def close(self):
        self.canvas.close()
