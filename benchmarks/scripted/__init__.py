"""Scripted policies for the classic tasks, and their returns, which learned agents are compared with."""
