// The better of two candidates each: nodes of one level of the tree of `edm_pick`. Of candidates with
// equal keys it is the first one. Latency: none, combinational.
//
// Ranks and stamps are compared side by side: one after the other takes a tenth fewer LUTs, and makes
// the longest path half as long again. A loop and not an instance a node: Verilator would have a copy
// of each in each of many queues. Nodes know nothing of each other: N of them are N times one.
module edm_better #(
    parameter int unsigned Nodes = 1,
    parameter int unsigned IndexW = 1,  // of each candidate; 0 has one bit that is not used
    parameter int unsigned RankW = 32,
    parameter int unsigned StampW = 32,
    localparam int unsigned InW = IndexW == 0 ? 1 : IndexW
) (
    input logic [2*Nodes-1:0]             valid_i,
    input logic [2*Nodes-1:0][InW-1:0]    index_i,
    input logic [2*Nodes-1:0][RankW-1:0]  rank_i,
    input logic [2*Nodes-1:0][StampW-1:0] stamp_i,

    output logic [Nodes-1:0]             valid_o,
    output logic [Nodes-1:0][IndexW:0]   index_o,
    output logic [Nodes-1:0][RankW-1:0]  rank_o,
    output logic [Nodes-1:0][StampW-1:0] stamp_o
);
  /* verilator inline_module */

  always_comb begin : level
    /* verilator lint_off UNUSEDSIGNAL */  // its sign alone counts
    logic [StampW-1:0] behind;
    /* verilator lint_on UNUSEDSIGNAL */
    logic second;
    logic [IndexW:0] index;
    behind = '0;
    second = 1'b0;
    index = '0;
    for (int unsigned n = 0; n < Nodes; n++) begin
      behind = stamp_i[2*n+1] - stamp_i[2*n];
      second = valid_i[2*n+1] && (!valid_i[2*n] || rank_i[2*n+1] < rank_i[2*n] ||
          (rank_i[2*n+1] == rank_i[2*n] && behind[StampW-1]));
      index = second ? (IndexW + 1)'(index_i[2*n+1]) : (IndexW + 1)'(index_i[2*n]);
      index[IndexW] = second;
      valid_o[n] = valid_i[2*n+1] || valid_i[2*n];
      index_o[n] = index;
      rank_o[n] = second ? rank_i[2*n+1] : rank_i[2*n];
      stamp_o[n] = second ? stamp_i[2*n+1] : stamp_i[2*n];
    end
  end

endmodule
