"""The `surrogate` command."""
