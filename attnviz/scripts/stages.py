"""The steps of a script, stage by stage, up to the numbers on the screen."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Final

from attnviz.scripts.lines import WIDTH, number_text, wrapped
from attnviz.scripts.sheet import Sheet
from attnviz.spec import (
    JOINT_STAGES,
    QUERY_KEY_STAGES,
    Blocks,
    Causal,
    Drawn,
    Full,
    PadLeft,
    PadRight,
    Prefix,
    SlidingWindow,
    TypedScores,
    acts_on_scores,
    held,
    lesson_draws,
)
from attnviz.spec.fills import LARGEST
from attnviz.spec.worked import typed_form

_MIX: Final = """\
def mix(x):  # the end of SplitMix64; the & takes away the sign that >> copies down
    x = (x ^ (x >> 30 & 2**34 - 1)) * -0x40A7B892E31B1A47
    x = (x ^ (x >> 27 & 2**37 - 1)) * -0x6B2FB644ECCEEE15
    return x ^ (x >> 31 & 2**33 - 1)"""


def add_stages(sheet: Sheet) -> None:
    """Add the stages up to the view's, and the lines that print its numbers."""
    for name in sheet.names:
        _stage(sheet, name)
    _print(sheet)


def _stage(sheet: Sheet, name: str) -> None:
    match name:
        case "scores":
            products = "q @ k.mT for q, k in zip(queries.unbind(1), keys.unbind(1))"
            sheet.add(name, f"torch.stack([{products}], 1)", "per head")
        case "scaled_scores":
            _scaled(sheet)
        case "masked_scores":
            _masked(sheet)
        case "unmasked_weights":
            sheet.add(name, "torch.softmax(scaled_scores, -1)", "over everything, the hidden cells too")
        case "unnormalised_weights":
            _hidden(sheet)
            sheet.add(name, "unmasked_weights * ~hidden")
        case "row_sums":
            sheet.add(name, "unnormalised_weights.sum(-1, keepdim=True)")
        case "weights":
            _weights(sheet)
        case "dropped_weights":
            _dropped(sheet, name, "weights", sheet.n_keys)
        case "context":
            last = "dropped_weights" if "dropped_weights" in sheet.names else "weights"
            if sheet.typed:
                typed = typed_form(sheet.spec.source)
                assert isinstance(typed, TypedScores) and typed.values is not None  # noqa: S101, PT018
                sheet.add("values", sheet.typed_tensor(typed.values))
                sheet.add(name, f"{last} @ values")
            else:
                sheet.add(name, f"torch.stack([w @ v for w, v in zip({last}.unbind(1), values.unbind(1))], 1)")
        case "dropped_context":
            _dropped(sheet, name, "context", _width(sheet))
        case "joined":
            last = "dropped_context" if "dropped_context" in sheet.names else "context"
            sheet.add(name, f"{last}.transpose(1, 2).flatten(2)", "the heads side by side")
        case "output":
            out = sheet.spec.d_out
            layer = f"torch.nn.Linear({out}, {out}){sheet.to()}(joined)" if sheet.spec.out_proj else "joined"
            sheet.add(name, layer)


def _scaled(sheet: Sheet) -> None:
    spec, name = sheet.spec, "scaled_scores"
    typed = typed_form(spec.source)
    if isinstance(typed, TypedScores):
        sheet.add(name, sheet.typed_tensor(typed.scores), "worked by hand")  # a soft cap would come before
        return
    before = "masked_scores" if spec.scale_after_mask and acts_on_scores(spec) else "scores"
    if spec.scale == "auto":
        d = spec.d_head or 1
        root = f"{d}**0.5" if d**0.5 == math.sqrt(d) else f"math.sqrt({d})"
        sheet.add(name, f"{before} / {root}", "by the root of a head's dimensions")
    else:
        sheet.add(name, before if spec.scale == "none" else f"{before} * {spec.scale!r}")
    if spec.soft_cap is not None:
        cap = repr(spec.soft_cap)
        sheet.add(name, f"torch.tanh({name} / {cap}) * {cap}", "the soft cap")


def _masked(sheet: Sheet) -> None:
    spec = sheet.spec
    scores = "scores" if spec.scale_after_mask else "scaled_scores"
    if spec.mask == "none" and (spec.top_k or 0) >= sheet.n_keys:
        sheet.add("masked_scores", scores)
        return
    masks = spec.mask != "none"
    if masks:
        _hidden(sheet)
    cuts = spec.top_k is not None and spec.top_k < sheet.n_keys
    if cuts:
        seen = f"{scores}.masked_fill(hidden, -torch.inf)" if masks else scores
        sheet.add("least", f"{seen}.topk({spec.top_k}).values.amin(-1, keepdim=True)")
        sheet.add("cut", f"({scores} < least) & ~hidden" if masks else f"{scores} < least", "its equals stay")
    made, comment = _fill(sheet)
    if spec.mask == "add":
        added = f"torch.zeros_like({scores}).masked_fill(hidden, {made})"
        if cuts:
            sheet.add("added", added)
        value = f"({scores} + added)" if cuts else f"{scores} + {added}"
    else:
        value = f"{scores}.masked_fill(hidden, {made})" if masks else scores
    value += ".masked_fill(cut, -torch.inf)" if cuts else ""
    sheet.add("masked_scores", value, comment if masks else "")


def _fill(sheet: Sheet) -> tuple[str, str]:
    """What the dtype makes of the fill, as `masked_fill` takes it, and a word where that is another number."""
    spec = sheet.spec
    made = held(spec.fill, spec.dtype)
    if made == -math.inf:
        said = "" if spec.fill == made else f"what {spec.dtype} makes of {number_text(spec.fill)}"
        return "-torch.inf", said
    return number_text(spec.fill if abs(spec.fill) <= LARGEST[spec.dtype] else made), ""


def _weights(sheet: Sheet) -> None:
    spec = sheet.spec
    typed = typed_form(spec.source)
    if typed is not None and not isinstance(typed, TypedScores):
        sheet.add("weights", sheet.typed_tensor(typed.weights))
    elif spec.mask == "three-step":
        sheet.add("weights", "unnormalised_weights / row_sums")
    elif spec.mask == "multiply":
        _hidden(sheet)
        sheet.add("weights", "unmasked_weights * ~hidden", "never divided again: the rows do not sum to 1")
    else:
        last = "masked_scores" if acts_on_scores(spec) and not spec.scale_after_mask else "scaled_scores"
        sheet.add("weights", f"torch.softmax({last}, -1)")


# ---------------------------------------------------------------------------------------------------------- masks


def _hidden(sheet: Sheet) -> None:
    """``hidden`` bool (queries, keys); the queries are the last of the tokens."""
    shape, n_queries, n_keys = sheet.spec.mask_shape, sheet.n_queries, sheet.n_keys
    size, behind = f"{n_queries}, {n_keys}", n_keys - n_queries
    after = sheet.on_device()
    comment = ""
    if isinstance(shape, SlidingWindow | Prefix | PadLeft | PadRight | Blocks):
        rows = f"torch.arange({behind}, {n_keys})" if behind else f"torch.arange({n_keys})"
        sheet.add("i, j", f"{rows}[:, None], torch.arange({n_keys})", "places of queries and keys")
    match shape:
        case Causal():
            value, comment = f"torch.ones({size}, dtype=torch.bool).triu({1 + behind})", "the future"
        case Full():
            value, comment = f"torch.zeros({size}, dtype=torch.bool)", "nothing is hidden"
        case SlidingWindow(width=width):
            value = f"(j > i) | (j <= i - {width})"
        case Prefix(length=length):
            value = f"(j > i) & (j >= {length})"
        case PadLeft(count=count):
            value = f"(j > i) | (j < {count})"
        case PadRight(count=count):
            value = f"(j > i) | (j >= {n_keys - count})"
        case Blocks(lengths=lengths):
            starts = [start for start in (0, *accumulate(lengths)) if start < n_keys]
            sheet.add("", wrapped([f"{n}," for n in starts], "starts = torch.tensor([", "])"))
            sheet.add("block_i, block_j", "(torch.bucketize(n, starts, right=True) for n in (i, j))")
            value, comment = "(j > i) | (block_i != block_j)", "the future and the other documents"
        case Drawn(runs=runs):
            shown = [run for run in runs if run[0] < n_queries and run[1] < n_keys]
            sheet.add("", wrapped([f"{run}," for run in shown], "seen = [", "]"))
            sheet.add("hidden", f"torch.ones({size}, dtype=torch.bool){after}")
            sheet.add("", "for row, first, last in seen:\n    hidden[row, first : last + 1] = False")
            return
        case _:
            raise TypeError(f"{shape} is a file's")
    sheet.add("hidden", f"({value}){after}" if after and value.startswith("(") else value + after, comment)


# ------------------------------------------------------------------------------------------------------- dropout


def _dropped(sheet: Sheet, name: str, before: str, width: int) -> None:
    spec, p = sheet.spec, sheet.spec.dropout
    if lesson_draws(spec):
        drawn = f"[[random.random() > 0.5 for _ in range({width})] for _ in range({sheet.n_queries})]"
        sheet.add("keep", f"torch.tensor({drawn})")
    elif spec.dropout_generator == "torch":
        size = f"{sheet.n_queries}, {width}" if sheet.typed else f"{spec.batch}, {sheet.n_queries}, {width}"
        sheet.add("coins", f"torch.Generator().manual_seed({spec.dropout_seed})")
        value = f"torch.empty({size}).bernoulli_(1 - {p!r}, generator=coins)"
        value = value if sheet.typed else f"torch.stack([{value} for _ in range({spec.num_heads})], 1)"
        fits = len(f"keep = {value}") <= WIDTH
        sheet.add("keep", value if fits else value.replace("stack([", "stack([\n    ").replace("], 1", "\n], 1"))
    else:
        _portable(sheet, width)
    sheet.add(name, f"{before} * (keep.to({before}) / (1 - {p!r}))", "kept cells make up for dropped ones")


def _portable(sheet: Sheet, width: int) -> None:
    spec = sheet.spec
    site = 0 if spec.dropout_site == "weights" else 1
    sheet.add("", _MIX)
    if spec.batch > 1:
        sheet.add("item", f"torch.arange({spec.batch})[:, None, None, None]")
    places = [f"torch.arange({sheet.n_queries})[:, None]", f"torch.arange({width})"]
    heads = [f"torch.arange({spec.num_heads})[:, None, None]"] if spec.num_heads > 1 else []
    sheet.add("head, row, col" if heads else "row, col", ", ".join(heads + places))
    parts = f"{spec.dropout_seed}, {site}, {'item' if spec.batch > 1 else 0}, {'head' if heads else 0}, row, col"
    sheet.add(
        "",
        f"key = 0\nfor part in {parts}:  # seed, {spec.dropout_site}, item, head …\n"
        "    key = mix(key ^ mix(torch.as_tensor(part) - 0x61C8864680B583EB))",
    )
    sheet.add("keep", f"(key >> 32 & 2**32 - 1) >= round({spec.dropout!r} * 2**32)")


def _width(sheet: Sheet) -> int:
    typed = typed_form(sheet.spec.source)
    if isinstance(typed, TypedScores) and typed.values is not None:
        return len(typed.values[0])
    return sheet.spec.d_head or 1


def _print(sheet: Sheet) -> None:
    spec, view, name = sheet.spec, sheet.view, sheet.view.stage
    per_head = not sheet.typed and name not in JOINT_STAGES
    index = [] if sheet.typed else ["0" if spec.batch == 1 else ":"]
    if per_head and view.head is not None:
        index.append(str(view.head))
    axes = 2 + (spec.batch > 1) + (per_head and view.head is None)
    spans = (view.rows, view.cols) if name in QUERY_KEY_STAGES else (None, None)
    if any(spans):
        index += ["...", *(":" if span is None else f"{span[0]}:{span[1]}" for span in spans)]
    numbers = name if not index or index == [":"] else f"{name}[{', '.join(index)}]"
    if axes == 2 or not sheet.airy:
        numbers += ".flatten(0, -2)" if axes > 2 else ""
        sheet.add("", f'print(*{numbers}.tolist(), sep="\\n")')
        return
    numbers += ".flatten(0, 1)" if axes == 4 else ""
    each = "head" if per_head and view.head is None else "item"
    sheet.add("", f'for {each} in {numbers}.tolist():\n    print(*{each}, sep="\\n", end="\\n\\n")')
