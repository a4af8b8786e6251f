// A host: the network stack of EDM in the NIC of a compute node, a memory node, or both (paper
// 3.2.1, Figure 3): a port, and all that is behind it. Latency: that of both.
module edm_host
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 4,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned Chunk = ChunkBytes,
    parameter int unsigned Timeout = 390625,      // 1 ms
    parameter policy_t Policy = PolicyFair,
    parameter int unsigned FaultsAllowed = 0,
    parameter int unsigned GrantDepth = 64
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

    // Frames.
    input  logic   frame_valid_i,
    output logic   frame_ready_o,
    input  block_t frame_i,
    output block_t frame_o,

    // The line.
    output block_t line_o,
    input  block_t line_i,

    output logic        down_o,
    output logic [31:0] fault_count_o,
    output logic [31:0] unexpected_count_o
);

  logic control_valid, control_ready, message_valid, message_ready, message_left;
  block_t control, message;
  logic memory_valid;
  block_t memory;
  /* verilator lint_off UNUSEDSIGNAL */  // a host hands nothing on
  logic memory_fault;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [31:0] offers_refused;

  edm_port #(
      .Policy       (Policy),
      .FaultsAllowed(FaultsAllowed)
  ) u_port (
      .clk_i,
      .rst_ni,
      .abandoned_i    (1'b0),
      .control_valid_i(control_valid),
      .control_ready_o(control_ready),
      .control_i      (control),
      .message_valid_i(message_valid),
      .message_ready_o(message_ready),
      .message_i      (message),
      .message_cut_i  (1'b0),
      .message_left_o (message_left),
      .frame_valid_i,
      .frame_ready_o,
      .frame_i,
      .line_o,
      .line_i,
      .memory_valid_o (memory_valid),
      .memory_o       (memory),
      .memory_fault_o (memory_fault),
      .frame_o,
      .down_o,
      .fault_count_o,
      .refused_count_o(offers_refused)
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
      .down_i         (down_o),
      .unexpected_count_o
  );

  // What a host sends is in sequence.
  always_ff @(posedge clk_i) assert (offers_refused == 0);

endmodule
