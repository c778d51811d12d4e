"""Files that are either intact or refused: atomic writes, digests of every byte, arrays without code."""
