"""Modules under test: found by the name that a person gives, built with arguments filled in by name, and called.

The one place that runs a user's file, and only the one that the user names.
"""

from attnviz.subjects.building import Wishes, build
from attnviz.subjects.calling import Subject
from attnviz.subjects.errors import SubjectError
from attnviz.subjects.loading import find

__all__ = ["Subject", "SubjectError", "Wishes", "build", "find"]
