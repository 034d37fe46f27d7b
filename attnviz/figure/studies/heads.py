"""Stacked and split heads: both drawn as they are, and why the printed outputs of one function differ."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QCoreApplication

from attnviz.figure.block_sheet import Contents
from attnviz.figure.blocks import Block, FormsBlock, Headed, TableBlock
from attnviz.figure.form_diagram import sizes_of
from attnviz.figure.map_blocks import MapsBlock
from attnviz.figure.matrix_map import Matrix, matrix_of
from attnviz.figure.studies.names import bar_view, short_number
from attnviz.figure.tables import Entry, Line, Table, table_of
from attnviz.figures import Figure
from attnviz.frames import CellClass, Scale
from attnviz.questions.heads import FormsCompared, HeadsAnswer, LadderStep
from attnviz.spec import Colours


def _tr(text: str) -> str:
    return QCoreApplication.translate("HeadsPage", text)


def ladder_table(answer: HeadsAnswer) -> Table:
    """The book's two classes, one reason for their difference after the other taken away."""
    header = [_tr("taken away"), _tr("stacked"), _tr("split"), _tr("largest difference")]
    return table_of(header, [_step(step) for step in answer.ladder])


def _step(step: LadderStep) -> Line:
    words = {
        "as printed": _tr("nothing yet"), "same d_out": _tr("d_out: 4 in both"), "without out_proj": _tr("out_proj"),
        "same draws": _tr("draws: weights copied"),
    }  # fmt: skip
    shapes = [f"({one.shape[0]}, {one.shape[1]})" for one in (step.stacked, step.split)]
    if step.difference is None:
        gap = Entry(_tr("shapes differ"), "muted")
    elif step.identical:
        gap = Entry(_tr("0, bit for bit"), "accent")
    else:
        gap = Entry(short_number(step.difference))
    return [words[step.name], *shapes, gap]


def ladder_words(answer: HeadsAnswer) -> str:
    """What is left at the end."""
    if answer.ladder[-1].identical:
        return _tr("Both with seed 123. The same function, and here not one bit apart.")
    return _tr("Both with seed 123. The same function, up to rounding.")


def product_maps(answer: HeadsAnswer, colours: Colours) -> list[Matrix]:
    """The batched product's heads on one scale."""
    product = answer.product
    kinds = np.full(product.at_once.shape[1:], int(CellClass.ORDINARY), np.uint8)
    scale = Scale(0.0, float(product.at_once.max()))
    return [
        matrix_of(
            values, kinds, scale=scale, colours=colours, title=_tr("head {n}").format(n=head), stage="scores"
        )
        for head, values in enumerate(product.at_once)
    ]  # fmt: skip


def product_words(answer: HeadsAnswer) -> str:
    """Whether at once and head by head give the same."""
    product = answer.product
    if product.identical:
        return _tr("Computed at once and head by head: equal bit for bit.")
    gap = short_number(float(np.abs(product.at_once - product.by_head).max()))
    return _tr("Computed at once and head by head: up to {n} apart.").format(n=gap)


def compared_words(forms: FormsCompared, *, copied: bool) -> str:
    """How far both forms' outputs are apart in the spec's own sizes, as drawn or with copied weights."""
    if not copied:
        words = _tr("As drawn, both from one seed, their outputs are up to {n} apart: other draws.")
        return words.format(n=short_number(forms.drawn))
    if forms.identical:
        return _tr("With copied weights not one bit of {n} tokens' outputs differs.").format(n=forms.tokens)
    return _tr("With copied weights they are up to {n} apart: rounding.").format(n=short_number(forms.copied))


def contents_of(figure: Figure, answer: HeadsAnswer) -> Contents:
    """Both forms in the spec's sizes, the ladder, and the batched product."""
    spec, forms = figure.spec, answer.forms
    sizes = None if forms is None else sizes_of(spec, forms.tokens)
    blocks: list[Block] = []
    if sizes is not None:
        blocks.append(FormsBlock(sizes, _tr("both forms drawn"), weight=1.4, part="forms"))
    said = Headed(_tr("Why two classes of one function print different numbers"), ladder_words(answer))
    blocks.append(TableBlock(ladder_table(answer), _tr("reasons taken away one by one"), said, 0.8, part="ladder"))
    product = Headed(_tr("A tensor of shape (1, 2, 3, 4) times its transpose"), product_words(answer))
    blocks.append(
        MapsBlock(
            tuple(product_maps(answer, figure.view.colours)), _tr("the batched product"), bar_view(figure.view),
            words=product, weight=0.6, part="product",
        )
    )  # fmt: skip
    settings = ""
    if sizes is not None:
        n = f"{sizes.length:,}"
        book = _tr("stacked: {d} each × {h} heads = {out} · the book's wrapper calls this d_out = {d}")
        shapes = f"({n}, {sizes.d_model}) → ({n}, {sizes.d_out}) → ({sizes.heads}, {n}, {sizes.d_head})"
        settings = f"{shapes} · {book.format(d=sizes.d_head, h=sizes.heads, out=sizes.d_out)}"
    sentence = ""
    if forms is not None:
        sentence = f"{compared_words(forms, copied=False)} {compared_words(forms, copied=True)}"
    return Contents(
        title=_tr("Stacked and split heads"),
        blocks=tuple(blocks),
        circumstances=settings,
        sentence=sentence,
        captions=(answer.reason,) if answer.reason else (),
    )
