"""Numbers as tables, for spreadsheets and for programs: of a stage, of a row, of a study. No Qt, no torch."""

from attnviz.tables.lines import BOM, Csv, Lines, Maps, Table
from attnviz.tables.maps import stage_csv
from attnviz.tables.rows import row_table
from attnviz.tables.studies import study_tables

__all__ = ["BOM", "Csv", "Lines", "Maps", "Table", "row_table", "stage_csv", "study_tables"]
