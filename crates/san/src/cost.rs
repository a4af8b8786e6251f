//! What a network costs (paper, 5.2).
