// The switch: its ports, the scheduler, and the ways between them (paper 3.2.2, Figure 3). Frames
// go to a layer-2 switch that is not EDM's: `frame_o` and `frame_i` of each port.
//
// Latency in cycles, from a port's `memory_o` to a port's offer:
//   /N/ to /G/          7   identify 1, insert 2, match 3, emit 1
//   RREQ or RMWREQ      7   the same, from its last block to its first
//   WREQ or RRES        4   forward
module edm_switch
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 4,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned Chunk = ChunkBytes,
    parameter bit Fcfs = 1'b0,
    parameter int unsigned LookAhead = 3,
    parameter int unsigned Timeout = 390625,
    parameter policy_t Policy = PolicyFair,
    parameter int unsigned FaultsAllowed = 0,
    parameter int unsigned ForwardDepth = 256,
    parameter int unsigned StallMax = 1023,
    localparam int unsigned PortW = $clog2(Ports),
    localparam int unsigned PendingW = $clog2(ForwardDepth + 2)
) (
    input logic clk_i,
    input logic rst_ni,

    input  block_t [Ports-1:0] line_i,
    output block_t [Ports-1:0] line_o,

    input  logic   [Ports-1:0] frame_valid_i,
    output logic   [Ports-1:0] frame_ready_o,
    input  block_t [Ports-1:0] frame_i,
    output block_t [Ports-1:0] frame_o,

    output logic [Ports-1:0]       down_o,
    output logic [Ports-1:0][31:0] fault_count_o,
    // Demands refused, and withdrawn; withdrawals of none; protocol broken; grants lost.
    output logic [31:0]            refused_count_o,
    output logic [31:0]            withdrawn_count_o,
    output logic [31:0]            idle_count_o,
    output logic [Ports-1:0][31:0] violation_count_o,
    output logic [Ports-1:0][31:0] lost_count_o
);

  logic [Ports-1:0] demand_valid;
  demand_t [Ports-1:0] demand;
  logic [Ports-1:0][3:0] uplink_blocks;
  refused_e [Ports-1:0] refused;
  logic [Ports-1:0] grant_valid;
  grant_t [Ports-1:0] grant;

  edm_scheduler #(
      .Ports    (Ports),
      .Active   (Active),
      .Chunk    (Chunk),
      .Fcfs     (Fcfs),
      .LookAhead(LookAhead)
  ) u_scheduler (
      .clk_i,
      .rst_ni,
      .demand_valid_i (demand_valid),
      .demand_i       (demand),
      .refused_o      (refused),
      .uplink_valid_i (demand_valid),
      .uplink_blocks_i(uplink_blocks),
      .down_i         (down_o),
      .grant_valid_o  (grant_valid),
      .grant_o        (grant),
      .refused_count_o,
      .withdrawn_count_o,
      .idle_count_o
  );

  logic [Ports-1:0] forward_valid, forward_take;
  forward_t [Ports-1:0] forward;
  logic [Ports-1:0][Ports-1:0] forward_takes;                   // by target, then source
  logic [Ports-1:0][Ports-1:0][PendingW-1:0] entered, left;        // by source
  logic [Ports-1:0][Ports-1:0][PendingW-1:0] entered_to, left_to;  // by target
  logic [Ports-1:0] request_valid;
  logic [Ports-1:0][PortW-1:0] request_memory;
  buffered_t [Ports-1:0] request;
  // Requests that wait for their grant, by memory node, then requester.
  logic [Ports-1:0][Ports-1:0] waits, waits_take, requests_left;
  buffered_t [Ports-1:0][Ports-1:0] waiting;

  always_comb begin
    for (int unsigned s = 0; s < Ports; s++) begin
      forward_take[s] = 1'b0;
      for (int unsigned t = 0; t < Ports; t++) begin
        forward_take[s] |= forward_takes[t][s];
        entered_to[t][s] = entered[s][t];
        left_to[t][s] = left[s][t];
        requests_left[s][t] = waits_take[t][s];
      end
    end
  end

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    logic control_valid, control_ready, message_valid, message_ready, message_cut;
    block_t control, message;
    logic memory_valid, memory_fault;
    block_t memory;
    /* verilator lint_off UNUSEDSIGNAL */  // an assertion reads it; the switch has no use for it
    logic [31:0] offers_refused;
    logic message_left;
    /* verilator lint_on UNUSEDSIGNAL */

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
        .message_cut_i  (message_cut),
        .message_left_o (message_left),
        .frame_valid_i  (frame_valid_i[p]),
        .frame_ready_o  (frame_ready_o[p]),
        .frame_i        (frame_i[p]),
        .line_o         (line_o[p]),
        .line_i         (line_i[p]),
        .memory_valid_o (memory_valid),
        .memory_o       (memory),
        .memory_fault_o (memory_fault),
        .frame_o        (frame_o[p]),
        .down_o         (down_o[p]),
        .fault_count_o  (fault_count_o[p]),
        .refused_count_o(offers_refused)
    );

    edm_ingress #(
        .Ports       (Ports),
        .Active      (Active),
        .ForwardDepth(ForwardDepth),
        .Timeout     (Timeout),
        .StallMax    (StallMax)
    ) u_ingress (
        .clk_i,
        .rst_ni,
        .own_i            (NodeW'(p)),
        .memory_valid_i   (memory_valid),
        .memory_i         (memory),
        .memory_fault_i   (memory_fault),
        .down_i           (down_o[p]),
        .demand_valid_o   (demand_valid[p]),
        .demand_o         (demand[p]),
        .uplink_blocks_o  (uplink_blocks[p]),
        .refused_i        (refused[p]),
        .request_valid_o  (request_valid[p]),
        .request_memory_o (request_memory[p]),
        .request_o        (request[p]),
        .request_left_i   (requests_left[p]),
        .grant_valid_i    (grant_valid[p]),
        .grant_i          (grant[p]),
        .forward_valid_o  (forward_valid[p]),
        .forward_take_i   (forward_take[p]),
        .forward_o        (forward[p]),
        .entered_o        (entered[p]),
        .left_o           (left[p]),
        .violation_count_o(violation_count_o[p])
    );

    for (genvar r = 0; r < Ports; r++) begin : gen_requester
      logic comes, ready;
      assign comes = request_valid[r] && request_memory[r] == PortW'(p);
      edm_fifo #(
          .Width($bits(buffered_t)),
          .Depth(2 * Active)
      ) u_requests (
          .clk_i,
          .rst_ni,
          .valid_i(comes),
          .ready_o(ready),
          .word_i (request[r]),
          .valid_o(waits[p][r]),
          .take_i (waits_take[p][r]),
          .word_o (waiting[p][r])
      );

      // The ingress counts them.
      always_ff @(posedge clk_i) assert (!comes || ready);
    end

    edm_egress #(
        .Ports    (Ports),
        .EmitDepth(2 * Active),
        .PendingW (PendingW)
    ) u_egress (
        .clk_i,
        .rst_ni,
        .own_i          (NodeW'(p)),
        .grant_valid_i  (grant_valid[p]),
        .grant_i        (grant[p]),
        .request_valid_i(waits[p]),
        .request_take_o (waits_take[p]),
        .request_i      (waiting[p]),
        .forward_valid_i(forward_valid),
        .forward_take_o (forward_takes[p]),
        .forward_i      (forward),
        .entered_i      (entered_to[p]),
        .left_i         (left_to[p]),
        .control_valid_o(control_valid),
        .control_ready_i(control_ready),
        .control_o      (control),
        .message_valid_o(message_valid),
        .message_ready_i(message_ready),
        .message_o      (message),
        .message_cut_o  (message_cut),
        .lost_count_o   (lost_count_o[p])
    );

    // What the switch sends is in sequence, whatever came in.
    always_ff @(posedge clk_i) assert (offers_refused == 0);
  end

endmodule
