"""Bridges to other libraries."""
