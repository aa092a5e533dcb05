"""Scenarios as temporal constraints."""
