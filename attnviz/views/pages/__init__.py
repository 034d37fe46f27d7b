"""The pages beside the maps: one a file, each explains one thing about the picture or runs one study."""
