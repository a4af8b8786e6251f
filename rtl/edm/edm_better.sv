// The better of two candidates: a node of the tree of `edm_pick`. Of candidates with equal keys it is
// the first one. Latency: none, combinational.
//
// Ranks and stamps are compared side by side: one after the other takes a tenth fewer LUTs, and makes
// the longest path half as long again.
module edm_better #(
    parameter int unsigned IndexW = 1,  // of each candidate; 0 has one bit that is not used
    parameter int unsigned RankW = 32,
    parameter int unsigned StampW = 32,
    localparam int unsigned InW = IndexW == 0 ? 1 : IndexW
) (
    input logic [1:0]             valid_i,
    /* verilator lint_off UNUSEDSIGNAL */  // a leaf has no index
    input logic [1:0][InW-1:0]    index_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input logic [1:0][RankW-1:0]  rank_i,
    input logic [1:0][StampW-1:0] stamp_i,

    output logic              valid_o,
    output logic [IndexW:0]   index_o,
    output logic [RankW-1:0]  rank_o,
    output logic [StampW-1:0] stamp_o
);
  /* verilator inline_module */

  /* verilator lint_off UNUSEDSIGNAL */  // its sign alone counts
  logic [StampW-1:0] behind;
  /* verilator lint_on UNUSEDSIGNAL */
  logic second;

  assign behind = stamp_i[1] - stamp_i[0];
  assign second = valid_i[1] && (!valid_i[0] || rank_i[1] < rank_i[0] ||
      (rank_i[1] == rank_i[0] && behind[StampW-1]));
  assign valid_o = |valid_i;
  assign rank_o = rank_i[second];
  assign stamp_o = stamp_i[second];
  if (IndexW == 0) begin : gen_leaf
    assign index_o = second;
  end else begin : gen_node
    assign index_o = {second, index_i[second]};
  end

endmodule
