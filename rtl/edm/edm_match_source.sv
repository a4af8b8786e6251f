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

  // At most one target is the best, and one the lowest: no choice, only an OR.
  always_comb begin
    accepted_o = 1'b0;
    target_o = '0;
    order_o = '0;
    for (int unsigned t = 0; t < Ports; t++) begin
      if (best_i[t] && source_i[t] == own_i) begin
        accepted_o = 1'b1;
        target_o |= PortW'(t);
      end
      if (lowest_i[t] && source_i[t] == own_i) order_o |= PortW'(t);
    end
  end

  assign grant_o = grants_i[accepted_i];

endmodule
