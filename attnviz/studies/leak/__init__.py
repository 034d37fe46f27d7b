"""Who sees whom: what a changed token moves, in any module, and what that says of its mask."""

from attnviz.studies.leak.movement import Testable
from attnviz.studies.leak.readings import DTYPES, SCALES, Plan, answers

__all__ = ["DTYPES", "SCALES", "Plan", "Testable", "answers"]
