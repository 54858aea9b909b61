"""`python -m givens` is the command `givens`."""

from givens.app.commands import main

if __name__ == "__main__":
    main()
