"""`python -m givens` is the command `givens`."""

from givens.cli import main

if __name__ == "__main__":
    main()
