// Returns the best of several candidates and its key: the valid one with the least key.
//
// A tree of comparators, so its depth grows with the logarithm of `Count`. The paper keeps a sorted
// list instead (3.1.2) and takes its first eligible entry; both choose the same candidate. The tree
// takes any number of insertions a cycle, the list one. Latency: none, combinational.
//
// The key is a rank, then a stamp. Stamps wrap: the older of two is the one behind by less than
// half their range. The nodes of the tree are modules (`edm_better`), and there is no other gate here:
// `rtl/synth.py` counts a node of each level once.
module edm_pick #(
    parameter int unsigned Count = 8,
    parameter int unsigned RankW = 32,
    parameter int unsigned StampW = 32,
    localparam int unsigned IndexW = $clog2(Count)
) (
    input  logic [Count-1:0]             valid_i,
    input  logic [Count-1:0][RankW-1:0]  rank_i,
    input  logic [Count-1:0][StampW-1:0] stamp_i,

    output logic              valid_o,
    output logic [IndexW-1:0] index_o,
    output logic [RankW-1:0]  rank_o,
    output logic [StampW-1:0] stamp_o
);
  /* verilator no_inline_module */  // one C++ class for all of a size

  if (Count < 2) begin : gen_count
    $error("Count is %0d: at least 2", Count);
  end

  // Level 0 has the candidates; a place of level l has the best of 2^l of them.
  for (genvar l = 0; l <= IndexW; l++) begin : gen_level
    localparam int unsigned Places = (Count + (1 << l) - 1) >> l;
    localparam int unsigned Width = l == 0 ? 1 : l;
    logic [Places-1:0] valid;
    logic [Places-1:0][Width-1:0] index;
    logic [Places-1:0][RankW-1:0] rank;
    logic [Places-1:0][StampW-1:0] stamp;

    if (l == 0) begin : gen_candidates
      assign valid = valid_i;
      assign index = '0;
      assign rank = rank_i;
      assign stamp = stamp_i;
    end else begin : gen_nodes
      localparam int unsigned Before = (Count + (1 << (l - 1)) - 1) >> (l - 1);
      localparam int unsigned Nodes = Before / 2;
      edm_better #(
          .Nodes (Nodes),
          .IndexW(l - 1),
          .RankW (RankW),
          .StampW(StampW)
      ) u_better (
          .valid_i(gen_level[l-1].valid[2*Nodes-1:0]),
          .index_i(gen_level[l-1].index[2*Nodes-1:0]),
          .rank_i (gen_level[l-1].rank[2*Nodes-1:0]),
          .stamp_i(gen_level[l-1].stamp[2*Nodes-1:0]),
          .valid_o(valid[Nodes-1:0]),
          .index_o(index[Nodes-1:0]),
          .rank_o (rank[Nodes-1:0]),
          .stamp_o(stamp[Nodes-1:0])
      );
      // One is left over.
      if (Before % 2 == 1) begin : gen_last
        assign valid[Places-1] = gen_level[l-1].valid[Before-1];
        assign index[Places-1] = Width'(gen_level[l-1].index[Before-1]);
        assign rank[Places-1] = gen_level[l-1].rank[Before-1];
        assign stamp[Places-1] = gen_level[l-1].stamp[Before-1];
      end
    end
  end

  assign valid_o = gen_level[IndexW].valid[0];
  assign index_o = gen_level[IndexW].index[0];
  assign rank_o = gen_level[IndexW].rank[0];
  assign stamp_o = gen_level[IndexW].stamp[0];

endmodule
