"""Many processes at work on one database that is being abused, and an audit of what they saw."""
