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

/// Ports of `edm_multiplexer`.
pub const MULTIPLEXER_PORTS: &[&str] = &[
    "clk_i",
    "rst_ni",
    "control_valid_i",
    "control_i",
    "message_valid_i",
    "message_i",
    "frame_valid_i",
    "frame_i",
    "control_ready_o",
    "message_ready_o",
    "frame_ready_o",
    "block_o",
    "refused_count_o",
];

/// Ports of `edm_demultiplexer`.
pub const DEMULTIPLEXER_PORTS: &[&str] =
    &["clk_i", "rst_ni", "block_i", "memory_valid_o", "memory_o", "frame_o", "fault_o", "fault_count_o"];

/// All of them but those of [`LARGE`]. Widths of stamps are small in some, so that they wrap within a
/// test.
pub const UNITS: &[Unit] = &[
    Unit {
        name: "scheduler4",
        top: "edm_scheduler",
        parameters: &[("Ports", "4"), ("TimeW", "16")],
        ports: SCHEDULER_PORTS,
    },
    Unit {
        name: "scheduler3",
        top: "edm_scheduler",
        parameters: &[("Ports", "3"), ("Active", "1"), ("LookAhead", "0")],
        ports: SCHEDULER_PORTS,
    },
    Unit {
        name: "scheduler4_fcfs",
        top: "edm_scheduler",
        parameters: &[("Ports", "4"), ("Active", "2"), ("Chunk", "64"), ("Fcfs", "1'b1")],
        ports: SCHEDULER_PORTS,
    },
    multiplexer("multiplexer_fair", &[("Policy", "2'd0")]),
    multiplexer("multiplexer_strict", &[("Policy", "2'd1"), ("ControlDepth", "1"), ("MessageDepth", "3")]),
    multiplexer("multiplexer_whole", &[("Policy", "2'd2")]),
    demultiplexer("demultiplexer_fair", &[("Policy", "2'd0")]),
    demultiplexer("demultiplexer_strict", &[("Policy", "2'd1")]),
    demultiplexer("demultiplexer_whole", &[("Policy", "2'd2")]),
];

const fn multiplexer(name: &'static str, parameters: &'static [(&'static str, &'static str)]) -> Unit {
    Unit { name, top: "edm_multiplexer", parameters, ports: MULTIPLEXER_PORTS }
}

const fn demultiplexer(name: &'static str, parameters: &'static [(&'static str, &'static str)]) -> Unit {
    Unit { name, top: "edm_demultiplexer", parameters, ports: DEMULTIPLEXER_PORTS }
}

/// What takes minutes to compile: only with the feature `large`.
pub const LARGE: &[Unit] = &[Unit {
    name: "scheduler8",
    top: "edm_scheduler",
    parameters: &[("Ports", "8"), ("TimeW", "16")],
    ports: SCHEDULER_PORTS,
}];
