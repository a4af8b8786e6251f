// One port as a source in an iteration: it accepts the best of its requests, and is granted what
// that target has. Latency: none, combinational.
module edm_match_source
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 8,
    localparam int unsigned PortW = $clog2(Ports)
) (
    input logic [PortW-1:0] own_i,

    // Accept. The source that each target asks; targets whose request is the best of its source, and
    // those that are its lowest. The target whose request is accepted, and the lowest that asks.
    input  logic [Ports-1:0][PortW-1:0] source_i,
    input  logic [Ports-1:0]            best_i,
    input  logic [Ports-1:0]            lowest_i,
    output logic                        accepted_o,
    output logic [PortW-1:0]            target_o,
    output logic [PortW-1:0]            order_o,

    // Mark. What all targets are granted, and the one that was accepted.
    input  grant_t [Ports-1:0]           grants_i,
    input  logic   [PortW-1:0]           accepted_i,
    output grant_t                       grant_o
);
  /* verilator inline_module */

  // At most one target is the best, and one the lowest: each bit of its number is an OR.
  logic [Ports-1:0] best, lowest;
  logic [PortW-1:0][Ports-1:0] has_bit;
  always_comb begin
    for (int unsigned t = 0; t < Ports; t++) begin
      best[t] = best_i[t] && source_i[t] == own_i;
      lowest[t] = lowest_i[t] && source_i[t] == own_i;
      for (int unsigned b = 0; b < PortW; b++) has_bit[b][t] = t[b];
    end
    accepted_o = |best;
    for (int unsigned b = 0; b < PortW; b++) begin
      target_o[b] = |(best & has_bit[b]);
      order_o[b] = |(lowest & has_bit[b]);
    end
  end

  assign grant_o = grants_i[accepted_i];

endmodule
