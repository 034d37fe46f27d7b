"""Python in two lines: `render` a figure to a file, `show` weights that one already has.

Heavy imports stand in the branch that needs them: given NumPy weights, nothing loads torch.
"""

from __future__ import annotations

import atexit
import operator
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attnviz import spec as specs
from attnviz.figures import ANIMATES, NUMBERS, PICTURES, SHOWS, Figure, check_suffix
from attnviz.short_specs import make_spec, names_of, spelled_out
from attnviz.spec import AttentionSpec, Paper, SpecError, View, parse_size
from attnviz.spec.checks import convert

if TYPE_CHECKING:
    from attnviz.given.arrays import Given

__all__ = ["Shown", "make_spec", "render", "show"]

Size = str | tuple[int, int]

_PAPER: Final = ("size", *(name for name in Paper.__struct_fields__ if name not in ("width", "height", "dpi")))
_VIEW: Final = View.__struct_fields__
_CHOICES: Final = {**specs.CHOICES, "theme": specs.THEMES, "shows": SHOWS, "animates": ANIMATES}
_FIGURE: Final = tuple(name for name in Figure.__struct_fields__ if name not in ("spec", "view", "paper"))


# ------------------------------------------------------------------------------------------------------------ render


def render(figure: AttentionSpec | Figure | Mapping[str, Any], path: str | os.PathLike[str], **look: Any) -> Path:
    """Compute a figure and write it to ``path``, whose ending says in which format. Returns the path.

    .png, .svg, .pdf and .gif are pictures; .csv is a table of the numbers that the figure shows, .npz has them all.

    ``figure`` is a spec (`make_spec`), a dict of what `make_spec` takes, or a whole `Figure`. ``look`` is any of
    ``size`` ("1920x1080", "8.5x6cm@300dpi" or (width, height)), ``theme`` ("light", "dark", "transparent", "print"),
    ``title``, ``caption`` and the other fields of a `Paper`; ``stage``, ``head``, ``rows``, ``cols``, ``norm``,
    ``colours`` and ``pooling`` of a `View`; ``shows``, ``heads`` (one or some), ``row``, ``beside`` (a spec, or a dict
    of what differs in B, in the short forms of `make_spec`) and the other fields of a `Figure`. What the figure would
    leave aside is refused. Raises `ValueError` or `TypeError` with a sentence, and `RuntimeError` where it cannot be
    computed or written.
    """
    if isinstance(figure, Mapping):
        figure = make_spec(**figure)
    if isinstance(figure, AttentionSpec):
        figure = Figure(spec=figure)
    if not isinstance(figure, Figure):
        raise TypeError(f"figure is of type {type(figure).__name__}: give a spec, a Figure or a dict of make_spec's")
    place = _path(path)
    known = {*_PAPER, *_VIEW, *_FIGURE}
    for name in look:
        if name not in known:
            raise TypeError(f"{name!r} is nothing that a figure has: give any of {', '.join(sorted(known))}")
    look = {name: _plain(value) for name, value in look.items()}
    view = specs.looked(figure.view, figure.spec, **{name: look[name] for name in _VIEW if name in look})
    chosen = {name: look[name] for name in _FIGURE if name in look}
    if "beside" in chosen:
        chosen["beside"] = _beside(figure.spec, chosen["beside"])
    for name in "heads", "parts":
        if name in chosen:
            chosen[name] = _several(chosen[name])
    made: Figure = _replaced(figure, {**chosen, "view": view, "paper": _paper(figure.paper, look)})
    _write_figure(place, made, {name: value for name, value in (look | chosen).items() if value not in (None, ())})
    return place


def _beside(spec: AttentionSpec, given: Any) -> AttentionSpec | None:
    """B: ``spec`` with what differs in it."""
    if isinstance(given, Mapping):
        return specs.edited(spec, **spelled_out(given))
    if given is not None and not isinstance(given, AttentionSpec):
        raise TypeError(f"beside is of type {type(given).__name__}: give a spec, or a dict of what differs in B")
    return given


def _plain(value: Any) -> Any:
    """Numbers of NumPy's or torch's as Python's own."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value.tolist() if hasattr(value, "tolist") else value


def _several(given: Any) -> Any:
    """One or more of something, () for None; which they are is checked with the rest of the figure."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is {path!r}: give a file's name")
    return Path(path)


def _paper(paper: Paper, look: Mapping[str, Any]) -> Paper:
    """``paper`` with what ``look`` says of it."""
    fields = {name: look[name] for name in _PAPER if name in look and name != "size"}
    size = look.get("size")
    if isinstance(size, str):
        fields["width"], fields["height"], fields["dpi"] = parse_size(size)
    elif size is not None:
        fields["width"], fields["height"] = sides_of(size)
        fields["dpi"] = None
    sheet: Paper = _replaced(paper, fields)
    return sheet


def sides_of(size: Any) -> tuple[int, int]:
    """The pixels of (width, height). Raises `SpecError` where these are not two whole numbers."""
    try:
        width, height = size
        sides = int(width), int(height)
    except (TypeError, ValueError, OverflowError):
        sides = None
    if sides is None or sides != (width, height):
        raise SpecError("size", f"size is {size!r}: give (width, height) in whole pixels, such as (1920, 1080)")
    return sides


def _replaced(struct: Any, fields: Mapping[str, Any]) -> Any:
    """``struct`` with other fields, checked as if they came from a file."""
    kept = {name: getattr(struct, name) for name in struct.__struct_fields__}
    return convert(type(struct), {**kept, **fields}, _CHOICES)


def _write_figure(path: Path, figure: Figure, look: Mapping[str, Any]) -> None:
    """Write what was made with this ``look``; refuse what of it would be left aside, as the command line does."""
    from attnviz import number_files  # noqa: PLC0415
    from attnviz.options.figure import clipped  # noqa: PLC0415
    from attnviz.options.used import check_used, in_fields  # noqa: PLC0415

    suffix = check_suffix(path, (*PICTURES, *NUMBERS))
    moves = look.get("animates", "nothing")
    if moves != "nothing" and suffix != ".gif":
        raise SpecError("animates", f"animates {moves} is for a GIF: give a name that ends in .gif")
    if suffix in PICTURES:
        from attnviz.application import borrowed_application  # noqa: PLC0415

        borrowed_application()
    try:
        check_used(figure, look)
        number_files.write_file(path, clipped(figure))
    except SpecError as error:
        raise in_fields(error) from None


# -------------------------------------------------------------------------------------------------------------- show


class Shown:
    """Given weights as a picture, in a notebook: the last line of a cell shows it."""

    def __init__(self, png: bytes) -> None:
        self._png = png

    def _repr_png_(self) -> bytes:
        return self._png


def show(
    weights: Any = None, tokens: Any = None, *, q: Any = None, k: Any = None,
    path: str | os.PathLike[str] | None = None,
    layer: int | None = None, heads: int | Sequence[int] | None = None, mask: Any = None, scale: float | None = None,
    title: str | None = None, size: Size = (1920, 1080), theme: str = "light",
) -> Path | Shown | None:  # fmt: skip
    """Show weights that one already has: in a file, in a notebook, or in a window that blocks until it is closed.

    ``weights`` are (queries, keys), (heads, queries, keys) or (layers, heads, queries, keys), or a list of layers such
    as transformers' ``attentions`` with a batch of one: NumPy arrays or tensors of any real dtype, on any device. Four
    axes are layers of heads, never a batch. Numbers below 0 or above 1 are shown as scores, on a scale that diverges
    from 0. ``tokens`` name the keys, of which the queries are the last, or are two lists: of the queries, of the keys.
    ``mask`` is "causal" or bool (queries, keys), True where a query may look: what it hides is then told from what is
    0 by itself, and framed in red where it is not 0. A picture has one ``layer``, the last unless another is asked for;
    in the window any can be chosen. ``heads`` are some of them.

    With ``q`` and ``k``, (heads, tokens, d) or (tokens, d), the engine computes what is looked at, so that any length
    will do; ``scale`` None is 1/√d.

    With ``path`` the file is written, its ending says in which format, and its path returned. In a notebook an object
    is returned that shows itself. Else a window opens; with no display attnviz.png is written, and a line says where.
    Raises `ValueError` or `TypeError` with a sentence, and `RuntimeError` where a file cannot be written.
    """
    look = {"size": size, "theme": theme} | ({} if title is None else {"title": title})
    if q is not None or k is not None:
        _refuse_both(weights, q, k, layer, heads)
        return _show_computed(q, k, tokens, mask, scale, path, look)
    if weights is None:
        raise TypeError("there is nothing to show: give weights, or q=… and k=…")
    if scale is not None:
        raise ValueError(f"scale is {scale!r}, but weights are computed already: leave it out, or give q=… and k=…")
    from attnviz.given import arrays  # noqa: PLC0415

    given = arrays.read(weights, tokens, mask)
    count, wanted = len(given.layers), _heads(heads, len(given.layers[0]))
    layer = _layer(layer, count)
    paper = _paper(Paper(), look)
    if path is None and not _in_notebook():
        _open_given(given, layer, wanted, paper)
        return None
    from attnviz.given.paper import given_drawing, png_of, write_given  # noqa: PLC0415

    if path is not None:
        place = _path(path)
        write_given(place, given, layer, wanted, paper)
        return place
    return Shown(png_of(given_drawing(given, layer, wanted, paper), paper))


def _refuse_both(weights: Any, q: Any, k: Any, layer: Any, heads: Any) -> None:
    if weights is not None:
        raise TypeError("weights and q, k are two things to show: give one")
    if q is None or k is None:
        raise TypeError(f"{'q' if k is None else 'k'} is given without {'k' if k is None else 'q'}: give both")
    for name, value in ("layer", layer), ("heads", heads):
        if value is not None:
            raise TypeError(f"{name} chooses among given weights: with q and k give those of the heads you want")


def _layer(layer: int | None, count: int) -> int:
    if layer is None:
        return count - 1
    if not hasattr(layer, "__index__") or not -count <= layer < count:
        last = f"0 to {count - 1}" if count > 1 else "0"
        raise ValueError(f"layer is {layer!r}, but there {'are' if count > 1 else 'is'} {count}: give {last}")
    return operator.index(layer) % count


def _heads(heads: int | Sequence[int] | None, count: int) -> tuple[int, ...]:
    """The heads that are asked for, () for all of them."""
    if heads is None:
        return ()
    listed = tuple(heads) if isinstance(heads, Iterable) else (heads,)
    for head in listed:
        if not hasattr(head, "__index__") or not 0 <= head < count:
            raise ValueError(f"heads has {head!r}: heads count from 0 to {count - 1}")
    wanted = tuple(map(operator.index, listed))
    if not wanted or len(set(wanted)) < len(wanted):
        raise ValueError(f"heads is {heads!r}: give some heads, each once, or None for all of them")
    return wanted


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return "IPKernelApp" in getattr(shell, "config", {})


def _open_given(given: Given, layer: int, heads: tuple[int, ...], paper: Paper) -> None:
    from attnviz.application import borrowed_application, is_unseen  # noqa: PLC0415
    from attnviz.given.paper import write_given  # noqa: PLC0415

    application = borrowed_application()
    if is_unseen():
        _write_unseen(lambda path: write_given(path, given, layer, heads, paper))
        return
    from attnviz.given.window import GivenWindow  # noqa: PLC0415

    GivenWindow(application, given, layer, heads, paper).run()


def _write_unseen(write: Callable[[Path], object]) -> None:
    """No window can be shown: a picture in the current folder (or a temporary one), and one line that says so."""
    from attnviz import screens  # noqa: PLC0415
    from attnviz.files import FileProblem  # noqa: PLC0415

    for folder in (Path.cwd, partial(tempfile.mkdtemp, prefix="attnviz-")):
        path = Path(folder()) / "attnviz.png"
        try:
            write(path)
        except FileProblem as problem:
            why = problem
        else:
            words = f"no window can be shown ({screens.why_no_window()}); it was written to {path}"
            with suppress(AttributeError, OSError):  # None or broken: it is written all the same
                sys.stderr.write(f"attnviz: {words}\n")
            return
    raise why


# ------------------------------------------------------------------------------------------------ queries and keys


def _show_computed(
    q: Any, k: Any, tokens: Any, mask: Any, scale: float | None, path: str | os.PathLike[str] | None,
    look: Mapping[str, Any],
) -> Path | Shown | None:  # fmt: skip
    """Queries and keys through the engine: they lie in a file of their own until this process ends."""
    spec = _spec_of(q, k, tokens, mask, scale)
    if path is not None:
        return render(spec, path, **look)
    if _in_notebook():
        with tempfile.TemporaryDirectory(prefix="attnviz-") as folder:
            return Shown(render(spec, Path(folder, "shown.png"), **look).read_bytes())
    from attnviz.application import borrowed_application, is_unseen  # noqa: PLC0415

    borrowed_application()
    if is_unseen():
        _write_unseen(lambda path: render(spec, path, **look))
        return None
    from PySide6.QtCore import QSettings  # noqa: PLC0415

    from attnviz import app  # noqa: PLC0415

    settings = QSettings(str(_own_folder() / "window.ini"), QSettings.Format.IniFormat)  # nobody's last session
    settings.setValue("dark", look["theme"] == "dark")
    app.run_window((spec, View()), platform_was_ours=False, settings=settings)
    return None


def _spec_of(q: Any, k: Any, tokens: Any, mask: Any, scale: float | None) -> AttentionSpec:
    import numpy as np  # noqa: PLC0415

    from attnviz import tensor_files  # noqa: PLC0415
    from attnviz.given.arrays import as_array, checked_mask  # noqa: PLC0415

    queries, keys = (_vectors(as_array(value, name), name) for value, name in ((q, "q"), (k, "k")))
    (n_queries, n_keys) = queries.shape[-2], keys.shape[-2]
    wide = np.result_type(queries, keys)
    saved: dict[str, Any] = {"q": queries.astype(wide), "k": keys.astype(wide)}
    if tokens is not None:
        saved["tokens"] = np.array(names_of(tokens, "tokens"), np.str_)
    file = _own_folder(specs.GIVEN_FOLDER) / "qk.npz"
    np.savez(file, **saved)
    fields: dict[str, Any] = {"mask": "none", "training": False, "dtype": wide.name}
    if scale is not None:
        try:
            fields["scale"] = float(scale)
        except (TypeError, ValueError):
            raise SpecError("scale", f"scale is {scale!r}: give a number, or None for 1/√d") from None
    if mask is not None:
        fields["mask"] = "neg-inf"
        visible = checked_mask(mask, n_queries, n_keys)
        if visible is not None:
            np.save(file.with_name("mask.npy"), visible)
            fields["mask_shape"] = tensor_files.describe_mask(file.with_name("mask.npy"))
    try:
        source = tensor_files.describe_qk(file)
    except SpecError as error:
        why = str(error).partition(f"{file}: ")[2]  # nobody knows of that file
        raise SpecError("qk", f"q and k do not fit: {why}" if why else str(error)) from None
    return specs.make_spec(source, **fields)


def _vectors(array: Any, name: str) -> Any:
    """``array`` as (heads, tokens, d) of floating-point numbers."""
    import numpy as np  # noqa: PLC0415

    if array.ndim == 4 and array.shape[0] == 1:
        array = array[0]
    if array.ndim not in (2, 3) or 0 in array.shape:
        also = (
            f", a batch of {array.shape[0]}: give one item, {name}[0]"
            if array.ndim == 4
            else ": give (heads, tokens, d)"
        )
        raise ValueError(f"{name} has shape {array.shape}{also}")
    narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return np.asarray(array if narrow and array.dtype.itemsize == 4 else array.astype(np.float32 if narrow else float))


def _own_folder(prefix: str = "attnviz-") -> Path:
    """A new folder that goes when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
