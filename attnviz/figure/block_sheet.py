"""A figure of several blocks on one sheet: what stands above them, the blocks, and what stands below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QFont, QPainter

from attnviz.figure.arranging import Measured, arranged
from attnviz.figure.blocks import GAP, Block, CountsBlock, PlotBlock, TableBlock, paint_lines
from attnviz.figure.cells import paint_swatch
from attnviz.figure.drawing import Drawing, Step
from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.figure.map_blocks import MapsBlock, looks_of
from attnviz.figure.marks import look_words
from attnviz.figure.matrix_map import Matrix
from attnviz.figure.paper_layout import line_of, margin_of
from attnviz.figure.places import Box
from attnviz.figure.styles import Style, style_of_theme
from attnviz.figure.tables import ink_of
from attnviz.figure.units import unit_of
from attnviz.figure.words import SEPARATOR, wrapped
from attnviz.frames import CellClass
from attnviz.spec import Paper

_TITLE, _PRINTED_TITLE, _SENTENCE, _SECOND, _SMALL = 25, 16, 16, 14, 13
_PRINTED_SENTENCE: Final = 13
_LARGER: Final = (1.5, 1.3, 1.2, 1.1)
"""Blocks with much room on a slide are drawn so much larger, type and all."""

_SMALLEST: Final = 0.3
_LARGE_FROM: Final = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What a figure shows, before anything has a place.

    ``title`` what it is, ``circumstances`` the settings that matter, ``sentence`` what came out, in the ink of
    ``role``. ``blocks`` stand in reading order; where there is no room for all, those are kept that weigh most
    together, and the sheet says so. ``captions`` stand below, and ``notes``, each with a name: they explain, and are
    left out before any block is. The sentence goes where it leaves room for no block at all.
    """

    title: str
    blocks: tuple[Block, ...]
    circumstances: str = ""
    sentence: str = ""
    role: str = "ink"
    captions: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """A line of words in its box."""

    words: str
    box: Box
    font: QFont
    role: str


@dataclass(frozen=True, slots=True, eq=False)
class _Swatch:
    """A look of cells that are no numbers, and its word."""

    kind: CellClass | None
    words: str
    box: Box


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Where everything stands: lines above and below, and between them blocks at a ``unit`` of their own."""

    head: tuple[_Line, ...]
    foot: tuple[_Line, ...]
    swatches: tuple[_Swatch, ...]
    placed: tuple[tuple[Block, Box], ...]
    unit: float
    left_out: tuple[str, ...]
    told: bool
    """Whether the sentence has room."""

    @property
    def lines(self) -> tuple[_Line, ...]:
        return *self.head, *self.foot


_LEAST_EASE: Final = 0.25
"""What stands beside the main block goes where it leaves that less than this of what shows it with ease."""


class BlocksDrawing(Drawing):
    """``contents`` laid out on ``paper``. Needs a QGuiApplication: words are measured."""

    def __init__(self, contents: Contents, paper: Paper, plan: _Plan | None = None) -> None:
        load_fonts()
        self._paper = paper
        self._plan = plan or _Layout(contents, paper).plan()

    @property
    def size(self) -> tuple[int, int]:
        return self._paper.size

    @property
    def style(self) -> Style:
        return style_of_theme(self._paper.theme)

    @property
    def has_large_cells(self) -> bool:
        return all(place.height >= _LARGE_FROM * matrix.crop.size[0] for matrix, place in self.maps)

    @property
    def unit(self) -> float:
        """What type and gaps of the blocks are scaled by."""
        return self._plan.unit

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Everything that is drawn, none of it over another."""
        plan = self._plan
        return (
            *(line.box for line in plan.lines), *(one.box for one in plan.swatches), *(box for _, box in plan.placed)
        )  # fmt: skip

    @property
    def maps(self) -> tuple[tuple[Matrix, Box], ...]:
        """Every map, and where its cells lie."""
        unit, paper = self._plan.unit, self._paper
        blocks = ((block, box) for block, box in self._plan.placed if isinstance(block, MapsBlock))
        return tuple(pair for block, box in blocks for pair in block.places(box, unit, paper))

    @property
    def shown(self) -> tuple[str, ...]:
        """Names of the blocks that have room."""
        return tuple(block.name for block, _ in self._plan.placed)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of what has no room on this sheet."""
        return self._plan.left_out

    def paint(self, painter: QPainter, step: Step) -> None:
        load_fonts()
        plan, style = self._plan, self.style
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for line in plan.lines:
            painter.setFont(line.font)
            painter.setPen(ink_of(line.role, style))
            paint_lines(painter, line.box, (line.words,), line.box.height)
        unit = unit_of(self._paper)
        painter.setFont(sized(_SMALL * unit))
        for swatch in plan.swatches:
            self._paint_swatch(painter, swatch, unit)
        painter.restore()
        for done, (block, box) in enumerate(plan.placed, 1):
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            block.paint(painter, box, style, plan.unit, self._paper)
            painter.restore()
            step(done / len(plan.placed))

    def _paint_swatch(self, painter: QPainter, swatch: _Swatch, unit: float) -> None:
        box, side = swatch.box, _SMALL * unit
        square = QRectF(box.x, box.y + (box.height - side) / 2, side, side)
        sides = (min(place.height / one.crop.size[0], place.width / one.crop.size[1]) for one, place in self.maps)
        paint_swatch(painter, square, swatch.kind, self.style, cell=min(sides))
        painter.setPen(self.style.muted)
        left = side + 6 * unit
        rect = QRectF(box.x + left, box.y, box.width - left, box.height)
        draw_text(painter, rect, Qt.AlignmentFlag.AlignLeft, swatch.words)


def alike(moments: Sequence[Contents], paper: Paper) -> list[BlocksDrawing]:
    """Each of ``moments``, which have the same blocks, with everything where it stands in the last and fullest one.

    Looks of cells are explained in all that are in one of them: what follows one picture must not jump.
    """
    load_fonts()
    together = zip(*(_with_room(blocks) for blocks in zip(*(one.blocks for one in moments), strict=True)), strict=True)
    moments = [replace(one, blocks=blocks) for one, blocks in zip(moments, together, strict=True)]
    layouts = [_Layout(contents, paper) for contents in moments]
    room = _Layout(moments[-1], paper, before=tuple(one.contents for one in layouts[:-1]))
    plan = room.plan()
    places = {id(block): box for block, box in plan.placed}
    drawings = []
    for contents, layout in zip(moments, layouts, strict=True):
        pairs = zip(layout.contents.blocks, room.contents.blocks, strict=True)
        placed = tuple((own, places[id(there)]) for own, there in pairs if id(there) in places)
        head = tuple(layout.head(told=plan.told)[0])
        drawings.append(BlocksDrawing(contents, paper, replace(plan, head=head, placed=placed)))
    return drawings


def _with_room(blocks: Sequence[Block]) -> list[Block]:
    """One block in all pictures of an animation, with room for the words that it has in any of them."""
    found: list[Block] = []
    for block in blocks:
        if isinstance(block, PlotBlock | TableBlock | CountsBlock | MapsBlock):
            others = tuple(one.words for one in blocks if isinstance(one, type(block)))
            block = replace(block, words=replace(block.words, others=others))  # noqa: PLW2901
        if isinstance(block, TableBlock):
            tables = tuple(one.table for one in blocks if isinstance(one, TableBlock))
            block = replace(block, table=replace(block.table, others=tables))  # noqa: PLW2901
        if isinstance(block, MapsBlock) and isinstance(blocks[-1], MapsBlock):
            block = replace(block, like=replace(blocks[-1], words=block.words))  # noqa: PLW2901
        found.append(block)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Foot:
    """What stands below the blocks, which end at ``top``."""

    lines: tuple[_Line, ...]
    swatches: tuple[_Swatch, ...]
    top: float


class _Layout:
    """One figure on its way to its places, with room for what stood there ``before`` it in an animation."""

    def __init__(self, contents: Contents, paper: Paper, before: tuple[Contents, ...] = ()) -> None:
        self.paper = paper
        self.unit, self.printed = unit_of(paper), paper.dpi is not None
        self.line = line_of(self.unit, printed=self.printed)
        self.margin = margin_of(self.unit, printed=self.printed)
        self.width = max(paper.width - 2 * self.margin, 1.0)
        self.measured = {id(block): Measured(block) for block in contents.blocks}
        if before:
            seconds = (contents.circumstances, *(one.circumstances for one in before))
            font = sized(_SECOND * self.unit)
            longest = max(seconds, key=lambda text: len(wrapped(font, text, self.width)))
            contents = replace(contents, circumstances=longest)
        self.contents = contents if paper.caption else replace(contents, sentence="")
        moments = zip(contents.blocks, *(one.blocks for one in before), strict=True)
        self.looks = {
            id(blocks[0]): looks_of([one for one in blocks if isinstance(one, MapsBlock)]) for blocks in moments
        }

    def plan(self) -> _Plan:
        """As much as there is room for; at the worst one block, in smaller type than it should have."""
        contents = self.contents
        main = max(contents.blocks, key=lambda block: block.weight)
        ways = [(told, kept) for told in (True, False) for kept in _subsets(contents.blocks) if main in kept]
        for told, kept in ways[: None if contents.sentence else len(ways) // 2]:
            head, y = self.head(told=told)
            for count in range(len(contents.notes), -1, -1):
                foot = self._foot(kept, contents.notes[:count])
                found = self._placed(kept, self._area(y, foot))
                if found is not None:
                    return self._planned(head, foot, kept, *found, self._missing(kept, count, told=told), told=told)
        head, y = self.head(told=False)
        foot = self._foot((main,), ())
        area, boxes, times = self._area(y, foot), None, 1.0
        while boxes is None and times > _SMALLEST:
            times *= 0.95
            boxes = arranged((main,), area, self.unit * times, GAP * self.unit * times)
        missing = self._missing((main,), 0, told=not contents.sentence)
        return self._planned(head, foot, (main,), self.unit * times, boxes or [area], missing, told=False)

    def _missing(self, kept: Sequence[Block], notes: int, *, told: bool) -> list[str]:
        """Names of what has no room beside the blocks ``kept`` and the first ``notes``."""
        contents = self.contents
        words = [] if told else [QCoreApplication.translate("Figure", "what came out, in words")]
        others = [block.name for block in contents.blocks if block not in kept]
        return [*words, *others, *(name for name, _ in contents.notes[notes:])]

    def _area(self, y: float, foot: _Foot) -> Box:
        return Box(self.margin, y, self.width, max(foot.top - y, 1.0))

    @staticmethod
    def _planned(
        head: Sequence[_Line], foot: _Foot, blocks: Sequence[Block], unit: float, boxes: Sequence[Box],
        left_out: Sequence[str], *, told: bool,
    ) -> _Plan:  # fmt: skip
        spare = max(foot.top - max(box.bottom for box in boxes), 0.0)
        boxes = [box.moved(0, math.floor(spare / 3)) for box in boxes]  # what needs less room stands near the middle
        placed = tuple(zip(blocks, boxes, strict=True))
        return _Plan(tuple(head), foot.lines, foot.swatches, placed, unit, tuple(left_out), told)

    def _placed(self, blocks: Sequence[Block], area: Box) -> tuple[float, list[Box]] | None:
        """The largest type at which every block still has room to spare, and the boxes."""
        gap, measured = GAP * self.unit, [self.measured[id(block)] for block in blocks]
        for times in () if self.printed else _LARGER:
            unit = self.unit * times
            boxes = arranged(measured, area, unit, gap)
            if boxes is not None and all(
                one.worth((box.width, box.height), unit) >= block.comfort
                for one, block, box in zip(measured, blocks, boxes, strict=True)
            ):
                return unit, boxes
        boxes = arranged(measured, area, self.unit, gap)
        if boxes is None:
            return None
        main = max(range(len(blocks)), key=lambda n: blocks[n].weight)
        worth = measured[main].worth((boxes[main].width, boxes[main].height), self.unit)
        if len(blocks) > 1 and worth < _LEAST_EASE * blocks[main].comfort:
            return None
        return self.unit, boxes

    def head(self, *, told: bool) -> tuple[list[_Line], float]:
        """What stands above the blocks, and where they begin."""
        contents, paper, unit = self.contents, self.paper, self.unit
        title = contents.title if paper.title is None else paper.title
        title_px, sentence_px = (
            (_PRINTED_TITLE, _PRINTED_SENTENCE) if self.printed else (_TITLE, _SENTENCE)
        )  # fmt: skip
        lines: list[_Line] = []
        y = self.margin
        y = self._add(lines, title, sized(title_px * unit), "ink", y, self.line * (1.25 if self.printed else 1.4))
        if paper.caption:
            y = self._add(lines, contents.circumstances, sized(_SECOND * unit), "muted", y, self.line)
        if contents.sentence and told:
            y += 3 * unit if lines else 0
            high = self.line if self.printed else self.line * 1.1
            whole = contents.sentence.replace(SEPARATOR, "\u00a0·\u00a0")  # "1 · cat" is one word in a sentence
            y = self._add(lines, whole, sized(sentence_px * unit), contents.role, y, high)
        return lines, y + (8 * unit if lines else 0)

    def _foot(self, blocks: Sequence[Block], notes: Sequence[tuple[str, str]]) -> _Foot:
        """What stands below the blocks."""
        unit = self.unit
        font = sized(_SMALL * unit)
        said = [*(note for _, note in notes), *self.contents.captions] if self.paper.caption else []
        count = sum(len(wrapped(font, text, self.width)) for text in said)
        swatches, rows = self._swatches(blocks) if self.paper.legend else ((), 0)
        used = max((one.box.right for one in swatches), default=0.0) - self.margin + 24 * unit
        beside = rows == count == 1 and used + text_width(font, said[0]) + 1 <= self.width
        edge = self.margin * 0.6
        y = self.paper.height - edge - (1 if beside else count + rows) * self.line
        placed = tuple(_Swatch(one.kind, one.words, one.box.moved(0, y)) for one in swatches)
        lines: list[_Line] = []
        if beside:  # a word or two of origin need no line of their own
            wide = text_width(font, said[0]) + 1
            place = Box(self.margin + self.width - wide, y, wide, self.line)
            lines.append(_Line(said[0], place, font, "muted"))
            return _Foot(tuple(lines), placed, y - 8 * unit)
        top = y + rows * self.line
        for text in said:
            top = self._add(lines, text, font, "muted", top, self.line)
        return _Foot(tuple(lines), placed, y - (8 * unit if lines or placed else self.margin * 0.4))

    def _swatches(self, blocks: Sequence[Block]) -> tuple[tuple[_Swatch, ...], int]:
        """The legend of all maps in lines from 0 on, and how many lines these are."""
        kinds = dict.fromkeys(look for block in blocks for look in self.looks[id(block)])
        font, unit, found = sized(_SMALL * self.unit), self.unit, []
        x, row = self.margin, 0
        for kind in kinds:
            words = look_words(kind)
            wide = (_SMALL + 6) * unit + text_width(font, words) + 1
            if x > self.margin and x + wide > self.margin + self.width:
                x, row = self.margin, row + 1
            found.append(_Swatch(kind, words, Box(x, row * self.line, wide, self.line)))
            x += wide + 18 * unit
        return tuple(found), row + 1 if found else 0

    def _add(self, lines: list[_Line], text: str, font: QFont, role: str, y: float, high: float) -> float:
        for words in wrapped(font, text, self.width):
            lines.append(_Line(words, Box(self.margin, y, self.width, high), font, role))
            y += high
        return y


def _subsets(blocks: Sequence[Block]) -> list[tuple[Block, ...]]:
    """Every choice of ``blocks`` but none, those that weigh most together first."""
    chosen = [
        tuple(block for n, block in enumerate(blocks) if places >> n & 1) for places in range(1, 1 << len(blocks))
    ]
    return sorted(chosen, key=lambda kept: -sum(block.weight for block in kept))
