"""The words of the command line, which decks have too: options of a spec and of a figure, and what they ask for."""
