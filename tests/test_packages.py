"""What an installed attnviz holds: an editable install finds rooms that a wheel would leave out."""

import tomllib
from pathlib import Path

import attnviz

HERE = Path(attnviz.__file__).parent


def test_every_room_is_in_the_wheel():
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    rooms = {str(path.parent.relative_to(HERE.parent)).replace("/", ".") for path in HERE.rglob("__init__.py")}
    assert {*project["tool"]["setuptools"]["packages"]} == rooms | {"attnviz.resources"}
    folders = {path.parent for path in HERE.rglob("*.py")}
    assert all((folder / "__init__.py").exists() for folder in folders)
