"""Pictures of frames: where things go, how they are painted on screen and on paper, and the files they end in."""
