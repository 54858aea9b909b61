"""Time, value and memory of two versions of the code: `python -m benchmarks.compare COMMIT`, or `make compare OLD=COMMIT`.

Each row of `rows.py` is one call of the library or of the command. Both sides keep a process for the row and make its data once;
then they are called in turns (old, new, new, old, ...), so that a busy moment of the machine meets both. The ratio is old seconds
over new ones: above 1, the new side is faster.
"""
