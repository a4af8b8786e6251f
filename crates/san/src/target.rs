//! The storage node.
