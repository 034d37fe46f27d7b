"""What the cells of a figure must look like, from the numbers alone; the layout says where, the painter has no say."""

from dataclasses import dataclass

import numpy as np
from paper_drawings import largest_error
from PIL import Image
from PySide6.QtGui import QColor

from attnviz import colour
from attnviz.figure import leak_map
from attnviz.figure.places import Box
from attnviz.figure.row_sheet import RowDrawing
from attnviz.frames import CellClass, Scale, shown_class

SMALL, CROSSED = 12, 28  # pixels a side from which hidden cells are hatched, and have a cross


@dataclass
class Cells:
    """A map's place on the sheet, its cells' colours 0xffRRGGBB (r, c) and what they are; ``looked`` at are some."""

    place: Box
    rgb: np.ndarray
    kinds: np.ndarray
    looked: np.ndarray

    @property
    def side(self):
        n_rows, n_cols = self.rgb.shape
        return min(self.place.height / n_rows, self.place.width / n_cols)

    def points(self, zoom):
        """(x, y) of a pixel in each cell that is looked at, on a sheet ``zoom`` times as large, and their colours.

        It is the cell's middle; beside it where a sign stands there.
        """
        rows, cols = np.nonzero(self.looked)
        n_rows, n_cols = self.rgb.shape
        signed = (self.kinds[rows, cols] != CellClass.ORDINARY) & (self.side >= SMALL)
        crossed = self.kinds[rows, cols] == CellClass.MASKED
        aside = np.where(crossed, 0.4 * np.clip(0.28 * self.side, 17, 44), 0.36 * self.side)
        xs = self.place.x + (cols + 0.5) * self.place.width / n_cols + np.where(signed, aside, 0)
        ys = self.place.y + (rows + 0.5) * self.place.height / n_rows
        return (xs * zoom).astype(int), (ys * zoom).astype(int), self.rgb[rows, cols]

    def nearest(self):
        """Every pixel of the map's place, which takes the colour of the cell under its middle, and where it begins."""
        n_rows, n_cols = self.rgb.shape
        xs, ys = np.arange(int(self.place.width)), np.arange(int(self.place.height))
        rows = ((ys + 0.5) * n_rows / self.place.height).astype(int)
        cols = ((xs + 0.5) * n_cols / self.place.width).astype(int)
        return int(self.place.x), int(self.place.y), self.rgb[np.ix_(rows, cols)]


def cells(place, values, kinds, scale, style, looked=None):
    """`Cells` of ``values`` (r, c) that are ``kinds`` (r, c), coloured by `colour` and the style's grounds."""
    values = np.asarray(values)
    kinds = np.where(np.isnan(values), np.uint8(CellClass.NAN), kinds).astype(np.uint8)
    rgb = colour.paint_values(values, kinds, scale, "viridis")
    shown = shown_class(kinds)
    for kind, ground in (CellClass.MASKED, style.masked), (CellClass.PADDED, style.padded):
        rgb = np.where(shown == kind, np.uint32(ground.rgb()), rgb)
    looked = np.ones(shown.shape, bool) if looked is None else looked
    side = min(place.height / shown.shape[0], place.width / shown.shape[1])
    if SMALL <= side < CROSSED:
        looked = looked & (shown != CellClass.MASKED)  # there is hatching all over
    return Cells(place, rgb, shown, looked)


# -------------------------------------------------------------------------------------------------------- the numbers


def future(n_queries, n_keys):
    return np.triu(np.ones((n_queries, n_keys), bool), 1 + n_keys - n_queries)


def kinds_of(values, masked):
    """Ordinary, zero or masked."""
    kinds = np.where(values == 0, CellClass.ZERO, CellClass.ORDINARY)
    return np.where(masked, CellClass.MASKED, kinds).astype(np.uint8)


def pooled(values, masked, factor):
    """The largest of factor × factor cells, the last ones partial; hidden are those of which all cells are."""
    starts = [np.arange(0, side, factor) for side in values.shape]

    def most(plane):
        return np.maximum.reduceat(np.maximum.reduceat(plane, starts[0], axis=0), starts[1], axis=1)

    return most(values), ~most(~masked)


def heads(figure, engine, drawing, style):
    """Maps of one stage of some heads, from the arrays that an NPZ holds."""
    spec, sheet, arrays = figure.spec, drawing._sheet, engine.arrays(figure.spec).stages
    values = np.asarray(arrays[figure.view.stage])
    masked = future(*values.shape[1:]) & (spec.mask != "none")
    n_keys = values.shape[2]
    scale = Scale(0.0, float(values.max())) if n_keys <= 32 else Scale(0.1 / n_keys, float(values.max()), "log")
    found = []
    for name, panel in zip(sheet.panels, sheet.plan.panels, strict=True):
        own = values[int(name.removeprefix("head:"))]
        level = 1
        while level * panel.map_rect.width < n_keys:
            level *= 2
        own, hidden = pooled(own, masked, level)
        kinds = kinds_of(own, hidden)
        if figure.view.stage == "dropped_weights":
            kinds[(kinds == CellClass.ZERO)] = CellClass.DROPPED
        place = panel.map_rect
        whole = Box(place.x, place.y, place.width * len(own) * level / n_keys, place.height * len(own) * level / n_keys)
        found.append(cells(whole, own, kinds, scale, style))
    return found


def compared(figure, answer, drawing, style):
    maps, places = answer.maps, [place for _, place in drawing.maps]
    wanted = [(maps.a, maps.a_classes, maps.scale), (maps.b, maps.b_classes, maps.scale)]
    np.testing.assert_allclose(maps.difference, maps.b - maps.a, atol=1e-7)
    if figure.shows == "difference":
        wanted.append((maps.difference, maps.difference_classes, maps.difference_scale))
    return [cells(place, *one, style) for place, one in zip(places, wanted, strict=True)]


def gallery(_figure, answer, drawing, style):
    return [
        cells(place, one.values, one.classes, answer.scale, style)
        for (_, place), one in zip(drawing.maps, answer.exhibits, strict=True)
    ]


def dropout(_figure, answer, drawing, style):
    most = float(answer.whole_map[~answer.hidden_map].max())
    kinds = np.where(answer.hidden_map, CellClass.MASKED, CellClass.ORDINARY)
    return [
        cells(place, values, kinds, Scale(0.0, most), style)
        for (_, place), values in zip(drawing.maps, (answer.whole_map, answer.mean_map), strict=True)
    ]


def heads_study(_figure, answer, drawing, style):
    scale = Scale(0.0, float(answer.product.at_once.max()))
    return [
        cells(place, values, np.full(values.shape, CellClass.ORDINARY), scale, style)
        for (_, place), values in zip(drawing.maps, answer.product.at_once, strict=True)
    ]


def rounds(_figure, answer, drawing, style):
    """The last round's map: its last row, and what the mask hides; the rows before are paled."""
    [(_, place)] = drawing.maps
    values, hidden = answer.maps[-1], answer.hidden_maps[-1]
    looked = hidden.copy()
    looked[-1] = True
    return [
        cells(place, values, np.where(hidden, CellClass.MASKED, CellClass.ORDINARY), Scale(0.0, 1.0), style, looked)
    ]


def exam(_figure, answer, drawing, style):
    found = []
    for (_, place), curve in zip(drawing.maps, answer.curves, strict=True):
        weights = curve.weights[-1]
        masked = future(*weights.shape) & (weights == 0) & (curve.mask != "none")
        found.append(
            cells(place, weights, np.where(masked, CellClass.MASKED, CellClass.ORDINARY), Scale(0.0, 1.0), style)
        )
    return found


def leaks(_figure, answer, plan, style):
    """The first reading's map; ``plan`` says where it lies."""
    reading, rect = answer.readings[0], plan.cells
    place = Box(rect.x(), rect.y(), rect.width(), rect.height())
    rgb = leak_map.cell_colours(reading.moved, reading.hidden, style)
    return [Cells(place, rgb, np.full(rgb.shape, CellClass.ORDINARY), np.ones(rgb.shape, bool))]


STUDIES = {
    "a-b": compared, "difference": compared, "gallery": gallery, "dropout": dropout, "heads-study": heads_study,
    "rounds": rounds, "exam": exam, "leaks": leaks,
}  # fmt: skip


def bars(weights, rooms, style, zoom):
    """Points (x, y) in the bars of a row and beside their ends, and the colours there."""
    points = []
    for room, weight in zip(rooms, weights, strict=True):
        end = room.width() * weight  # few keys: the whole track is 100 %
        for x, ink in (end / 2, style.accent), (end + 3, style.card):
            if weight > 0 and x < room.width() - 3:
                points.append(((room.left() + x) * zoom, room.center().y() * zoom, QColor(ink).rgb()))
    return tuple(np.array(points).astype(np.int64).T)


# --------------------------------------------------------------------------------------------------------- the places


def noted_places(monkeypatch):
    """A dict that is filled while a figure is painted: the plan of a leak's map, the rooms of a row's bars."""
    noted = {"bars": []}
    paint_cells, paint_bar = leak_map._paint_cells, RowDrawing._paint_bar

    def leak_cells(painter, plan, pixels):
        noted["leaks"] = plan
        paint_cells(painter, plan, pixels)

    def bar(drawing, painter, room, key, most):
        noted["bars"].append(room)
        paint_bar(drawing, painter, room, key, most)

    monkeypatch.setattr(leak_map, "_paint_cells", leak_cells)
    monkeypatch.setattr(RowDrawing, "_paint_bar", bar)
    return noted


# --------------------------------------------------------------------------------------------------------------- GIFs


def parts(rgb):
    return np.stack([rgb.astype(np.int64) >> shift & 255 for shift in (16, 8, 0)], axis=-1)


def gif_pictures(path):
    """Each picture of a file as 0xffRRGGBB, how long it stands in ms, and the colours (n, 3) of its palette."""
    shown, times = [], []
    with Image.open(path) as file:
        palette = np.array(file.getpalette()).reshape(-1, 3)
        for n in range(file.n_frames):
            file.seek(n)
            red, green, blue = np.moveaxis(np.asarray(file.convert("RGB")).astype(np.uint32), -1, 0)
            shown.append(np.uint32(0xFF000000) | red << np.uint32(16) | green << np.uint32(8) | blue)
            times.append(file.info["duration"])
    return shown, times, palette


def palette_error(shown, wanted, palette):
    """The largest difference of red, green or blue of two arrays of 0xffRRGGBB.

    Every colour shown is the one of ``palette`` that is nearest to what is wanted: those in it are kept as they are.
    """
    pairs = np.unique(np.stack([wanted.ravel(), shown.ravel()]), axis=1)
    asked, found = parts(pairs[0]), parts(pairs[1])
    for start in range(0, len(asked), 4096):
        some = slice(start, start + 4096)
        away = ((asked[some, None] - palette) ** 2).sum(axis=2).min(axis=1)
        np.testing.assert_array_equal(((asked[some] - found[some]) ** 2).sum(axis=1), away)
    return largest_error(pairs[1], pairs[0])
