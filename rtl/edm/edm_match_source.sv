// One port as a source in an iteration: it accepts the best of its requests, and is granted what
// that target has. Latency: none, combinational.
module edm_match_source
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned RankW = DemandW,
    parameter int unsigned StampW = 32,
    localparam int unsigned PortW = $clog2(Ports)
) (
    input logic [PortW-1:0] own_i,

    // Accept. The requests of all targets; the target whose request is accepted, and the lowest
    // that asks.
    input  logic [Ports-1:0]             valid_i,
    input  logic [Ports-1:0][PortW-1:0]  source_i,
    input  logic [Ports-1:0][RankW-1:0]  rank_i,
    input  logic [Ports-1:0][StampW-1:0] stamp_i,
    output logic                         accepted_o,
    output logic [PortW-1:0]             target_o,
    output logic [PortW-1:0]             order_o,

    // Mark. What all targets are granted, and the one that was accepted.
    input  grant_t [Ports-1:0]           grants_i,
    input  logic   [PortW-1:0]           accepted_i,
    output grant_t                       grant_o
);
  /* verilator inline_module */

  logic [Ports-1:0] asks;
  always_comb begin
    order_o = '0;
    for (int t = int'(Ports) - 1; t >= 0; t--) begin
      asks[t] = valid_i[t] && source_i[t] == own_i;
      if (asks[t]) order_o = PortW'(t);
    end
  end

  edm_pick #(
      .Count (Ports),
      .RankW (RankW),
      .StampW(StampW)
  ) u_pick (
      .valid_i(asks),
      .rank_i,
      .stamp_i,
      .valid_o(accepted_o),
      .index_o(target_o)
  );

  assign grant_o = grants_i[accepted_i];

endmodule
