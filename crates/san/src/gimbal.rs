//! Gimbal (SIGCOMM'21), the target's congestion control and fair queueing.
