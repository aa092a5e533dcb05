"""Surrogates of stochastic simulations."""
