"""One HTML page with all results, rendered from the same tables as the docs and the README."""

from splagger.report.page import report as report
