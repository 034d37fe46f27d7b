"""``attnviz render``: pictures, arrays, tables and spec files without a window, one by one or a whole deck."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from attnviz.cli.progress import progress
from attnviz.figures import ANIMATES, NUMBERS, PICTURES, Figure
from attnviz.opening import REMEMBERING
from attnviz.options.figure import clipped, clipping_words, figure_for, figure_options, said, studies_words
from attnviz.options.used import check_used
from attnviz.screens import use_offscreen
from attnviz.session_files import SUFFIX
from attnviz.spec import AttentionSpec, MaskFile, SpecError

_LEAST_MEMORY: Final = 1_000_000
_HELP: Final = (
    "Compute without a window and write a picture, arrays or a spec file; or every picture that DECK.toml describes."
)


class Bytes(click.ParamType[int]):
    """An amount of memory, such as 2GB."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(k|M|G|T)?B?\s*", str(value), re.IGNORECASE)
        size = float(found[1]) * 1000 ** " kMGT".lower().index((found[2] or " ").lower()) if found else 0
        if not _LEAST_MEMORY <= size < 1e18:
            words = "give a number and a unit, such as 2GB, and at least 1MB"
            return self.fail(f"{value!r} is no amount of memory: {words}", param, ctx)
        return int(size)


def render_command(leave: Callable[..., object], say: Callable[[str], object]) -> click.Command:
    """The command ``render``. ``leave`` ends the process on Ctrl+C, ``say`` writes a line on stderr."""

    @click.command("render", help=_HELP, short_help="Write a picture, its numbers or a spec.", epilog=studies_words())
    @click.argument("deck", required=False, metavar="[DECK.toml]")
    @click.option("--out", type=click.Path(path_type=Path), help="Folder for the pictures of a deck.")
    @click.option("--only", metavar="NAME", help="Only the pictures of a deck with this name; * stands for anything.")
    @click.option("--jobs", type=click.IntRange(1, 64), help="Pictures made at a time (default: one a core, up to 4).")
    @click.option("--image", type=click.Path(path_type=Path), help="Write a .png, .svg, .pdf or .gif.")
    @click.option("--data", type=click.Path(path_type=Path), help="Write the numbers: all (.npz), or a table (.csv).")
    @click.option("--save-spec", type=click.Path(path_type=Path), help="Write the spec as JSON.")
    @click.option("--memory", type=Bytes(), help="Memory to take, such as 2GB (default: a quarter of what is free).")
    @figure_options
    def render(
        deck: str | None, *, out: Path | None, only: str | None, jobs: int | None, image: Path | None,
        data: Path | None, save_spec: Path | None, memory: int | None, **options: Any,
    ) -> int:  # fmt: skip
        """Exit status after every file asked for is written."""
        signal.signal(signal.SIGINT, leave)  # libraries swallow a KeyboardInterrupt now and then
        if deck is not None:
            return _render_deck(deck, out, only, jobs, memory, (image, data, save_spec), options)
        for name, given in ("out", out), ("only", only), ("jobs", jobs):
            if given is not None:
                raise click.UsageError(f"--{name} belongs to a deck: give DECK.toml too")
        _check_outputs(image, data, save_spec)
        figure = figure_for(options)
        check_used(figure, options)
        if options["animates"] is not None and (image is None or image.suffix.lower() != ".gif"):
            raise click.UsageError(f"--animate {figure.animates} is for a GIF: give --image FILE.gif")
        asked, figure = figure, clipped(figure)
        for sentence in clipping_words(asked, figure):
            say(f"--{sentence}")
        if options["mask_shape"] is not None:
            _check_mask_file(figure.spec)
        _write(figure, image, data, save_spec, memory, say)
        if image is not None and image.suffix.lower() == ".gif" and figure.animates == "nothing":
            say(f"this GIF is one picture, which does not move: give --animate {', '.join(ANIMATES[1:])}")
        spec = figure.spec
        dropped = f"dropped_{spec.dropout_site}"
        plain = image is not None and figure.shows == "heads" and figure.animates == "nothing"
        if plain and spec.drops and figure.view.stage == "weights" and options["stage"] is None:
            say(f"dropout acts after this stage: see --stage {dropped}")
        return 0

    return render


def _check_outputs(image: Path | None, data: Path | None, save_spec: Path | None) -> None:
    if image is None and data is None and save_spec is None:
        raise click.UsageError("no output asked for: give --image FILE.png, --data FILE.npz or --save-spec FILE.json")
    outputs = [path.resolve() for path in (image, data, save_spec) if path is not None]
    if len(set(outputs)) < len(outputs):
        raise click.UsageError("two outputs have one path: give each a file of its own")
    for name, path, suffixes in ("image", image, PICTURES), ("data", data, NUMBERS):
        if path is not None and path.suffix.lower() not in suffixes:
            words = "write" if path.suffix else "give a name that ends in"
            raise click.UsageError(f"--{name} is {str(path)!r}: {words} {', '.join(suffixes)}")


def _write(
    figure: Figure, image: Path | None, data: Path | None, save_spec: Path | None, memory: int | None,
    say: Callable[[str], object],
) -> None:  # fmt: skip
    from attnviz import number_files, rendering

    if save_spec is not None:
        rendering.write_spec(save_spec, figure.spec, figure.view)
    if data is None and image is None:
        return
    from attnviz.engine import Engine

    engine = Engine(budget_bytes=memory)
    shelf: dict[str, Any] = {}  # a study of both is run once, unless numbers are of cells and pixels of several
    if data is not None:
        with progress(data.name) as tell:
            number_files.write_numbers(
                data, figure, engine, progress=lambda share: tell(f"{100 * share:.0f} %"), shelf=shelf
            )  # fmt: skip
    if image is not None:
        use_offscreen()
        from PySide6.QtGui import QGuiApplication

        application = QGuiApplication.instance() or QGuiApplication(["attnviz"])
        with progress(image.name) as tell:
            remarks = rendering.write_figure(
                image, figure, engine, progress=lambda share: tell(f"{100 * share:.0f} %"), shelf=shelf
            )  # fmt: skip
        for remark in remarks:
            say(remark)
        del application


def _render_deck(
    deck: str, out: Path | None, only: str | None, jobs: int | None, memory: int | None,
    others: tuple[Path | None, ...], options: dict[str, Any],
) -> int:  # fmt: skip
    from attnviz.cli.scene import render_deck

    if Path(deck).suffix.lower() in (*REMEMBERING, ".json", SUFFIX):
        raise click.UsageError(f"{deck!r} is no deck, which ends in .toml: give --spec {deck}")
    given = list(said(options))
    if any(path is not None for path in others) or given:
        flags = given or [n for n, path in zip(("image", "data", "save-spec"), others, strict=True) if path is not None]
        raise click.UsageError(f"a deck says itself what it draws: leave --{flags[0].replace('_', '-')} out")
    if not deck.lower().endswith(".toml"):
        raise click.UsageError(f"{deck!r} is no deck: give a .toml file, or --image FILE.png and a source")
    if out is None:
        raise click.UsageError("a deck needs a folder to write into: give --out FOLDER")
    status: int = render_deck(Path(deck), out, only=only, jobs=jobs, memory=memory)
    return status


def _check_mask_file(spec: AttentionSpec) -> None:
    """Raise `SpecError` unless the mask's file, if it is one, has the map's shape."""
    if not isinstance(spec.mask_shape, MaskFile):
        return
    from attnviz import inputs, tensor_files
    from attnviz.files import FileProblem

    try:
        tensor_files.open_mask(spec.mask_shape, *inputs.count_tokens(spec.source))
    except FileProblem as problem:
        raise SpecError("mask_shape", problem.sentence) from problem
