// One port as a target in an iteration: whether its request is the best of its source, what it is
// granted then, and what the mark tells the queues. Latency: none, combinational.
//
// A source accepts the request with the least key. So each target compares its own with all others,
// side by side: no tree of comparators for each source.
module edm_match_target
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned Chunk = ChunkBytes,
    parameter int unsigned KeyW = 64,
    localparam int unsigned PortW = $clog2(Ports)
) (
    input logic [PortW-1:0] own_i,

    // Accept. Whether each target asks, which source, and the key of its request: rank, age, port.
    // Of equal keys that of the lower target is the least. Whether ours is the best of its source,
    // and whether no lower target asks that source.
    input  logic [Ports-1:0]              asks_i,
    input  logic [Ports-1:0][PortW-1:0]   asked_i,
    input  logic [Ports-1:0][KeyW-1:0]    key_i,
    output logic                          best_o,
    output logic                          lowest_o,

    // What our request is granted.
    input  class_e                        class_i,
    input  logic [DemandW-1:0]            bytes_i,
    input  logic [BatchW-1:0]             extra_i,
    input  logic                          started_i,
    output logic [SizeW-1:0]              bytes_o,
    output logic                          first_o,
    output logic                          last_o,
    output logic [BlocksW-1:0]            blocks_o,
    output logic [2:0]                    grant_blocks_o,

    // Mark. The grant: a port that fails during the iteration takes its demands with it. Reads that
    // are sent on, by memory node: with the first grant of the response.
    input  logic                          mark_i,
    input  class_e                        mark_class_i,
    input  logic [PortW-1:0]              mark_source_i,
    input  logic                          mark_first_i,
    input  logic [Ports-1:0]              disabled_i,
    output logic                          forgotten_o,
    output logic [Ports-1:0]              read_started_o
);
  /* verilator inline_module */

  // Those that ask the same source, with a better request, and of a lower number.
  logic [Ports-1:0] better, lower;
  always_comb begin
    better = '0;
    lower = '0;
    for (int unsigned t = 0; t < Ports; t++) begin
      if (asks_i[t] && asked_i[t] == asked_i[own_i]) begin
        better[t] = {key_i[t], PortW'(t)} < {key_i[own_i], own_i};
        lower[t] = PortW'(t) < own_i;
      end
    end
  end
  assign best_o = asks_i[own_i] && better == '0;
  assign lowest_o = asks_i[own_i] && lower == '0;

  always_comb begin
    first_o = !started_i;
    last_o = bytes_i <= DemandW'(Chunk);
    bytes_o = last_o ? SizeW'(bytes_i) : SizeW'(Chunk);
    blocks_o = chunk_blocks(class_i, bytes_o, class_i == ClassWrite ? extra_i : '0);
    grant_blocks_o = first_o && class_i == ClassResponse ? 3'(extra_i) : 3'd1;
  end

  always_comb begin
    forgotten_o = disabled_i[own_i] || disabled_i[mark_source_i];
    for (int unsigned m = 0; m < Ports; m++) begin
      read_started_o[m] = mark_i && !forgotten_o && mark_first_i &&
          mark_class_i == ClassResponse && mark_source_i == PortW'(m);
    end
  end

endmodule
