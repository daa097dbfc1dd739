"""Tools without mathematics: files, registries of classes, optional libraries, versions."""
