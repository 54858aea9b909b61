"""What has nothing to do with mathematics: checks of arguments, files, optional packages, progress bars, sources of rows."""
