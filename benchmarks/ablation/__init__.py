"""What each mechanism earns: `python -m benchmarks.ablation`, or `make ablation`."""
