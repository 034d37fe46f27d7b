"""How a script begins: inputs, queries, keys and values, drawn from the seeds that the program draws them from."""

from __future__ import annotations

import textwrap
from typing import Final

from attnviz.scripts.lines import WIDTH, quoted, wrapped
from attnviz.scripts.sheet import Sheet
from attnviz.spec import JOINT_STAGES, Lesson, RandomEmbeddings, RandomQK, Text
from attnviz.spec.worked import JOURNEY_INPUTS

_RANDOM_STATE: Final = """\
state = [3]  # NumPy's RandomState(3) is a Mersenne Twister that begins so
for n in range(1, 624):
    state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + n) % 2**32)
random.setstate((3, (*state, 624), None))
normal = []
while len(normal) < 224:  # normal numbers come in pairs, by the polar method
    a, b = (2 * random.random() - 1 for _ in range(2))
    if 0 < (r := a * a + b * b) < 1:
        normal += [math.sqrt(-2 * math.log(r) / r) * c for c in (b, a)]
normal = torch.tensor(normal, dtype=torch.float64)"""

_ONE_CLASS: Final = Lesson(name="one-class")


def begin(sheet: Sheet) -> None:
    """Add what the script is about, and all that comes before the scores."""
    spec, view = sheet.spec, sheet.view
    if sheet.typed or view.stage in JOINT_STAGES:
        of = ""
    elif view.head is not None or spec.num_heads == 1:
        of = f" of head {view.head or 0}"
    else:
        of = f" of {spec.num_heads} heads"
    sheet.add("", f"# attnviz: {view.stage}{of}, {sheet.n_keys:,} tokens, a row a line")
    if sheet.through_module:
        _inputs(sheet)
        if view.stage != "inputs":
            _project(sheet)
    elif isinstance(spec.source, RandomQK):
        _random_qk(sheet, spec.source)


def _inputs(sheet: Sheet) -> None:
    source, width, seed = sheet.spec.source, sheet.spec.d_model, sheet.spec.seed
    after = sheet.to(always=source == _ONE_CLASS)
    batch = sheet.spec.batch
    after += "[None]" if batch == 1 else f".expand({batch}, -1, -1)"
    match source:
        case Text():
            sheet.add("", _text(sheet))
            surrogates = '"utf-8", "surrogatepass"'
            odd = any("\ud800" <= letter <= "\udfff" for token in sheet.tokens for letter in token)
            spoken = f'f"{seed}\\0token\\0{{token}}".encode({surrogates if odd else ""})'
            _keyed(sheet, "token", spoken, "a generator for each token: equal ones get equal numbers")
            drawn = f"torch.stack([torch.randn({width}, generator=keyed(token)) for token in tokens])"
        case RandomEmbeddings(length=length):
            spoken = f'f"{seed}\\0positions\\0{{first}}".encode()'
            _keyed(sheet, "first", spoken, "a generator for each block of 256 positions")
            drawn = f"torch.randn(256, {width}, generator=keyed({'first' if length > 256 else 0}))"
            if length > 256:
                sheet.add("blocks", f"[{drawn} for first in range(0, {length}, 256)]")
                drawn = "torch.cat(blocks)"
            drawn += f"[:{length}]"
        case Lesson(name="one-class"):
            sheet.add("", _RANDOM_STATE)
            drawn = "normal[:32].view(4, 8)"
        case _:
            drawn = sheet.matrix(JOURNEY_INPUTS, "torch.tensor([", "])")
    if len(f"inputs = {drawn}{after}".split("\n")[-1]) > WIDTH:
        sheet.add("inputs", drawn)
        drawn = "inputs"
    sheet.add("inputs", drawn + after, "a batch of one" if batch == 1 else f"{batch} equal items")


def _keyed(sheet: Sheet, argument: str, spoken: str, comment: str) -> None:
    sheet.add(
        "",
        f"def keyed({argument}):  # {comment}\n"
        f"    digest = hashlib.sha256({spoken}).digest()\n"
        '    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)',
    )


def _text(sheet: Sheet) -> str:
    """``tokens = …``, as words of one string where that gives them back."""
    if tuple(" ".join(sheet.tokens).split()) != sheet.tokens:
        return wrapped([quoted(token) + "," for token in sheet.tokens], "tokens = [", "]")
    whole = f"tokens = {quoted(' '.join(sheet.tokens))}.split()"
    if len(whole) <= WIDTH:
        return whole
    parts = textwrap.wrap(" ".join(sheet.tokens), WIDTH - 8, break_long_words=False, break_on_hyphens=False)
    return "\n".join(["tokens = (", *(f"    {quoted(part + ' ')}" for part in parts), ").split()"])


def _random_qk(sheet: Sheet, source: RandomQK) -> None:
    spec, group, to = sheet.spec, sheet.group, sheet.to()
    sheet.add("", f"torch.manual_seed({spec.seed})")
    drawn = f"torch.randn({source.length}, {spec.d_head})"
    if source.qk_scale != 1:
        drawn += f" * {source.qk_scale!r}"
        drawn = f"({drawn})" if to else drawn
    _heads(sheet, drawn + to, 2, "queries and keys of each head")
    some, again = (f"[::{group}]", f".repeat_interleave({group}, 1)") if group > 1 else ("", "")
    sheet.add("queries", "torch.stack([head[0] for head in heads])[None]", "a batch of one")
    sheet.add("keys", f"torch.stack([head[1] for head in heads{some}])[None]{again}")
    if spec.batch > 1:
        sheet.add("queries, keys", f"(t.expand({spec.batch}, -1, -1, -1) for t in (queries, keys))", "equal items")


def _heads(sheet: Sheet, drawn: str, count: int, comment: str) -> None:
    """``heads``, a list a head of what it draws; a head that shares its keys draws the first alone."""
    spec, group = sheet.spec, sheet.group
    if group > 1:
        many, index = f"{count} if head % {group} == 0 else 1", "head"
        comment += ", which share keys"
    else:
        many, index = str(count), "_"
    line = f"[[{drawn} for _ in range({many})] for {index} in range({spec.num_heads})]"
    if len(line) > WIDTH - 8:
        line = line.replace(" for _ in", "\n         for _ in", 1)
    sheet.add("heads", line, comment if "\n" not in line else "")


# --------------------------------------------------------------------------------------------------- projections


def _project(sheet: Sheet) -> None:
    spec = sheet.spec
    if spec.projection == "none":
        sheet.add("queries = keys = values", "inputs[:, None]", "one head without projections")
        return
    if spec.source == _ONE_CLASS:
        sheet.add("query, key, value", f"(normal[32:] * 0.5).view(3, 8, 8){sheet.to(always=True)}")
        sheet.add("queries, keys, values", "((inputs @ w)[:, None] for w in (query, key, value))")
        return
    sheet.add("", f"torch.manual_seed({spec.seed})")
    if spec.implementation == "stacked":
        _heads(sheet, _layer(sheet, spec.d_head or 1), 3, "query, key and value")
        _stacked(sheet)
    else:
        _split(sheet)


def _layer(sheet: Sheet, d_out: int) -> str:
    spec = sheet.spec
    if spec.projection == "rand":
        return f"torch.nn.Parameter(torch.rand({spec.d_model}, {d_out}){sheet.to()})"
    bias = "" if spec.qkv_bias else ", bias=False"
    return f"torch.nn.Linear({spec.d_model}, {d_out}{bias}){sheet.to()}"


def _through(sheet: Sheet, layer: str) -> str:
    return f"inputs @ {layer}" if sheet.spec.projection == "rand" else f"{layer}(inputs)"


def _stacked(sheet: Sheet) -> None:
    group = sheet.group
    if group == 1:
        stack = f"(torch.stack([{_through(sheet, 'w')} for w in part], 1) for part in zip(*heads))"
        sheet.add("queries, keys, values", stack)
        return
    sheet.add("queries", f"torch.stack([{_through(sheet, 'head[0]')} for head in heads], 1)")
    shared = f"torch.stack([{_through(sheet, 'h[n]')} for h in heads[::{group}]], 1)"
    sheet.add("keys, values", f"(\n    {shared}.repeat_interleave({group}, 1) for n in (1, 2)\n)")


def _split(sheet: Sheet) -> None:
    spec = sheet.spec
    assert spec.d_out is not None and spec.d_head is not None  # noqa: S101, PT018 (has_module said so)
    group = sheet.group
    cut, said = f".unflatten(-1, (-1, {spec.d_head})).transpose(1, 2)", "query, key, value; cut into heads next"
    if group == 1:
        sheet.add("layers", f"[{_layer(sheet, spec.d_out)} for _ in range(3)]", said)
    else:
        sizes = f"({spec.d_out}, {spec.num_kv_heads * spec.d_head}, {spec.num_kv_heads * spec.d_head})"
        layer = _layer(sheet, 0).replace(f"({spec.d_model}, 0", f"({spec.d_model}, n", 1)
        sheet.add("layers", f"[{layer} for n in {sizes}]", said)
    one = _through(sheet, "w")
    one = f"({one})" if spec.projection == "rand" else one
    sheet.add("queries, keys, values", f"({one}{cut} for w in layers)")
    if group > 1:
        sheet.add("keys, values", f"(t.repeat_interleave({group}, 1) for t in (keys, values))", "shared")
