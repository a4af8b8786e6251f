//! Histories of operations on registers, and whether they are linearizable.
