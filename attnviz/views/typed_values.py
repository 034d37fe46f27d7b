"""Values of a spec as they stand in a line, and lines read back into values. Pure."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

from attnviz.spec import SHAPE_FORMS, AnyShape, Drawn, SpecError, parse_shape, shape_text

translate = QCoreApplication.translate

_RAISED: Final = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
SHAPES: Final = SHAPE_FORMS.split(", drawn:", maxsplit=1)[0]
"""The shapes that can be typed in a line; one is drawn on the map, and a file comes from the command line."""


def read_whole(field: str, text: str) -> int:
    """A whole number. Raises `SpecError`, as all of these do."""
    try:
        return int(text)
    except ValueError:
        said = translate("Controls", "{field} is “{text}”: give a whole number")
        raise SpecError(field, said.format(field=field, text=text)) from None


def read_number(field: str, text: str, would_do: str) -> float:
    """A number; ``would_do`` says what can be given."""
    try:
        return float(text.replace("−", "-").replace("∞", "inf"))
    except ValueError:
        said = translate("Controls", "{field} is “{text}”: {would_do}")
        raise SpecError(field, said.format(field=field, text=text, would_do=would_do)) from None


def read_scale(text: str) -> str | float:
    """auto, none or a factor."""
    if text in ("auto", "none"):
        return text
    return read_number("scale", text, translate("Controls", "give auto, none or a number"))


def read_fill(text: str) -> float:
    """−∞ or a number, a power of ten as it is written or as it is typed: −10⁹, -1e9."""
    plain = text.replace(",", "")
    base, raised = plain.rstrip(_RAISED), ""
    if base in ("10", "-10", "−10") and base != plain:
        raised = plain[len(base) :].translate(str.maketrans(_RAISED, "0123456789-"))
        plain = f"{base[:-2]}1e{raised}"
    try:
        return read_number("fill", plain, "")
    except SpecError:
        return read_number("fill", text, translate("Controls", "give −∞ or a number, such as −10⁹ or -17.3"))


def read_soft_cap(text: str) -> float | None:
    """A cap, or none."""
    if text.lower() in ("", "none", "—"):
        return None
    return read_number("soft_cap", text, translate("Controls", "give none or a number above 0, such as 50"))


def read_shape(text: str) -> AnyShape:
    """A shape by its name; what is drawn and what is a file's cannot be typed."""
    said = translate("Controls", "mask_shape is “{text}”: give {forms}, or draw it on the map")
    try:
        shape = parse_shape(text)
    except SpecError as error:
        if SHAPE_FORMS not in str(error):
            raise
        shape = None
    if shape is None:
        raise SpecError("mask_shape", said.format(text=text if len(text) <= 60 else text[:60] + "…", forms=SHAPES))
    return shape


def shape_words(shape: AnyShape) -> str:
    """The shape as it can be typed, a file's path, or how many runs are drawn."""
    if not isinstance(shape, Drawn):
        return shape_text(shape)
    if len(shape.runs) == 1:
        return translate("Controls", "drawn (1 run)")
    return translate("Controls", "drawn ({n} runs)").format(n=f"{len(shape.runs):,}")
