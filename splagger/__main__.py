"""`python -m splagger` is the command line."""

from splagger.cli import main

main()
