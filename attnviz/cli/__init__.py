"""The command line: arguments → a window or headless work, one file a command."""

from attnviz.cli.entry import commands, main, run
from attnviz.options.figure import figure_options
from attnviz.options.spec import SOURCE_OPTIONS, SPEC_OPTIONS, asked_for, spec_options

__all__ = ["SOURCE_OPTIONS", "SPEC_OPTIONS", "asked_for", "commands", "figure_options", "main", "run", "spec_options"]
