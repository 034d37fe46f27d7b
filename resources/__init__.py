"""Fonts, colour tables, icons and pins that go with the package; installed as `attnviz.resources`."""
