"""``attnviz code``: a stage as a short Python script, on standard output or in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from attnviz.scripts import MOST_LINES, script
from attnviz.spec import AttentionSpec, Text, View, make_spec


def code_command(
    add_spec_options: Callable[[Callable[..., Any]], Callable[..., Any]],
    read_spec: Callable[[dict[str, Any]], tuple[AttentionSpec, View] | None],
) -> click.Command:
    """The command ``code``. ``read_spec`` gives (spec, view) for the options of a spec, None where none is given."""

    @click.command(
        "code", short_help="Print a Python script that gives the same numbers.",
        help=f"Print a Python script of at most {MOST_LINES} lines that computes a stage and prints its "
        "numbers, with torch and the standard library alone.",
    )  # fmt: skip
    @click.option("--output", type=click.Path(path_type=Path), help="Write the script to this file instead.")
    @add_spec_options
    def code(output: Path | None, **options: Any) -> int:
        """Exit status after the script is printed or written."""
        spec, view = read_spec(options) or (make_spec(), View())
        text = script(spec, view, _tokens(spec))
        if output is None:
            click.echo(text, nl=False)
            return 0
        from attnviz import files

        files.write_whole(output, lambda file: file.write(text.encode()))
        return 0

    return code


def _tokens(spec: AttentionSpec) -> tuple[str, ...]:
    """A text's tokens; none for another source, whose script needs none."""
    if not isinstance(spec.source, Text):
        return ()
    from attnviz.inputs.text import split_tokens

    return split_tokens(spec.source.text)
