//! What a host does when an I/O is not answered.
