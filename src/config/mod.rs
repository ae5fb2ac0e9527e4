//! Where things are on this machine, and the key map.
