//! One file a design: programs put into hardware models. A rig decides nothing.
