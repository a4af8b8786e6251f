//! What the harness compiles: the same list for build.rs and for the library.

/// One module of the gates with its parameters, compiled to a C++ class of its own.
pub struct Unit {
    /// The name of the class, and the prefix of its C functions.
    pub name: &'static str,
    /// The top module.
    pub top: &'static str,
    /// Parameters that differ from the module's own.
    pub parameters: &'static [(&'static str, &'static str)],
    /// Its ports, in the order in which the library numbers them.
    pub ports: &'static [&'static str],
}

/// Ports of `edm_scheduler`.
pub const SCHEDULER_PORTS: &[&str] = &[
    "clk_i",
    "rst_ni",
    "demand_valid_i",
    "demand_i",
    "uplink_valid_i",
    "uplink_blocks_i",
    "down_i",
    "refused_o",
    "grant_valid_o",
    "grant_o",
    "refused_count_o",
];

/// All of them. Widths of stamps are small in some, so that they wrap within a test.
pub const UNITS: &[Unit] = &[
    Unit {
        name: "scheduler8",
        top: "edm_scheduler",
        parameters: &[("Ports", "8"), ("TimeW", "16")],
        ports: SCHEDULER_PORTS,
    },
    Unit {
        name: "scheduler3",
        top: "edm_scheduler",
        parameters: &[("Ports", "3"), ("Active", "1"), ("LookAhead", "0")],
        ports: SCHEDULER_PORTS,
    },
    Unit {
        name: "scheduler5_fcfs",
        top: "edm_scheduler",
        parameters: &[("Ports", "5"), ("Active", "2"), ("Chunk", "64"), ("Fcfs", "1'b1")],
        ports: SCHEDULER_PORTS,
    },
];
