"""What drives one window: its parts connected, its files, its lessons, its state kept."""
