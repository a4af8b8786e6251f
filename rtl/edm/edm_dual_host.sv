// A host with two ports, to a primary and to a backup network (paper 3.3). It sends every memory
// block on both, and takes the first copy of each message. Frames have a port of their own each.
//
// Both ports take a block in the same cycle or neither does. So both networks get the same blocks in
// the same order, and without frames in the same cycles. With `PolicyStrict` frames change nothing in
// that; with another policy, frames on one network alone let its switch grant otherwise. A port
// whose link is dead, or whose network is abandoned, sends nothing and holds up nobody. An /N/ waits
// until the requests before it are on both lines.
//
// Latency: that of a host with one port, while both networks are in step.
module edm_dual_host
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 4,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned Chunk = ChunkBytes,
    parameter int unsigned Timeout = 390625,      // 1 ms
    parameter policy_t Policy = PolicyStrict,
    parameter int unsigned FaultsAllowed = 0,
    parameter int unsigned GrantDepth = 64,
    parameter int unsigned LagW = 16,
    parameter int unsigned QueueDepth = 128
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [NodeW-1:0] own_i,

    // The application: requests, and how they end.
    input  logic            access_valid_i,
    output logic            access_ready_o,
    input  access_t         access_i,
    output logic            answered_o,         // a read or modification
    output logic            answered_null_o,
    output logic [TagW-1:0] answered_tag_o,
    output logic            sent_o,             // a write has left
    output logic [TagW-1:0] sent_tag_o,
    output logic            expired_read_o,     // no answer in time: NULL
    output logic [TagW-1:0] expired_read_tag_o,
    output logic            expired_write_o,    // no grant in time
    output logic [TagW-1:0] expired_write_tag_o,
    output logic            refused_o,
    output logic [TagW-1:0] refused_tag_o,
    output logic            written_o,          // a write to this node is whole

    // The memory.
    output logic                receive_read_o,
    output logic [AddressW-1:0] receive_address_o,
    input  logic [63:0]         receive_data_i,
    output logic                transmit_read_o,
    output logic [AddressW-1:0] transmit_address_o,
    input  logic [63:0]         transmit_data_i,
    output logic                write_o,
    output logic [AddressW-1:0] write_address_o,
    output logic [63:0]         write_data_o,
    output logic [3:0]          write_bytes_o,

    // Frames of each port.
    input  logic   [1:0] frame_valid_i,
    output logic   [1:0] frame_ready_o,
    input  block_t [1:0] frame_i,
    output block_t [1:0] frame_o,

    // Both lines, the primary's is number 0.
    output block_t [1:0] line_o,
    input  block_t [1:0] line_i,

    // A link to the primary switch is lost, anywhere in the rack; a switch is lost.
    input  logic       link_lost_i,
    input  logic [1:0] switch_lost_i,
    output logic [1:0] used_o,
    output logic [1:0] given_up_o,

    output logic [1:0]       down_o,
    output logic [1:0][31:0] fault_count_o,
    output logic [31:0]      copy_count_o,
    output logic [31:0]      lost_count_o,
    output logic [31:0]      unexpected_count_o
);

  localparam int unsigned LeadW = 8;

  logic control_valid, control_ready, message_valid, message_ready, message_left;
  block_t control, message;
  logic memory_valid;
  block_t memory;
  logic [1:0] sends, control_readies, message_readies, lefts, memory_valids, memory_faults;
  block_t [1:0] memories;
  logic [1:0][31:0] offers_refused;
  /* verilator lint_off UNUSEDSIGNAL */  // no peer of this rack is a stranger
  logic [31:0] stranger_count;
  /* verilator lint_on UNUSEDSIGNAL */

  for (genvar i = 0; i < 2; i++) begin : gen_port
    assign sends[i] = used_o[i] && !down_o[i];

    edm_port #(
        .Policy       (Policy),
        .FaultsAllowed(FaultsAllowed)
    ) u_port (
        .clk_i,
        .rst_ni,
        .abandoned_i    (!used_o[i]),
        .control_valid_i(control_valid && control_ready),
        .control_ready_o(control_readies[i]),
        .control_i      (control),
        .message_valid_i(message_valid && message_ready),
        .message_ready_o(message_readies[i]),
        .message_i      (message),
        .message_cut_i  (1'b0),
        .message_left_o (lefts[i]),
        .frame_valid_i  (frame_valid_i[i]),
        .frame_ready_o  (frame_ready_o[i]),
        .frame_i        (frame_i[i]),
        .line_o         (line_o[i]),
        .line_i         (line_i[i]),
        .memory_valid_o (memory_valids[i]),
        .memory_o       (memories[i]),
        .memory_fault_o (memory_faults[i]),
        .frame_o        (frame_o[i]),
        .down_o         (down_o[i]),
        .fault_count_o  (fault_count_o[i]),
        .refused_count_o(offers_refused[i])
    );
  end

  assign control_ready = &control_readies;
  assign message_ready = &message_readies;

  // --- A block has left when it has on each line that is in use. ---

  // By how many blocks the primary is ahead.
  logic signed [LeadW-1:0] lead_q, lead_d;
  logic [1:0] leaves, behind;
  always_comb begin
    behind[0] = lead_q < 0;
    behind[1] = lead_q > 0;
    // A line that is not in use follows the other one.
    leaves[0] = sends[0] ? lefts[0] : behind[0] || (lefts[1] && !behind[1]);
    leaves[1] = sends[1] ? lefts[1] : behind[1] || (lefts[0] && !behind[0]);
    message_left = behind == 0 ? leaves == '1 : |(leaves & behind);
    lead_d = lead_q + LeadW'(leaves[0]) - LeadW'(leaves[1]);
  end

  // --- The first copies. ---

  edm_mirror #(
      .Nodes(Nodes),
      .LagW (LagW),
      .Depth(QueueDepth)
  ) u_mirror (
      .clk_i,
      .rst_ni,
      .memory_valid_i  (memory_valids),
      .memory_i        (memories),
      .memory_fault_i  (memory_faults),
      .down_i          (down_o),
      .memory_valid_o  (memory_valid),
      .memory_o        (memory),
      .link_lost_i,
      .switch_lost_i,
      .used_o,
      .given_up_o,
      .copy_count_o,
      .stranger_count_o(stranger_count),
      .lost_count_o
  );

  edm_host_core #(
      .Nodes     (Nodes),
      .Active    (Active),
      .Chunk     (Chunk),
      .Timeout   (Timeout),
      .GrantDepth(GrantDepth)
  ) u_core (
      .clk_i,
      .rst_ni,
      .own_i,
      .access_valid_i,
      .access_ready_o,
      .access_i,
      .answered_o,
      .answered_null_o,
      .answered_tag_o,
      .sent_o,
      .sent_tag_o,
      .expired_read_o,
      .expired_read_tag_o,
      .expired_write_o,
      .expired_write_tag_o,
      .refused_o,
      .refused_tag_o,
      .written_o,
      .receive_read_o,
      .receive_address_o,
      .receive_data_i,
      .transmit_read_o,
      .transmit_address_o,
      .transmit_data_i,
      .write_o,
      .write_address_o,
      .write_data_o,
      .write_bytes_o,
      .control_valid_o(control_valid),
      .control_ready_i(control_ready),
      .control_o      (control),
      .message_valid_o(message_valid),
      .message_ready_i(message_ready),
      .message_o      (message),
      .message_left_i (message_left),
      .memory_valid_i (memory_valid),
      .memory_i       (memory),
      .down_i         (sends == '0),
      .unexpected_count_o
  );

  // By how many blocks each line is ahead of what the core has been told.
  logic [1:0][LeadW-1:0] ahead_q, ahead_d;
  always_comb begin
    for (int unsigned i = 0; i < 2; i++) begin
      ahead_d[i] = ahead_q[i] + LeadW'(leaves[i]) - LeadW'(message_left);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lead_q <= '0;
      ahead_q <= '0;
    end else begin
      lead_q <= lead_d;
      ahead_q <= ahead_d;
      // No line has had less than the core knows of.
      assert (!ahead_d[0][LeadW-1] && !ahead_d[1][LeadW-1]);
      // What a host sends is in sequence.
      assert (sends[0] == 1'b0 || offers_refused[0] == 0);
      assert (sends[1] == 1'b0 || offers_refused[1] == 0);
    end
  end

endmodule
