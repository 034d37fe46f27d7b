"""Build resources/fonts/attnviz-sans.otf from Noto Sans SC: a subset with its own name and a few narrower signs.

Needs ``pip install fonttools pylopdf-fonts-zh-cn``, then ``python .github/make_font.py`` in the repository root.
The same input gives the same bytes. Noto Sans SC is under the SIL Open Font License; the result stays under it, and
carries a name of its own although the licence reserves none, so that nobody takes it for the original.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

from fontTools import subset
from fontTools.misc.transform import Transform
from fontTools.pens.boundsPen import BoundsPen
from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.pens.transformPen import TransformPen
from fontTools.ttLib import TTFont

FAMILY = "attnviz Sans"
POSTSCRIPT = "attnvizSans-Regular"
TARGET = Path("resources/fonts/attnviz-sans.otf")

RANGES = [(0x20, 0x7E), (0xA0, 0x17F), (0x391, 0x3C9), (0x2500, 0x257F), (0x2580, 0x259F), (0x25A0, 0x25FF)]
SIGNS = (
    "‐‑‒–—‘’“”„†‡•…‰′″‹›€™←↑→↓↔↕⇄⇒⇔∀∂∃∅∆∇∈∉∋∏∑−∓√∝∞∠∥∧∨∩∪∫∴≈≠≡≤≥≪≫⊂⊃⊆⊇⊕⊗⊥⌘⏎★☆✓"
    "　、。〃〈〉《》「」『』【】〔〕〜！（），．：；？％＋－＝／"
)
MATH_AXIS = 369  # the height of the middle of + and −
SUPER, PLAIN, SUB = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼ᵀⁿ", "0123456789+−=Tn", "₀₁₂₃₄₅₆₇₈₉₊₋₌"
# Drawn a whole Chinese character wide; between Latin letters and digits that tears holes into a line.
NARROW = "≈≠≡≤≥≪≫∈∞∂∝←↑→↓↔↕⇒⇔●○■□◆◇▲△▼▽▶▷◀◁★☆•†‡§¶"
ROOT_END = 570  # thousandths of an em from √'s left edge
AS_DIGITS = "×÷±"  # redrawn at a digit's width, so that sums stay in columns


def gb2312_level_1() -> str:
    """Return the 3,755 commonest simplified Chinese characters."""
    rows = [bytes([high, low]) for high in range(0xB0, 0xD8) for low in range(0xA1, 0xFF)]
    return "".join(pair.decode("gb2312", "ignore") for pair in rows)


class Foundry:
    """Redraws glyphs of one CFF font in place."""

    def __init__(self, font: TTFont) -> None:
        self.font = font
        self.cmap = font.getBestCmap()
        self.strings = font["CFF "].cff[0].CharStrings
        # Glyphs of rare characters that the subset drops: their places are free for signs that the font lacks.
        wanted = set(map(ord, gb2312_level_1()))
        self.free = [name for code, name in self.cmap.items() if 0x4E00 <= code <= 0x9FA5 and code not in wanted]

    def width(self, char: str) -> int:
        return self.font["hmtx"][self.cmap[ord(char)]][0]

    def bounds(self, char: str) -> tuple[float, float, float, float]:
        glyphs = self.font.getGlyphSet()
        pen = BoundsPen(glyphs)
        glyphs[self.cmap[ord(char)]].draw(pen)
        return pen.bounds

    def draw(
        self, target: str, parts: list[tuple[str, Transform]], advance: int, end: float = math.inf
    ) -> None:  # fmt: skip
        """Make ``target`` of glyphs ``parts``, each moved by its transform; ``advance`` in thousandths of an em.

        What lies to the right of ``end`` in a part is cut off.
        """
        glyphs = self.font.getGlyphSet()
        recordings = []
        for char, transform in parts:
            recording = DecomposingRecordingPen(glyphs)
            glyphs[self.cmap[ord(char)]].draw(recording)
            recording.value = [(do, tuple((min(x, end), y) for x, y in points)) for do, points in recording.value]
            recordings.append((recording, transform))
        shared = list(self.cmap.values()).count(self.cmap.get(ord(target))) > 1  # as · and • are
        if shared or ord(target) not in self.cmap:
            name = self.free.pop()
            for table in self.font["cmap"].tables:
                if table.isUnicode() and table.format in {4, 12}:
                    table.cmap = {c: n for c, n in table.cmap.items() if n != name} | {ord(target): name}
            self.cmap[ord(target)] = name
        name = self.cmap[ord(target)]
        private = self.strings[name].private
        pen = T2CharStringPen(advance - private.nominalWidthX, glyphs)
        for recording, transform in recordings:
            recording.replay(TransformPen(pen, transform))
        self.strings[name] = pen.getCharString(private, self.strings[name].globalSubrs)
        self.font["hmtx"][name] = (advance, round(self.bounds(target)[0]))

    def narrow(self, char: str) -> None:
        left, _, right, _ = self.bounds(char)
        self.draw(char, [(char, Transform(dx=70 - left))], round(right - left) + 140)

    def root(self) -> None:
        """Leave √ the beginning of its bar, which would end somewhere above or before a letter."""
        left = self.bounds("√")[0]
        self.draw("√", [("√", Transform(dx=70 - left))], ROOT_END + 80, end=left + ROOT_END)

    def small(self, target: str, char: str, raise_by: int) -> None:
        self.draw(target, [(char, Transform(0.6, 0, 0, 0.6, 0, raise_by))], round(0.6 * self.width(char)) + 10)


def shape(font: TTFont) -> None:
    """Narrow the signs that are drawn a whole character wide, and add those that the font lacks."""
    foundry = Foundry(font)
    pwid = next(
        record.Feature for record in font["GSUB"].table.FeatureList.FeatureRecord if record.FeatureTag == "pwid"
    )
    lookup = font["GSUB"].table.LookupList.Lookup[pwid.LookupListIndex[0]]
    proportional = {k: v for t in lookup.SubTable for k, v in getattr(t, "ExtSubTable", t).mapping.items()}
    for table in font["cmap"].tables:
        if table.isUnicode() and table.format in {4, 12}:
            for quote in "‘’“”":
                name = table.cmap[ord(quote)]
                table.cmap[ord(quote)] = proportional.get(name, name)  # tables may share one map
    foundry.cmap = font.getBestCmap()
    for char in NARROW:
        foundry.narrow(char)
    foundry.root()
    turned = Transform().translate(278, MATH_AXIS).rotate(math.pi / 4).translate(-278, -MATH_AXIS)
    left, bottom, right, top = foundry.bounds(".")
    dot = foundry.width(".")
    over, under = (Transform(dx=278 - (left + right) / 2, dy=MATH_AXIS - (bottom + top) / 2 + y) for y in (185, -185))
    foundry.draw("×", [("+", turned)], foundry.width("0"))
    foundry.draw("÷", [("−", Transform()), (".", over), (".", under)], foundry.width("0"))
    foundry.draw("±", [("+", Transform(dy=80)), ("−", Transform(dy=40 - MATH_AXIS))], foundry.width("0"))
    foundry.draw("…", [(".", Transform(dx=shift * dot)) for shift in range(3)], 3 * dot)
    foundry.draw("·", [(".", Transform(dy=MATH_AXIS - (bottom + top) / 2))], dot)
    for target, char in zip(SUPER, PLAIN, strict=True):
        foundry.small(target, char, 330)
    for target, char in zip(SUB, PLAIN, strict=False):
        foundry.small(target, char, -130)
    for target, char in zip("▸◂▴▾", "▶◀▲▼", strict=True):
        left, bottom, right, top = foundry.bounds(char)
        middle = (bottom + top) / 2
        half = Transform(0.6, 0, 0, 0.6, 55 - 0.6 * left, 0.4 * middle)
        foundry.draw(target, [(char, half)], round(0.6 * (right - left)) + 110)
    for target in "✕✗":
        larger = Transform().translate(0, MATH_AXIS).scale(1.5).translate(0, -MATH_AXIS)
        foundry.draw(target, [("×", larger.translate(-40, 0))], 720)
    foundry.draw("⋅", [("·", Transform())], foundry.width("·"))
    foundry.draw("▯", [("□", Transform(0.7, 0, 0, 1))], round(0.7 * foundry.width("□")))


def rename(font: TTFont) -> None:
    """Give the font its own name in every place that holds one."""
    names = font["name"]
    names.names = [record for record in names.names if record.langID == 0x409]
    for name_id, text in {
        1: FAMILY,
        2: "Regular",
        3: f"1.0;{POSTSCRIPT}",
        4: FAMILY,
        5: "Version 1.0; a subset of Noto Sans SC 2.004",
        6: POSTSCRIPT,
    }.items():
        names.setName(text, name_id, 3, 1, 0x409)
    cff = font["CFF "].cff
    cff.fontNames = [POSTSCRIPT]
    cff[0].rawDict |= {"FullName": FAMILY, "FamilyName": FAMILY}
    cff[0].FullName = cff[0].FamilyName = FAMILY
    for index, part in enumerate(cff[0].FDArray):
        part.rawDict["FontName"] = part.FontName = f"{POSTSCRIPT}-{index}"


def main() -> None:
    """Write the font and say what it lacks."""
    package = importlib.util.find_spec("pylopdf_fonts_zh_cn")
    if package is None or package.origin is None:
        raise SystemExit("pip install fonttools pylopdf-fonts-zh-cn first")
    options = subset.Options(
        layout_features=["kern", "mark", "ccmp"], name_IDs=["*"], notdef_outline=True, recalc_timestamp=False,
        drop_tables=["DSIG", "VORG", "vhea", "vmtx", "BASE"], desubroutinize=False,
    )  # fmt: skip
    font = subset.load_font(str(Path(package.origin).with_name("NotoSansSC-Regular.otf")), options)
    shape(font)
    text = gb2312_level_1() + SIGNS + SUPER + SUB + NARROW + AS_DIGITS + "▸◂▴▾✕✗⋅▯"
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes={c for a, b in RANGES for c in range(a, b + 1)} | set(map(ord, text)))
    subsetter.subset(font)
    rename(font)
    subset.save_font(font, str(TARGET), options)
    lacking = "".join(sorted(c for c in set(text) if ord(c) not in font.getBestCmap()))
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes, lacks {lacking or 'nothing'}")  # noqa: T201


if __name__ == "__main__":
    main()
