"""Calibration of a model: ranks of truths among samples given data simulated from them."""
