"""Files that cannot lie: atomic writes, digests of every byte, arrays without code."""
