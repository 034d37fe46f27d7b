"""One widget a file; each shows snapshots with `present`, which emits nothing."""
