"""Pictures on a window off screen, 1920 × 1080: from queries and keys, per update, and 144 heads at once."""

import gc
import time

import torch
from PySide6.QtWidgets import QApplication

from attnviz import rendering
from attnviz.engine import Engine
from attnviz.figure.fonts import load_fonts
from attnviz.inputs import open_source
from attnviz.session import Snapshot
from attnviz.spec import RandomQK, View, Viewport, edited, make_spec
from attnviz.views.heatmaps import Heatmaps
from tests.benchmarks.arms import CORES, compared, interleaved
from tests.benchmarks.peers import Axes, Plots, textbook_weights, triangle_of

HEADS, LENGTH, SIZE = 12, 1024, (1920, 1080)
_UPDATES = 5


def application():
    """The one QApplication, with our fonts; keep what this returns."""
    made = QApplication.instance() or QApplication(["benchmark"])
    load_fonts()
    return made


def snapshot_of(picture):
    return Snapshot(spec=picture.spec, view=picture.view, picture=picture)


def shown_heatmaps(kind=Heatmaps, size=SIZE):
    """A shown, empty widget."""
    heatmaps = kind()
    heatmaps.resize(*size)
    heatmaps.show()
    QApplication.processEvents()
    return heatmaps


def viewport_of(heatmaps, engine, spec):
    """The pixels that the widget asks for once it shows ``spec``'s picture, which is then presented; no thumbnails."""
    asked = []
    heatmaps.viewport_changed.connect(asked.append)
    picture = rendering.collect(engine, spec, View(), Viewport(pixels=(64, 64)))
    heatmaps.present(snapshot_of(picture))
    heatmaps.repaint_now()
    QApplication.processEvents()
    heatmaps.viewport_changed.disconnect(asked.append)
    return Viewport(pixels=asked[-1].pixels, heads=asked[-1].heads)


def _rest(seconds):
    QApplication.processEvents()
    time.sleep(seconds)


def painted(repeats):
    """Queries and keys of 12 × 1,024 to a painted picture, all cores, beside matplotlib and plain pyqtgraph.

    Ours: `Engine.stream` to its end for a spec of another scale than the last (a power of two, so that weights are
    computed anew and queries and keys are not), presented and painted by the heads' widget, with labels, legend and
    colour bar. Peers: the textbook's torch in fresh tensors (scores, masked_fill, softmax), then `set_data` on
    twelve images and `draw` of matplotlib's QtAgg canvas (its blit to the window is left out), or `setImage` of
    float32 with automatic levels on twelve ImageItems in PlotItems and a repaint.
    """
    held = application()
    torch.set_num_threads(CORES)
    engine = Engine()
    spec = make_spec(RandomQK(length=LENGTH), num_heads=HEADS, d_out=64 * HEADS)
    scales = [edited(spec, scale=scale) for scale in (0.125, 0.0625)]
    heatmaps = shown_heatmaps()
    viewport = viewport_of(heatmaps, engine, spec)
    given, triangle = open_source(spec), triangle_of(LENGTH)
    plots, axes = Plots(HEADS, 4), Axes(HEADS, LENGTH)
    held.processEvents()

    def ours():
        scales.reverse()
        heatmaps.present(snapshot_of(rendering.collect(engine, scales[0], View(), viewport)))
        QApplication.processEvents()

    def peer(shown):
        torch.set_num_threads(CORES)
        with torch.inference_mode():
            shown.show_arrays(textbook_weights(given.queries, given.keys, triangle).numpy())

    arms = {"ours": ours, "matplotlib": lambda: peer(axes), "pyqtgraph": lambda: peer(plots)}
    taken = interleaved(arms, repeats, rest=_rest)
    for window in (plots, axes, heatmaps):
        window.close()
    engine.close()
    return [
        compared("painted", taken["ours"], taken["matplotlib"], 0.07, "matplotlib QtAgg", pixels=viewport.pixels),
        compared("painted-plain", taken["ours"], taken["pyqtgraph"], 0.3, "plain pyqtgraph"),
    ]


def update(repeats):
    """The GUI thread's time for twelve new pictures, beside twelve ImageItems of float32 with table and fixed levels.

    Ours: `Heatmaps.present` of frames of the widget's pixels, computed before, and the painting that it asks for: maps
    and what tells of their numbers, while the tokens' names stay. Peer: `setImage` of the same weights, 1,024 × 1,024
    float32, on twelve PlotItems, and a repaint (the painting that they ask for by themselves takes twice as long). Five
    updates in a row make a sample, of two pictures in turn; no worker runs.
    """
    held = application()
    engine = Engine()
    spec = make_spec(RandomQK(length=LENGTH), num_heads=HEADS, d_out=64 * HEADS)
    heatmaps = shown_heatmaps()
    viewport = viewport_of(heatmaps, engine, spec)
    snapshots, arrays = [], []
    for seed in (1, 2):
        other = edited(spec, seed=seed)
        snapshots.append(snapshot_of(rendering.collect(engine, other, View(), viewport)))
        given = open_source(other)
        arrays.append(textbook_weights(given.queries, given.keys, triangle_of(LENGTH)).numpy())
    engine.close()
    plots = Plots(HEADS, 4, levels=(0.0, 0.05), arrays=arrays[0])
    held.processEvents()

    def ours():
        for number in range(_UPDATES):
            heatmaps.present(snapshots[number % 2])
            QApplication.processEvents()

    def peer():
        for number in range(_UPDATES):
            plots.show_arrays(arrays[number % 2])

    taken = interleaved({"ours": ours, "peer": peer}, repeats, rest=_rest)
    for window in (plots, heatmaps):
        window.close()
    each = {arm: [seconds / _UPDATES for seconds in row] for arm, row in taken.items()}
    return [compared("update", each["ours"], each["peer"], 0.15, "ImageItem float32", pixels=viewport.pixels)]


def overview(repeats):
    """Building the overview of 144 heads to its first painting, beside 144 plots.

    Ours: `Heatmaps` made, shown, given a picture of 144 heads of 80 pixels a side, and painted. Peer: a
    `GraphicsLayoutWidget` of 144 PlotItems with an ImageItem of the same pixels as float32, shown and painted.
    """
    held = application()
    heads = 144
    spec = make_spec(RandomQK(length=512), num_heads=heads, d_out=64 * heads)
    engine = Engine()
    picture = rendering.collect(engine, spec, View(), Viewport(pixels=(128, 128)))
    engine.close()
    shown, arrays = snapshot_of(picture), [frame.values for frame in picture.heads]

    def ours():
        start = time.perf_counter()
        heatmaps = Heatmaps()
        heatmaps.resize(*SIZE)
        heatmaps.show()
        heatmaps.present(shown)
        heatmaps.repaint_now()
        seconds = time.perf_counter() - start
        _dispose(heatmaps)
        return seconds

    def peer():
        start = time.perf_counter()
        plots = Plots(heads, 12, arrays=arrays)
        plots.paint()
        seconds = time.perf_counter() - start
        _dispose(plots.window)
        return seconds

    taken = interleaved({"ours": ours, "peer": peer}, repeats, rest=_rest)
    held.processEvents()
    return [compared("overview", taken["ours"], taken["peer"], 0.02, "144 PlotItems")]


def _dispose(window):
    window.close()
    window.deleteLater()
    QApplication.sendPostedEvents(None, 52)  # QEvent.DeferredDelete
    QApplication.processEvents()
    gc.collect()
