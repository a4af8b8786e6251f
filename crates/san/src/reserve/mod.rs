//! Bandwidth for answers, booked when the request passes (paper, 4.4).
