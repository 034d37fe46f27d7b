"""The row and its story: one query key by key, now and before."""
