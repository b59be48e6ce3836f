"""Runs an agent class that was written against Harbor's interface, through the evaluator's broker."""
