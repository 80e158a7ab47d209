"""Files: what lies on the disk, temporary folders, and files that appear as a whole."""
