"""`python -m paper`: the paper's experiments."""

from paper.reproduce import app

if __name__ == "__main__":
    app()
