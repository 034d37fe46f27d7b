"""Numbers as tables, for spreadsheets and for programs: of a stage, of a row, of a study. No Qt, no torch."""

from attnviz.tables.lines import BOM, Lines, Maps, Table
from attnviz.tables.maps import csv_text
from attnviz.tables.rows import row_table
from attnviz.tables.studies import study_tables

__all__ = ["BOM", "Lines", "Maps", "Table", "csv_text", "row_table", "study_tables"]
