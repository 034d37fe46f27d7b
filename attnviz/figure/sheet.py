"""Maps of heads on paper: laid out first, since only then is known what is to be computed for them, and then drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter

from attnviz import colour
from attnviz.figure import layout, marks, paint
from attnviz.figure.colour_bars import paint_colour_bar
from attnviz.figure.drawing import Drawing, Step
from attnviz.figure.fitting import fitted
from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width, whole_or_none
from attnviz.figure.glosses import glossed
from attnviz.figure.paper_layout import SheetWords, margin_of, paper_layout
from attnviz.figure.styles import Style, style_of_theme
from attnviz.figure.units import unit_of
from attnviz.figure.words import wrapped
from attnviz.frames import CellClass, Crop, Frame, Outline, Scale, level_for
from attnviz.session import Cell, Picture
from attnviz.spec import QUERY_KEY_STAGES, UNSIGNED_STAGES, AttentionSpec, Paper, View, Viewport

_LARGE_FROM = 2.0
_TITLE, _PRINTED_TITLE, _SECOND, _SMALL = 25, 16, 14, 13


@dataclass(frozen=True, slots=True)
class Sheet:
    """Where everything stands on ``paper``: the panels shown, their places, and the cells that each map shows.

    ``title`` and ``headings`` are what stands above, in lines; the captions below have as many lines as the layout.
    """

    paper: Paper
    panels: tuple[str, ...]
    plan: layout.FigureLayout
    rows: layout.Span
    cols: layout.Span
    shape: tuple[int, int]
    title: str
    headings: tuple[str, ...]

    @property
    def crop(self) -> Crop:
        """The cells that each map shows."""
        return Crop(self.rows, self.cols, self.shape)

    @property
    def is_part(self) -> bool:
        """Whether a window of the map is shown rather than all of it."""
        return not self.crop.is_whole

    @property
    def window(self) -> paint.Window:
        """The cells shown, as the painter takes them."""
        return float(self.rows[0]), float(self.rows[1]), float(self.cols[0]), float(self.cols[1])

    @property
    def has_large_cells(self) -> bool:
        """Whether a cell is several rows of pixels high."""
        return self.plan.panels[0].map_rect.height >= _LARGE_FROM * (self.rows[1] - self.rows[0])

    @property
    def viewport(self) -> Viewport:
        """What to compute: as many pixels as a map has on the sheet, of the cells that it shows."""
        place = self.plan.panels[0].map_rect
        pixels = (max(1, int(place.height)), max(1, int(place.width)))
        return Viewport(pixels=pixels, rows=self.rows, cols=self.cols) if self.is_part else Viewport(pixels=pixels)


def lay_out(
    outline: Outline, spec: AttentionSpec, view: View, paper: Paper, heads: tuple[int, ...] = (),
    about: str | None = None, among: Sequence[tuple[Outline, AttentionSpec]] = (), picture: Picture | None = None,
) -> Sheet:  # fmt: skip
    """``view`` of ``outline`` on ``paper``, its window clipped: ``heads`` alone, else the head of the view, else all.

    ``about`` stands under the title in place of the settings of ``spec``, for numbers that no spec computes. ``among``
    are all the pictures of an animation, this one too: there is room for what stands around any of them, so that the
    maps stay where they are. Of a ``picture`` that is known the legend takes what it needs, not what it may need,
    unless several cells are a pixel: its frames are as large as the maps of the first layout.
    Needs a QGuiApplication: words are measured.
    """
    load_fonts()
    outline = glossed(outline)
    panels = outline.panels
    wanted = tuple(f"head:{head}" for head in heads or (() if view.head is None else (view.head,)))
    if wanted and set(wanted) <= set(panels):
        panels = wanted
    rows, cols = layout.clipped(outline, view.rows, view.cols)
    shape = layout.map_shape(outline)
    unit, printed = unit_of(paper), paper.dpi is not None
    width = max(paper.width - 2 * margin_of(unit, printed=printed), 1)
    title = marks.stage_title(outline.stage, spec.mask) if paper.title is None else paper.title

    def second_lines(outline: Outline, spec: AttentionSpec) -> tuple[str, ...]:
        second = marks.circumstances(spec, outline.stage) if about is None else about
        if title and paper.title is not None:
            shown = marks.stage_title(outline.stage, spec.mask)
            second = f"{shown} · {second}"  # a title of one's own need not say what it shows
        return wrapped(sized(_SECOND * unit), second, width) if paper.caption else ()

    headings = second_lines(outline, spec)
    n_headings = max(len(headings), *(len(second_lines(*one)) for one in among)) if among else len(headings)
    words = SheetWords(
        title=bool(title), headings=n_headings, captions=0, legend=paper.legend, colour_bar=paper.colour_bar,
        labels=paper.labels, axes=paper.labels,
    )  # fmt: skip
    known = picture is not None and all(frame.level == 1 for frame in picture.heads)
    entries = marks.legend_entries(picture, present_only=True) if picture is not None and known else ()
    rows_of_entries = paint.legend_places(entries, width, unit)
    if known:
        words = replace(words, legend_lines=max((row + 1 for row, _ in rows_of_entries), default=0))
    subject = replace(layout.subject_of(outline, (rows, cols)), large=not printed, upright=printed)
    if any(layout.subject_of(one, (rows, cols)).sums for one, _ in among):
        subject = replace(subject, sums=True)

    def placed(captions: int, aside: float = 0.0) -> Sheet:
        said = replace(words, captions=captions, aside=aside)
        plan = paper_layout(subject, len(panels), paper.size, unit, said, printed=printed)
        return Sheet(paper, panels, plan, rows, cols, shape, title, headings)

    sheet = placed(2 if paper.caption else 0)
    if not paper.caption:
        return sheet
    place = sheet.plan.panels[0].map_rect
    level = max(level_for(rows[1] - rows[0], int(place.height)), level_for(cols[1] - cols[0], int(place.width)))
    signed = outline.stage not in UNSIGNED_STAGES
    captions = _captions(sheet, outline, level, view.pooling, signed=signed)
    if len(captions) == words.legend_lines == 1:  # a word or two of origin need no line of their own
        small = sized(_SMALL * unit)
        used = paint.legend_width(entries[-1].text, small, unit) + rows_of_entries[-1][1]
        aside = text_width(small, captions[0]) + 1
        if used + 24 * unit + aside <= width:
            return placed(1, aside)
    return placed(len(captions))


class PictureDrawing(Drawing):
    """``picture`` on ``sheet``; blank where it has no frames. ``selected`` wears the frame of the current row.

    ``scales`` are the colours of panels, and ``looks`` have room in the legend, where other pictures have them too.
    """

    def __init__(
        self, picture: Picture, sheet: Sheet, *, selected: Cell | None = None,
        scales: Mapping[str, Scale] | None = None, looks: Sequence[marks.LegendEntry] = (),
    ) -> None:  # fmt: skip
        self._sheet, self._selected, self._looks = sheet, selected, looks
        if picture.outline is not None:
            picture = replace(picture, outline=glossed(picture.outline))
        self._frames = {
            name: fitted(picture.frames[name], picture.view.colours, place.map_rect, sheet.window)
            for name, place in zip(sheet.panels, sheet.plan.panels, strict=True)
            if name in picture.frames
        }
        bound, colours = sheet.paper.bound, picture.view.colours
        for name, frame in self._frames.items():
            if scales is not None and name in scales:
                self._frames[name] = _rescaled(frame, scales[name], colours)
        if bound is not None:
            self._frames = {name: _bounded(frame, bound, colours) for name, frame in self._frames.items()}
        self._picture = replace(picture, frames=MappingProxyType(self._frames))

    @property
    def size(self) -> tuple[int, int]:
        return self._sheet.paper.size

    @property
    def style(self) -> Style:
        return style_of_theme(self._sheet.paper.theme)

    @property
    def has_large_cells(self) -> bool:
        return self._sheet.has_large_cells

    @property
    def scales(self) -> dict[str, Scale]:
        """By panel, what the colours stand for; not of a panel without an ordinary number, which says nothing of it."""
        return {
            name: frame.scale for name, frame in self._frames.items() if (frame.classes & CellClass.ORDINARY).any()
        }  # fmt: skip

    @property
    def legend(self) -> tuple[marks.LegendEntry, ...]:
        """What the legend says."""
        return marks.legend_entries(self._picture, present_only=True)

    def paint(self, painter: QPainter, step: Step) -> None:
        load_fonts()
        sheet, outline, style, paper = self._sheet, self._picture.outline, self.style, self._sheet.paper
        if outline is None:
            return
        places = dict(zip(sheet.panels, sheet.plan.panels, strict=True))
        self._paint_words(painter, outline)
        for done, (name, frame) in enumerate(self._frames.items(), 1):
            paint.paint_panel(
                painter, places[name], frame, outline, style, window=sheet.window, numbers=paper.numbers,
                decimals=paper.decimals, selected=self._selected,
            )  # fmt: skip
            step(done / len(self._frames))

    def _paint_words(self, painter: QPainter, outline: Outline) -> None:
        """Everything on the sheet that is not a panel: headings, axes, colour bar, captions and legend."""
        sheet, plan, style = self._sheet, self._sheet.plan, self.style
        said = [sheet.title] if sheet.title else []
        title = (sized((_TITLE if sheet.paper.dpi is None else _PRINTED_TITLE) * plan.unit), style.ink)
        small = (sized(_SECOND * plan.unit), style.muted)
        pens = [*([title] if sheet.title else []), *[small] * len(sheet.headings)]
        _write_lines(painter, plan.headings, [*said, *sheet.headings], pens)
        if not self._frames:
            return
        first = next(iter(self._frames.values()))
        if sheet.paper.colour_bar:
            paint_colour_bar(painter, plan, [*self._frames.values()], self._picture.view, style)
        if plan.axes:
            _name_axes(painter, plan, outline, style)
        counted = bool(self.legend)
        said_of = first.level, first.pooling
        captions = _captions(sheet, outline, *said_of, signed=first.scale.diverging, counted=counted)
        captions = captions[: len(plan.captions)]
        _write_lines(painter, plan.captions, captions, [(sized(_SMALL * plan.unit), style.muted)] * len(captions))
        if sheet.paper.legend:
            bare = replace(plan, captions=())
            paint.paint_legend(
                painter, bare, self._picture, style, window=sheet.window, present_only=True, room=self._looks
            )


def _write_lines(
    painter: QPainter, boxes: tuple[layout.Box, ...], texts: list[str] | tuple[str, ...],
    pens: list[tuple[QFont, QColor]],
) -> None:  # fmt: skip
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for box, text, (font, pen) in zip(boxes, texts, pens, strict=False):
        painter.setFont(font)
        painter.setPen(pen)
        draw_text(painter, QRectF(*box), Qt.AlignmentFlag.AlignLeft, text)
    painter.restore()


def _bounded(frame: Frame, bound: float, colours: str) -> Frame:
    """``frame`` in colours that end at ``bound``, and at −``bound`` where they diverge."""
    low = -bound if frame.scale.diverging else 0.0
    return _rescaled(frame, replace(frame.scale, low=low, high=bound, curve="linear"), colours)


def _rescaled(frame: Frame, scale: Scale, colours: str) -> Frame:
    """``frame`` in the colours of ``scale``."""
    if frame.scale == scale:
        return frame
    if scale.quantity == "value":
        rgb = colour.paint_values(frame.values, frame.classes, scale, colours)
    else:  # what is coloured is not what is in the frame
        rgb = colour.recoloured(frame.rgb, frame.scale, scale, colours)
    return replace(frame, scale=scale, rgb=rgb)


def _name_axes(painter: QPainter, plan: layout.FigureLayout, outline: Outline, style: Style) -> None:
    """What a row is, turned, and what a column is."""
    rows, cols = axis_names(outline.stage)
    beside, below = (QRectF(*box) for box in plan.axes)
    draw = partial(draw_text, painter)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    font = sized(_SMALL * plan.unit)
    painter.setFont(font)
    painter.setPen(style.muted)
    draw(below, Qt.AlignmentFlag.AlignHCenter, whole_or_none(font, cols, below.width()))
    painter.translate(beside.center())
    painter.rotate(-90)
    turned = QRectF(-beside.height() / 2, -beside.width() / 2, beside.height(), beside.width())
    draw(turned, Qt.AlignmentFlag.AlignHCenter, whole_or_none(font, rows, turned.width()))
    painter.restore()


def axes_left_out(plan: layout.FigureLayout, stage: str) -> tuple[str, ...]:
    """Names of axes for which there is no room beside the maps."""
    if not plan.axes:
        return ()
    beside, below = plan.axes
    font = sized(_SMALL * plan.unit)
    rooms = zip(axis_names(stage), (beside.height, below.width), strict=True)
    return tuple(name for name, room in rooms if not whole_or_none(font, name, room))


def axis_names(stage: str) -> tuple[str, str]:
    """What a row and what a column of a stage's map is."""
    if stage in QUERY_KEY_STAGES:
        return QCoreApplication.translate("Figure", "query"), QCoreApplication.translate("Figure", "key")
    return QCoreApplication.translate("Figure", "token"), QCoreApplication.translate("Figure", "dimension")


# ---------------------------------------------------------------------------------------------------------- captions


def _captions(
    sheet: Sheet, outline: Outline, level: int, pooling: str, *, signed: bool, counted: bool = True
) -> tuple[str, ...]:  # fmt: skip
    """The lines below the maps: which cells are shown, what a pixel is, and where the numbers come from."""
    unit = sheet.plan.unit
    width = max(sheet.paper.width - 2 * margin_of(unit, printed=sheet.paper.dpi is not None), 1)
    said = (sheet_caption(sheet, outline, level, pooling, signed=signed, counted=counted), outline.origin)
    return tuple(line for text in said for line in wrapped(sized(_SMALL * unit), text, width))


def sheet_caption(
    sheet: Sheet, outline: Outline, level: int, pooling: str, *, signed: bool = False, counted: bool = True
) -> str:  # fmt: skip
    """Which cells of the map are shown, where it is a part; what a pixel is, where it covers several cells."""
    parts = [marks.crop_words(sheet.crop, outline.stage)] if sheet.is_part else []
    if level > 1:
        parts.append(marks.pixel_words(level, pooling, signed=signed))
    if sheet.is_part and sheet.paper.legend and counted:
        parts.append(QCoreApplication.translate("Figure", "counts are of the whole map"))
    return " · ".join(parts)
