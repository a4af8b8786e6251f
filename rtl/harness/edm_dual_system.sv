// A rack with two networks in gates, for the harness: hosts with two ports and their memories, and two
// switches. Beside `edm_system`, which it is else: link number `network * Nodes + node`, and what
// hosts and switches say of networks. A link that is dead at either end loses its network.
module edm_dual_system
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 2,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned Chunk = ChunkBytes,
    parameter bit Fcfs = 1'b0,
    parameter int unsigned LookAhead = 3,
    parameter int unsigned Timeout = 20000,
    parameter policy_t Policy = PolicyStrict,
    parameter int unsigned FaultsAllowed = 0,
    parameter int unsigned Bytes = 65536,
    localparam int unsigned Links = 2 * Nodes,
    localparam int unsigned Probes = 10
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic    [Nodes-1:0]           access_valid_i,
    output logic    [Nodes-1:0]           access_ready_o,
    input  access_t [Nodes-1:0]           access_i,
    output logic    [Nodes-1:0]           answered_o,
    output logic    [Nodes-1:0]           answered_null_o,
    output logic    [Nodes-1:0][TagW-1:0] answered_tag_o,
    output logic    [Nodes-1:0]           sent_o,
    output logic    [Nodes-1:0][TagW-1:0] sent_tag_o,
    output logic    [Nodes-1:0]           expired_read_o,
    output logic    [Nodes-1:0][TagW-1:0] expired_read_tag_o,
    output logic    [Nodes-1:0]           expired_write_o,
    output logic    [Nodes-1:0][TagW-1:0] expired_write_tag_o,
    output logic    [Nodes-1:0]           refused_o,
    output logic    [Nodes-1:0][TagW-1:0] refused_tag_o,
    output logic    [Nodes-1:0]           written_o,

    input  logic [Nodes-1:0]               cpu_write_i,
    output logic [Nodes-1:0]               cpu_ready_o,
    input  logic [Nodes-1:0]               cpu_read_i,
    input  logic [Nodes-1:0][AddressW-1:0] cpu_address_i,
    input  logic [Nodes-1:0][63:0]         cpu_write_data_i,
    output logic [Nodes-1:0][63:0]         cpu_read_data_o,

    // Frames: of the hosts, and of the switch's ports.
    input  logic   [Links-1:0] host_frame_valid_i,
    output logic   [Links-1:0] host_frame_ready_o,
    input  block_t [Links-1:0] host_frame_i,
    output block_t [Links-1:0] host_frame_o,
    input  logic   [Links-1:0] port_frame_valid_i,
    output logic   [Links-1:0] port_frame_ready_o,
    input  block_t [Links-1:0] port_frame_i,
    output block_t [Links-1:0] port_frame_o,

    // Bits that change on the lines to and from the switch.
    input block_t [Links-1:0] noise_up_i,
    input block_t [Links-1:0] noise_down_i,

    // The lines as they arrive, scrambled.
    output block_t [Links-1:0] up_o,
    output block_t [Links-1:0] down_o,

    output logic [Links-1:0]       host_down_o,
    output logic [Links-1:0][31:0] host_fault_count_o,
    output logic [Nodes-1:0][31:0] host_unexpected_count_o,
    output logic [Nodes-1:0][31:0] outside_count_o,
    output logic [Links-1:0]       port_down_o,
    output logic [Links-1:0][31:0] port_fault_count_o,
    output logic [31:0]            demand_refused_count_o,
    output logic [31:0]            demand_withdrawn_count_o,
    output logic [31:0]            withdrawal_idle_count_o,
    output logic [Links-1:0][31:0] violation_count_o,
    output logic [Links-1:0][31:0] lost_count_o,

    // Where the message is, cycle by cycle; `Probe` in the harness names them.
    output logic [Nodes-1:0][Probes-1:0] probe_o,

    // A switch is lost: a pulse is enough. Which networks each node sends on, and which it has given
    // up; second copies, and blocks that its mirror has lost.
    input  logic [1:0]             switch_lost_i,
    output logic [Nodes-1:0][1:0]  used_o,
    output logic [Nodes-1:0][1:0]  given_up_o,
    output logic [Nodes-1:0][31:0] copy_count_o,
    output logic [Nodes-1:0][31:0] mirror_lost_count_o
);

  block_t [Links-1:0] up, down;
  assign up_o = up ^ noise_up_i;
  assign down_o = down ^ noise_down_i;

  // What the rack's management says to all nodes, one cycle later.
  logic [1:0] lost_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lost_q <= '0;
    end else begin
      for (int unsigned w = 0; w < 2; w++) begin
        lost_q[w] <= |host_down_o[w*Nodes+:Nodes] || |port_down_o[w*Nodes+:Nodes];
      end
    end
  end

  logic [1:0][31:0] refused, withdrawn, idle;
  assign demand_refused_count_o = refused[0] + refused[1];
  assign demand_withdrawn_count_o = withdrawn[0] + withdrawn[1];
  assign withdrawal_idle_count_o = idle[0] + idle[1];

  for (genvar w = 0; w < 2; w++) begin : gen_network
    edm_switch #(
        .Ports        (Nodes),
        .Active       (Active),
        .Chunk        (Chunk),
        .Fcfs         (Fcfs),
        .LookAhead    (LookAhead),
        .Timeout      (Timeout),
        .Policy       (Policy),
        .FaultsAllowed(FaultsAllowed)
    ) u_switch (
        .clk_i,
        .rst_ni,
        .line_i           (up_o[w*Nodes+:Nodes]),
        .line_o           (down[w*Nodes+:Nodes]),
        .frame_valid_i    (port_frame_valid_i[w*Nodes+:Nodes]),
        .frame_ready_o    (port_frame_ready_o[w*Nodes+:Nodes]),
        .frame_i          (port_frame_i[w*Nodes+:Nodes]),
        .frame_o          (port_frame_o[w*Nodes+:Nodes]),
        .down_o           (port_down_o[w*Nodes+:Nodes]),
        .fault_count_o    (port_fault_count_o[w*Nodes+:Nodes]),
        .refused_count_o  (refused[w]),
        .withdrawn_count_o(withdrawn[w]),
        .idle_count_o     (idle[w]),
        .violation_count_o(violation_count_o[w*Nodes+:Nodes]),
        .lost_count_o     (lost_count_o[w*Nodes+:Nodes])
    );
  end

  for (genvar n = 0; n < Nodes; n++) begin : gen_node
    logic receive_read, transmit_read, write;
    logic [AddressW-1:0] receive_address, transmit_address, write_address;
    logic [63:0] receive_data, transmit_data, write_data;
    logic [3:0] write_bytes;

    edm_dual_host #(
        .Nodes        (Nodes),
        .Active       (Active),
        .Chunk        (Chunk),
        .Timeout      (Timeout),
        .Policy       (Policy),
        .FaultsAllowed(FaultsAllowed)
    ) u_host (
        .clk_i,
        .rst_ni,
        .own_i              (NodeW'(n)),
        .access_valid_i     (access_valid_i[n]),
        .access_ready_o     (access_ready_o[n]),
        .access_i           (access_i[n]),
        .answered_o         (answered_o[n]),
        .answered_null_o    (answered_null_o[n]),
        .answered_tag_o     (answered_tag_o[n]),
        .sent_o             (sent_o[n]),
        .sent_tag_o         (sent_tag_o[n]),
        .expired_read_o     (expired_read_o[n]),
        .expired_read_tag_o (expired_read_tag_o[n]),
        .expired_write_o    (expired_write_o[n]),
        .expired_write_tag_o(expired_write_tag_o[n]),
        .refused_o          (refused_o[n]),
        .refused_tag_o      (refused_tag_o[n]),
        .written_o          (written_o[n]),
        .receive_read_o     (receive_read),
        .receive_address_o  (receive_address),
        .receive_data_i     (receive_data),
        .transmit_read_o    (transmit_read),
        .transmit_address_o (transmit_address),
        .transmit_data_i    (transmit_data),
        .write_o            (write),
        .write_address_o    (write_address),
        .write_data_o       (write_data),
        .write_bytes_o      (write_bytes),
        .frame_valid_i      ({host_frame_valid_i[Nodes+n], host_frame_valid_i[n]}),
        .frame_ready_o      ({host_frame_ready_o[Nodes+n], host_frame_ready_o[n]}),
        .frame_i            ({host_frame_i[Nodes+n], host_frame_i[n]}),
        .frame_o            ({host_frame_o[Nodes+n], host_frame_o[n]}),
        .line_o             ({up[Nodes+n], up[n]}),
        .line_i             ({down_o[Nodes+n], down_o[n]}),
        .down_o             ({host_down_o[Nodes+n], host_down_o[n]}),
        .fault_count_o      ({host_fault_count_o[Nodes+n], host_fault_count_o[n]}),
        .link_lost_i        (lost_q[0]),
        .switch_lost_i      ({lost_q[1], 1'b0} | switch_lost_i),
        .used_o             (used_o[n]),
        .given_up_o         (given_up_o[n]),
        .copy_count_o       (copy_count_o[n]),
        .lost_count_o       (mirror_lost_count_o[n]),
        .unexpected_count_o (host_unexpected_count_o[n])
    );

    edm_memory #(
        .Bytes(Bytes)
    ) u_memory (
        .clk_i,
        .rst_ni,
        .receive_read_i    (receive_read),
        .receive_address_i (receive_address),
        .receive_data_o    (receive_data),
        .transmit_read_i   (transmit_read),
        .transmit_address_i(transmit_address),
        .transmit_data_o   (transmit_data),
        .write_i           (write),
        .write_address_i   (write_address),
        .write_data_i      (write_data),
        .write_bytes_i     (write_bytes),
        .cpu_write_i       (cpu_write_i[n]),
        .cpu_ready_o       (cpu_ready_o[n]),
        .cpu_read_i        (cpu_read_i[n]),
        .cpu_address_i     (cpu_address_i[n]),
        .cpu_write_data_i  (cpu_write_data_i[n]),
        .cpu_read_data_o   (cpu_read_data_o[n]),
        .outside_count_o   (outside_count_o[n])
    );

    assign probe_o[n] = {
      write,
      receive_read,
      u_host.u_core.permit_valid,
      u_host.u_core.taken_valid,
      u_host.memory_valid,
      u_host.control_valid || u_host.message_valid,
      gen_network[0].u_switch.grant_valid[n],
      gen_network[0].u_switch.demand_valid[n],
      gen_network[0].u_switch.gen_port[n].control_valid || gen_network[0].u_switch.gen_port[n].message_valid,
      gen_network[0].u_switch.gen_port[n].memory_valid
    };
  end

endmodule
