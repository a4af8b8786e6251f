// What comes in on a port of the switch (paper 3.2.2): /N/ and requests become demands, granted
// chunks go to their target's port.
//
//   identify   1   `memory_i` to `demand_o`
//   forward    4   `memory_i` to `forward_o`, through the queue between the clocks of two ports
//
// A chunk passes if the scheduler has granted it: each grant opens a circuit for its bytes, those of
// one message a common one, and what is left unused goes after one `Timeout` to two. A request is
// kept aside until the scheduler has taken its demand; one that contradicts itself makes none, and
// one beyond 2 X for its memory node that have not left.
// Whoever breaks the protocol is counted, once a cycle; what it sent is dropped. A message that
// breaks off after its first blocks have left, or has none for `StallMax` cycles, is ended for its
// receiver by a NULL response, which says so. What comes in that cycle is lost, up to an /MT/.
module edm_ingress
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 4,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned ForwardDepth = 256,
    parameter int unsigned Timeout = 390625,
    parameter int unsigned StallMax = 1023,
    localparam int unsigned PortW = $clog2(Ports),
    localparam int unsigned PendingW = $clog2(ForwardDepth + 2)
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [NodeW-1:0] own_i,

    // From the port.
    input logic   memory_valid_i,
    input block_t memory_i,
    input logic   memory_fault_i,
    input logic   down_i,

    // To the scheduler; its answer comes two cycles later.
    output logic       demand_valid_o,
    output demand_t    demand_o,
    output logic [3:0] uplink_blocks_o,
    input  refused_e   refused_i,

    // A request whose demand is taken; which have left, by memory node.
    output logic             request_valid_o,
    output logic [PortW-1:0] request_memory_o,
    output buffered_t        request_o,
    input  logic [Ports-1:0] request_left_i,

    // What this port may send.
    input logic   grant_valid_i,
    /* verilator lint_off UNUSEDSIGNAL */  // the id says the class
    input grant_t grant_i,
    /* verilator lint_on UNUSEDSIGNAL */

    // To the ports of the targets; how many messages have come in for each, and have left.
    output logic                           forward_valid_o,
    input  logic                           forward_take_i,
    output forward_t                       forward_o,
    output logic [Ports-1:0][PendingW-1:0] entered_o,
    output logic [Ports-1:0][PendingW-1:0] left_o,

    output logic [31:0] violation_count_o
);

  localparam int unsigned Circuits = 2 * Active * Ports;
  localparam int unsigned CircuitW = $clog2(Circuits);
  localparam int unsigned BytesW = SizeW + 8;
  localparam int unsigned RoomW = $clog2(ForwardDepth) + 1;
  localparam int unsigned StallW = $clog2(StallMax + 1);
  localparam int unsigned LapseW = $clog2(Timeout + 1);
  localparam int unsigned PlacesW = $clog2(2 * Active + 1);

  typedef enum logic [1:0] {
    OpenNone,
    OpenRequest,
    OpenForward,
    OpenDropped
  } open_e;

  typedef struct packed {
    logic [NodeW-1:0] target;
    logic [IdW-1:0] id;
    logic [BytesW-1:0] bytes;
    logic old;                        // older than a lapse
  } circuit_t;

  kind_e kind;
  /* verilator lint_off UNUSEDSIGNAL */  // the demultiplexer has checked the rest
  header_t header, request_header;
  /* verilator lint_on UNUSEDSIGNAL */
  logic starts;

  always_comb begin
    kind = KindBad;
    if (memory_valid_i) kind = kind_of(memory_i);
  end
  assign header = memory_i.payload[63:8];
  assign starts = kind == KindMs || kind == KindMst;

  // --- Circuits ---

  logic [Circuits-1:0] circuit_valid_q, circuit_valid_d;
  circuit_t [Circuits-1:0] circuit_q, circuit_d;
  logic [LapseW-1:0] lapse_q, lapse_d;
  logic lapse, circuit_use, circuit_fits, circuit_lost;
  logic [CircuitW-1:0] circuit_index;

  always_comb begin
    circuit_fits = 1'b0;
    circuit_index = '0;
    if (starts) begin
      for (int unsigned c = 0; c < Circuits; c++) begin
        if (circuit_valid_q[c] && circuit_q[c].target == header.target &&
            circuit_q[c].id == header.id && circuit_q[c].bytes >= BytesW'(header.size)) begin
          circuit_fits = 1'b1;
          circuit_index = CircuitW'(c);
        end
      end
    end
    lapse = lapse_q == LapseW'(Timeout);
    lapse_d = lapse ? '0 : lapse_q + 1'b1;
  end

  always_comb begin : circuits
    logic [CircuitW-1:0] free, same;
    logic has_free, has_same;

    circuit_valid_d = circuit_valid_q;
    circuit_d = circuit_q;
    if (circuit_use) begin
      circuit_d[circuit_index].bytes = circuit_q[circuit_index].bytes - BytesW'(header.size);
      if (circuit_d[circuit_index].bytes == 0) circuit_valid_d[circuit_index] = 1'b0;
    end
    if (lapse) begin
      for (int unsigned c = 0; c < Circuits; c++) begin
        if (circuit_q[c].old) circuit_valid_d[c] = 1'b0;
        circuit_d[c].old = 1'b1;
      end
    end

    free = '0;
    same = '0;
    has_free = 1'b0;
    has_same = 1'b0;
    if (grant_valid_i) begin
      for (int unsigned c = 0; c < Circuits; c++) begin
        if (!circuit_valid_d[c]) begin
          has_free = 1'b1;
          free = CircuitW'(c);
        end else if (circuit_q[c].target == grant_i.target && circuit_q[c].id == grant_i.id) begin
          has_same = 1'b1;
          same = CircuitW'(c);
        end
      end
    end
    circuit_lost = grant_valid_i && !has_same && !has_free;
    if (grant_valid_i && has_same) begin
      circuit_d[same].bytes = circuit_d[same].bytes + BytesW'(grant_i.bytes);
      circuit_d[same].old = 1'b0;
    end else if (grant_valid_i && has_free) begin
      circuit_valid_d[free] = 1'b1;
      circuit_d[free] =
          '{target: grant_i.target, id: grant_i.id, bytes: BytesW'(grant_i.bytes), old: 1'b0};
    end
  end

  // --- Messages ---

  open_e open_q, open_d;
  logic [NodeW-1:0] target_q, target_d;
  logic [IdW-1:0] id_q, id_d;
  logic [2:0] index_q, index_d;
  buffered_t request_q, request_d;
  logic [StallW-1:0] stall_q, stall_d;
  logic stalled, cut, own_message, request_ok, forward_ok, request_ends, notify_ok, violation;
  logic [RoomW-1:0] room;
  logic [SizeW:0] message_bytes;
  logic push;
  forward_t pushed;

  assign request_header = request_d.payload[0][63:8];
  assign stalled = stall_q == StallW'(StallMax);
  assign own_message = header.source == own_i && header.target != own_i &&
      32'(header.target) < Ports;
  assign request_ok = own_message && !id_of_write(header.id) && header.kind != MessageWreq &&
      header.kind != MessageRres;
  // There is room for the message, and for a cut. A request with the id of a write is no data.
  assign message_bytes = header_bytes(header.kind, header.long_size, header.size);
  assign forward_ok = own_message && circuit_fits &&
      (header.kind == MessageWreq || header.kind == MessageRres) &&
      32'(room) > 32'(payload_blocks(message_bytes));

  always_comb begin : message
    open_d = open_q;
    target_d = target_q;
    id_d = id_q;
    index_d = index_q;
    request_d = request_q;
    violation = 1'b0;
    circuit_use = 1'b0;
    request_ends = 1'b0;
    push = 1'b0;
    pushed = '{target: target_q, last: 1'b0, cut: 1'b0, block: memory_i};

    // The message that leaves cannot be continued.
    cut = open_q == OpenForward && (memory_fault_i || down_i || stalled);
    if (cut) begin
      push = 1'b1;
      pushed.last = 1'b1;
      pushed.cut = 1'b1;
      pushed.block = null_answer(target_q, own_i, id_q);
      open_d = OpenDropped;
      violation = 1'b1;
    end else if (memory_valid_i && starts) begin
      index_d = 3'd1;
      request_d = '0;
      request_d.id = header.id;
      request_d.payload[0] = memory_i.payload;
      target_d = header.target;
      id_d = header.id;
      if (request_ok && kind == KindMs) begin
        open_d = OpenRequest;
      end else if (forward_ok) begin
        circuit_use = 1'b1;
        push = 1'b1;
        pushed.target = header.target;
        pushed.last = kind == KindMst;
        open_d = kind == KindMst ? OpenNone : OpenForward;
      end else begin
        open_d = OpenDropped;
        violation = 1'b1;
      end
    end else if (memory_valid_i && (kind == KindData || kind == KindMt)) begin
      if (open_q == OpenForward) begin
        push = 1'b1;
        pushed.last = kind == KindMt;
      end
      if (open_q == OpenRequest && index_q < 3'(RequestBlocksMax)) begin
        index_d = index_q + 3'd1;
        request_d.payload[index_q] = memory_i.payload;
        request_d.blocks = index_d;
        request_ends = kind == KindMt;
      end
      if (kind == KindMt) open_d = OpenNone;
    end
    // An /N/ of zero bytes withdraws a demand of any kind.
    notify_ok = memory_valid_i && kind == KindNotify && memory_i.payload[63:61] == 0 &&
        (id_of_write(memory_i.payload[24:17]) || memory_i.payload[56:25] == 0);
    if (memory_valid_i && (kind == KindGrant || (kind == KindNotify && !notify_ok))) begin
      violation = 1'b1;
    end
    if (down_i && open_q != OpenForward) open_d = OpenNone;

    stall_d = open_q == OpenForward && !push && !stalled ? stall_q + 1'b1 : '0;
  end

  // --- Demands ---

  logic demand_valid_q, demand_valid_d;
  demand_t demand_q, demand_d;
  logic [3:0] uplink_q, uplink_d;
  logic [7:0] opcode;
  logic request_good;
  // Requests for each memory node that have not left, or wait for the answer to their demand.
  logic [Ports-1:0][PlacesW-1:0] places_q, places_d;

  assign opcode = request_d.payload[1][63:56];
  // An opcode with its arguments; a long size that is long. What is after the last byte is zero: of
  // an /MT/, seven bytes of an RMWREQ and six of a long RREQ.
  always_comb begin
    request_good = places_q[PortW'(target_q)] != PlacesW'(2 * Active);
    if (request_header.kind == MessageRmw) begin
      request_good &= opcode_ok(opcode, request_header.size) && memory_i.payload[63:8] == 0;
    end else if (request_header.long_size) begin
      request_good &= {request_d.payload[1][7:0], request_header.first} != 0 &&
          memory_i.payload[63:16] == 0;
    end
  end

  always_comb begin
    demand_valid_d = notify_ok || (request_ends && request_good);
    demand_d = '{
        class_id: ClassWrite,
        peer: memory_i.payload[16:8],
        id: memory_i.payload[24:17],
        bytes: memory_i.payload[56:25],
        extra: memory_i.payload[60:57]
    };
    uplink_d = 4'd1;
    if (request_ends) begin
      demand_d.class_id = ClassResponse;
      demand_d.peer = target_q;
      demand_d.id = id_q;
      demand_d.bytes = DemandW'(request_header.size);
      if (request_header.kind == MessageRmw) demand_d.bytes = answer_bytes(opcode);
      if (request_header.long_size) begin
        demand_d.bytes = {request_d.payload[1][7:0], request_header.first, request_header.size};
      end
      demand_d.extra = BatchW'(request_d.blocks);
      uplink_d = 4'(request_d.blocks);
    end
  end

  // The two cycles until the scheduler has answered.
  logic [2:0] waits_q;
  buffered_t [2:0] waiting_q;
  logic [2:0][PortW-1:0] waiting_memory_q;

  always_comb begin
    for (int unsigned t = 0; t < Ports; t++) begin
      places_d[t] = places_q[t] - PlacesW'(request_left_i[t]);
      if (request_ends && request_good && target_q == NodeW'(t)) places_d[t] += 1'b1;
      if (waits_q[2] && refused_i != RefusedNot && waiting_memory_q[2] == PortW'(t)) begin
        places_d[t] -= 1'b1;
      end
    end
  end

  assign demand_valid_o = demand_valid_q;
  assign demand_o = demand_q;
  assign uplink_blocks_o = uplink_q;
  assign request_valid_o = waits_q[2] && refused_i == RefusedNot;
  assign request_memory_o = waiting_memory_q[2];
  assign request_o = waiting_q[2];

  // --- To the clocks of the other ports ---

  edm_crossing #(
      .Width($bits(forward_t)),
      .Depth(ForwardDepth)
  ) u_forward (
      .in_clk_i  (clk_i),
      .in_rst_ni (rst_ni),
      .valid_i   (push),
      .word_i    (pushed),
      .room_o    (room),
      .out_clk_i (clk_i),
      .out_rst_ni(rst_ni),
      .valid_o   (forward_valid_o),
      .take_i    (forward_take_i),
      .word_o    (forward_o)
  );

  logic [Ports-1:0][PendingW-1:0] entered_q, entered_d, left_q, left_d;
  assign entered_o = entered_q;
  assign left_o = left_q;
  always_comb begin
    for (int unsigned t = 0; t < Ports; t++) begin
      entered_d[t] = entered_q[t] + PendingW'(circuit_use && header.target == NodeW'(t));
      left_d[t] = left_q[t] + PendingW'(forward_valid_o && forward_take_i && forward_o.last &&
                                        forward_o.target == NodeW'(t));
    end
  end

  logic [31:0] violation_count_q;
  assign violation_count_o = violation_count_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      circuit_valid_q <= '0;
      circuit_q <= '0;
      lapse_q <= '0;
      open_q <= OpenNone;
      target_q <= '0;
      id_q <= '0;
      index_q <= '0;
      request_q <= '0;
      stall_q <= '0;
      demand_valid_q <= 1'b0;
      demand_q <= '0;
      uplink_q <= '0;
      places_q <= '0;
      waits_q <= '0;
      waiting_q <= '0;
      waiting_memory_q <= '0;
      entered_q <= '0;
      left_q <= '0;
      violation_count_q <= '0;
    end else begin
      circuit_valid_q <= circuit_valid_d;
      circuit_q <= circuit_d;
      lapse_q <= lapse_d;
      open_q <= open_d;
      target_q <= target_d;
      id_q <= id_d;
      index_q <= index_d;
      request_q <= request_d;
      stall_q <= stall_d;
      demand_valid_q <= demand_valid_d;
      demand_q <= demand_d;
      uplink_q <= uplink_d;
      places_q <= places_d;
      waits_q <= {waits_q[1:0], request_ends && request_good};
      if (request_ends || waits_q != 0) begin
        waiting_q <= {waiting_q[1:0], request_d};
        waiting_memory_q <= {waiting_memory_q[1:0], PortW'(target_q)};
      end
      entered_q <= entered_d;
      left_q <= left_d;
      if (violation_count_q[31:2] != '1) begin
        violation_count_q <= violation_count_q + 32'(violation) + 32'(circuit_lost) +
            32'(request_ends && !request_good);
      end

      // A circuit never lets more through than was granted.
      assert (!circuit_use || circuit_q[circuit_index].bytes >= BytesW'(header.size));
    end
  end

endmodule
