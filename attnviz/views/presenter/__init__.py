"""The presenter view: what a class sees, in type for the back of a room."""
