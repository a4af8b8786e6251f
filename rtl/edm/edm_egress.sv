// What goes out on a port of the switch (paper 3.2.2): /G/, the requests that the scheduler has let
// go, and the chunks for this port.
//
//   emit      1   a grant of the scheduler to the offer of a /G/, or of a request's first block
//   forward   0   the queue of the ingress has had its 4 cycles
// Messages go one after the other, data first. A request waits until what its sender has sent to
// this port before it has left, and what comes after it waits for the request: reads and writes of
// a pair keep their order.
module edm_egress
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 4,
    parameter int unsigned EmitDepth = 6,
    parameter int unsigned PendingW = 9,
    localparam int unsigned PortW = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [NodeW-1:0] own_i,

    // Grants to this port as a source.
    input logic   grant_valid_i,
    /* verilator lint_off UNUSEDSIGNAL */  // `last` is for the scheduler
    input grant_t grant_i,
    /* verilator lint_on UNUSEDSIGNAL */

    // Requests for this port as a memory node, by requester: the oldest of each.
    input  logic      [Ports-1:0] request_valid_i,
    output logic      [Ports-1:0] request_take_o,
    input  buffered_t [Ports-1:0] request_i,

    // Chunks, by source.
    input  logic     [Ports-1:0]               forward_valid_i,
    output logic     [Ports-1:0]               forward_take_o,
    input  forward_t [Ports-1:0]               forward_i,
    input  logic     [Ports-1:0][PendingW-1:0] entered_i,  // messages for this port, so far
    input  logic     [Ports-1:0][PendingW-1:0] left_i,     // of these, those that are gone

    // To the port.
    output logic   control_valid_o,
    input  logic   control_ready_i,
    output block_t control_o,
    output logic   message_valid_o,
    input  logic   message_ready_i,
    output block_t message_o,
    output logic   message_cut_o,

    // Grants that found no room.
    output logic [31:0] lost_count_o
);

  // A request that may go when `ahead` messages of its sender have left.
  typedef struct packed {
    logic [IdW-1:0] id;
    logic [PendingW-1:0] ahead;
  } emit_t;

  // --- /G/ ---

  logic control_valid_q, control_valid_d;
  block_t control_q, control_d;
  logic sends_request, grant_lost;

  assign sends_request = grant_i.class_id == ClassResponse && grant_i.first;

  always_comb begin
    control_d.sync = SyncControl;
    control_d.payload = {23'd0, grant_i.bytes, grant_i.id, grant_i.target, 8'h66};
    control_valid_d = grant_valid_i && !sends_request;
    grant_lost = control_valid_q && !control_ready_i;
  end

  assign control_valid_o = control_valid_q;
  assign control_o = control_q;

  // --- Requests ---

  logic [Ports-1:0] emit_waits, emit_take, emit_broken, due;
  logic [2:0] index_q, index_d;
  logic [PortW-1:0] requester_q, requester_d, requester;
  /* verilator lint_off UNUSEDSIGNAL */  // its id was compared above
  buffered_t request;
  /* verilator lint_on UNUSEDSIGNAL */
  logic request_wants, request_ends;

  for (genvar r = 0; r < Ports; r++) begin : gen_emit
    logic comes, ready;
    emit_t emit, front;
    assign comes = grant_valid_i && sends_request && grant_i.target == NodeW'(r);
    assign emit = '{id: grant_i.id, ahead: entered_i[r]};

    edm_fifo #(
        .Width($bits(emit_t)),
        .Depth(EmitDepth)
    ) u_emit (
        .clk_i,
        .rst_ni,
        .valid_i(comes),
        .ready_o(ready),
        .word_i (emit),
        .valid_o(emit_waits[r]),
        .take_i (emit_take[r]),
        .word_o (front)
    );

    // The ingress lets no more requests in than there is room for, so each granted one is here.
    assign emit_broken[r] = (comes && !ready) ||
        (emit_waits[r] && !(request_valid_i[r] && request_i[r].id == front.id));
    assign due[r] = emit_waits[r] && front.ahead == left_i[r];
  end

  // --- One message at a time ---

  typedef enum logic [1:0] {
    LaneFree,
    LaneForward,
    LaneRequest
  } lane_e;

  lane_e lane_q, lane_d;
  logic [PortW-1:0] source_q, source_d;
  logic [Ports-1:0] asks;
  logic [PortW-1:0] source;
  logic forward_wants, forward_goes, request_goes;

  for (genvar s = 0; s < Ports; s++) begin : gen_ask
    assign asks[s] = forward_valid_i[s] && forward_i[s].target == own_i &&
        (!due[s] || (lane_q == LaneForward && source_q == PortW'(s)));
  end

  always_comb begin
    // The next source, and the next requester, after the last one.
    source = source_q;
    forward_wants = lane_q == LaneForward && asks[source_q];
    requester = requester_q;
    request_wants = lane_q == LaneRequest;
    if (lane_q == LaneFree) begin
      for (int unsigned step = Ports; step > 0; step--) begin
        if (asks[PortW'((32'(source_q) + step) % Ports)]) begin
          source = PortW'((32'(source_q) + step) % Ports);
          forward_wants = 1'b1;
        end
        if (due[PortW'((32'(requester_q) + step) % Ports)]) begin
          requester = PortW'((32'(requester_q) + step) % Ports);
          request_wants = 1'b1;
        end
      end
    end
    request = request_i[requester];
    request_ends = index_q + 3'd1 == request.blocks;
    request_goes = message_ready_i && request_wants && !forward_wants;
    forward_goes = message_ready_i && forward_wants;

    lane_d = lane_q;
    source_d = forward_goes ? source : source_q;
    requester_d = request_goes ? requester : requester_q;
    index_d = index_q;
    if (forward_goes) lane_d = forward_i[source].last ? LaneFree : LaneForward;
    if (request_goes) begin
      lane_d = request_ends ? LaneFree : LaneRequest;
      index_d = request_ends ? 3'd0 : index_q + 3'd1;
    end

    forward_take_o = '0;
    forward_take_o[source] = forward_goes;
    emit_take = '0;
    emit_take[requester] = request_goes && request_ends;
    request_take_o = emit_take;

    message_valid_o = forward_wants || request_wants;
    message_cut_o = forward_wants && forward_i[source].cut;
    message_o = forward_i[source].block;
    if (!forward_wants) begin
      message_o.payload = request.payload[index_q];
      message_o.sync = index_q == 0 || request_ends ? SyncControl : SyncData;
    end
  end

  logic [31:0] lost_q;
  assign lost_count_o = lost_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      control_valid_q <= 1'b0;
      control_q <= '0;
      index_q <= '0;
      lane_q <= LaneFree;
      source_q <= '0;
      requester_q <= '0;
      lost_q <= '0;
    end else begin
      control_valid_q <= control_valid_d;
      control_q <= control_d;
      index_q <= index_d;
      lane_q <= lane_d;
      source_q <= source_d;
      requester_q <= requester_d;
      if (lost_q != '1) lost_q <= lost_q + 32'(grant_lost);

      // A message is whole before the next begins.
      assert (!(request_goes && forward_goes));
      assert (emit_broken == '0);
      assert (lane_q != LaneRequest || due[requester_q]);
    end
  end

endmodule
