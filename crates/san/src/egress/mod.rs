//! Queues of a port (paper, 4.5).
