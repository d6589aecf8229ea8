"""Many processes at work on one database while it is being abused, and an audit of what they saw."""
