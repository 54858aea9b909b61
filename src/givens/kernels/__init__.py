"""The compiled code. Each file is complete in itself (see `compile`)."""
