//! What both ends of a session keep.
