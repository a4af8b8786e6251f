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
    /// Options of Verilator for it alone.
    pub options: &'static [&'static str],
}

/// Many queues share one copy of their code: loops stay loops, and what is connected to a queue is
/// not written into its code. The gates run slower, but their C++ grows with the ports and not with
/// their cube.
pub const SHARED: &[&str] = &["--unroll-count", "4", "-fno-gate"];

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
    "withdrawn_count_o",
    "idle_count_o",
];

/// Ports of `edm_mirror`.
pub const MIRROR_PORTS: &[&str] = &[
    "clk_i",
    "rst_ni",
    "memory_valid_i",
    "memory_i",
    "memory_fault_i",
    "down_i",
    "link_lost_i",
    "switch_lost_i",
    "memory_valid_o",
    "memory_o",
    "used_o",
    "given_up_o",
    "copy_count_o",
    "stranger_count_o",
    "lost_count_o",
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

macro_rules! system_ports {
    ($($more:literal)*) => {
        &[
            "clk_i",
            "rst_ni",
            "access_valid_i",
            "access_i",
            "access_ready_o",
            "answered_o",
            "answered_null_o",
            "answered_tag_o",
            "sent_o",
            "sent_tag_o",
            "expired_read_o",
            "expired_read_tag_o",
            "expired_write_o",
            "expired_write_tag_o",
            "refused_o",
            "refused_tag_o",
            "written_o",
            "cpu_write_i",
            "cpu_ready_o",
            "cpu_read_i",
            "cpu_address_i",
            "cpu_write_data_i",
            "cpu_read_data_o",
            "host_frame_valid_i",
            "host_frame_i",
            "host_frame_ready_o",
            "host_frame_o",
            "port_frame_valid_i",
            "port_frame_i",
            "port_frame_ready_o",
            "port_frame_o",
            "noise_up_i",
            "noise_down_i",
            "up_o",
            "down_o",
            "host_down_o",
            "host_fault_count_o",
            "host_unexpected_count_o",
            "outside_count_o",
            "port_down_o",
            "port_fault_count_o",
            "demand_refused_count_o",
            "demand_withdrawn_count_o",
            "withdrawal_idle_count_o",
            "violation_count_o",
            "lost_count_o",
            "probe_o",
            $($more,)*
        ]
    };
}

/// Ports of `edm_system`.
pub const SYSTEM_PORTS: &[&str] = system_ports!();

/// Ports of `edm_dual_system`.
pub const DUAL_PORTS: &[&str] =
    system_ports!("switch_lost_i" "used_o" "given_up_o" "copy_count_o" "mirror_lost_count_o");

/// Ports of `edm_switch_seen`.
pub const SWITCH_PORTS: &[&str] = &[
    "clk_i",
    "rst_ni",
    "line_i",
    "line_o",
    "frame_valid_i",
    "frame_ready_o",
    "frame_i",
    "frame_o",
    "down_o",
    "fault_count_o",
    "refused_count_o",
    "withdrawn_count_o",
    "idle_count_o",
    "violation_count_o",
    "lost_count_o",
    "circuits_o",
    "open_o",
    "lane_o",
];

/// All of them but those of [`LARGE`]. Widths of stamps are small in some, so that they wrap within
/// a test.
pub const UNITS: &[Unit] = &[
    Unit {
        name: "scheduler4",
        top: "edm_scheduler",
        parameters: &[("Ports", "4"), ("TimeW", "16")],
        ports: SCHEDULER_PORTS,
        options: &[],
    },
    Unit {
        name: "scheduler3",
        top: "edm_scheduler",
        parameters: &[("Ports", "3"), ("Active", "1"), ("LookAhead", "0")],
        ports: SCHEDULER_PORTS,
        options: &[],
    },
    Unit {
        name: "scheduler4_fcfs",
        top: "edm_scheduler",
        parameters: &[("Ports", "4"), ("Active", "2"), ("Chunk", "64"), ("Fcfs", "1'b1")],
        ports: SCHEDULER_PORTS,
        options: &[],
    },
    Unit {
        name: "scheduler16",
        top: "edm_scheduler",
        parameters: &[("Ports", "16"), ("TimeW", "16")],
        ports: SCHEDULER_PORTS,
        options: SHARED,
    },
    Unit { name: "system2", top: "edm_system", parameters: &[("Nodes", "2")], ports: SYSTEM_PORTS, options: &[] },
    Unit {
        name: "system3",
        top: "edm_system",
        parameters: &[("Nodes", "3"), ("Chunk", "64"), ("Policy", "2'd1"), ("FaultsAllowed", "1000000")],
        ports: SYSTEM_PORTS,
        options: &[],
    },
    Unit { name: "dual2", top: "edm_dual_system", parameters: &[("Nodes", "2")], ports: DUAL_PORTS, options: &[] },
    Unit {
        name: "dual2_fair",
        top: "edm_dual_system",
        parameters: &[("Nodes", "2"), ("Policy", "2'd0")],
        ports: DUAL_PORTS,
        options: &[],
    },
    Unit {
        name: "switch3",
        top: "edm_switch_seen",
        parameters: &[
            ("Ports", "3"),
            ("Active", "2"),
            ("Chunk", "64"),
            ("Timeout", "400"),
            ("FaultsAllowed", "3"),
            ("ForwardDepth", "32"),
            ("StallMax", "40"),
        ],
        ports: SWITCH_PORTS,
        options: &[],
    },
    Unit {
        name: "mirror",
        top: "edm_mirror",
        parameters: &[("Nodes", "4"), ("LagW", "5"), ("Depth", "16"), ("StallMax", "7")],
        ports: MIRROR_PORTS,
        options: &[],
    },
    multiplexer("multiplexer_fair", &[("Policy", "2'd0")]),
    multiplexer("multiplexer_strict", &[("Policy", "2'd1"), ("ControlDepth", "1"), ("MessageDepth", "3")]),
    multiplexer("multiplexer_whole", &[("Policy", "2'd2")]),
    demultiplexer("demultiplexer_fair", &[("Policy", "2'd0")]),
    demultiplexer("demultiplexer_strict", &[("Policy", "2'd1")]),
    demultiplexer("demultiplexer_whole", &[("Policy", "2'd2")]),
];

const fn multiplexer(name: &'static str, parameters: &'static [(&'static str, &'static str)]) -> Unit {
    Unit { name, top: "edm_multiplexer", parameters, ports: MULTIPLEXER_PORTS, options: &[] }
}

const fn demultiplexer(name: &'static str, parameters: &'static [(&'static str, &'static str)]) -> Unit {
    Unit { name, top: "edm_demultiplexer", parameters, ports: DEMULTIPLEXER_PORTS, options: &[] }
}

/// What takes minutes to compile: only with the feature `large`.
pub const LARGE: &[Unit] = &[
    Unit {
        name: "scheduler144",
        top: "edm_scheduler",
        parameters: &[("Ports", "144"), ("TimeW", "24")],
        ports: SCHEDULER_PORTS,
        options: SHARED,
    },
    Unit {
        name: "switch4",
        top: "edm_switch_seen",
        parameters: &[("Ports", "4"), ("Fcfs", "1'b1"), ("Policy", "2'd1")],
        ports: SWITCH_PORTS,
        options: &[],
    },
];
