"""Tools without mathematics: checks of arguments, files, optional packages, progress bars, sources of rows."""
