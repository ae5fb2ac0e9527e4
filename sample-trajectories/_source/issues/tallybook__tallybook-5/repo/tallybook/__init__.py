"""Who owes what in a group."""

from .book import Book
from .money import Money
from .split import allocate

__all__ = ["Book", "Money", "allocate"]
__version__ = "0.2.0"
