"""What a library is: its manifest, the files it lies in, and the cache."""
