"""The contract as a small model, and a machine that drives it in lock step with the engines."""
