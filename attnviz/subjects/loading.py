"""FILE.py:NAME and package.module:NAME to what stands there."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Final

from attnviz.subjects.errors import SubjectError, raised

FORMS: Final = "FILE.py:NAME or package.module:NAME"


def find(target: str) -> object:
    """What ``target`` names, after its file has run. Raises `SubjectError`."""
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name or "\\" in name or "/" in name:
        raise SubjectError(f"{target!r} names no module: give {FORMS}", "asked")
    module = _from_file(Path(where)) if _is_file(where) else _imported(where)
    found: object = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise SubjectError(f"{where} has no {name!r}{_instead(module, name)}", "asked") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a module may answer for names itself
            raise SubjectError(f"{target} could not be looked up: {raised(error)}") from error
    return found


def _is_file(where: str) -> bool:
    return where.endswith(".py") or "/" in where or "\\" in where


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise SubjectError(f"there is no file {str(path)!r}", "asked")
    path = path.resolve()
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"attnviz_checked_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SubjectError(f"{str(path)!r} is no Python file", "asked")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look there while the file runs
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # behind all else: a neighbour must not stand in for a library
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # nothing is left beside a person's file
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        sys.modules.pop(name, None)
        hint = ": give package.module:NAME" if "relative import" in str(error) else ""
        raise SubjectError(f"{path.name} could not be run: {raised(error, str(path))}{hint}") from error
    finally:
        sys.dont_write_bytecode = wrote
    return module


def _imported(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")  # a package in the folder where one stands
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise SubjectError(f"there is no module {name!r} here: give {FORMS}", "asked") from error
        raise SubjectError(f"{name} could not be imported: {raised(error)}") from error
    except BaseException as error:
        raise SubjectError(f"{name} could not be imported: {raised(error)}") from error


def _instead(module: ModuleType, name: str) -> str:
    """Names in ``module`` that may be meant."""
    own = [
        key for key, value in vars(module).items()
        if not key.startswith("_") and (inspect.isclass(value) or callable(value))
        and getattr(value, "__module__", None) == module.__name__
    ]  # fmt: skip
    near = get_close_matches(name, own, 3, 0.6)
    if near:
        return f": did you mean {' or '.join(near)}?"
    return f": there are {', '.join(own[:8])}{' …' if len(own) > 8 else ''}" if own else ""
