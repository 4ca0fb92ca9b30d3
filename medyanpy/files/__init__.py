"""Files that hold a whole simulation or its frames: documents, checkpoints, trajectories, and how files are written."""
