"""Random attacks on the whole library; `python -m tests.fuzz --help` says how to run them."""
