"""Symbolic sizes and guards; imports nothing of the project."""
