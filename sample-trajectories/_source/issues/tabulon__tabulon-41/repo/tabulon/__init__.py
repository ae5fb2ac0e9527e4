"""Plain text tables that line up in a terminal."""

from .ansi import paint
from .render import STYLES, render
from .width import char_width, clip, display_width, pad

__all__ = ["STYLES", "char_width", "clip", "display_width", "pad", "paint", "render"]
__version__ = "0.4.1"
