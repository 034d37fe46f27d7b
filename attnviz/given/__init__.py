"""Weights that somebody has already, shown without computing them: checked, framed, on paper, in a small window."""
