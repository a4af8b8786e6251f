//! The optimum that no distributed scheme can beat (paper, 4.2).
