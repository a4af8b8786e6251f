// Returns the best of several candidates and its key: the valid one with the least key.
//
// A tree of comparators, so its depth grows with the logarithm of `Count`. The paper keeps a sorted
// list instead (3.1.2) and takes its first eligible entry; both choose the same candidate. The tree
// takes any number of insertions a cycle, the list one. Latency: none, combinational.
//
// The key is a rank, then a stamp. Stamps wrap: the older of two is the one behind by less than
// half their range. Ranks and stamps are compared side by side: one after the other takes a tenth
// fewer LUTs, and makes the longest path half as long again.
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

  always_comb begin : tree
    logic [Count-1:0] valid;
    logic [Count-1:0][RankW-1:0] rank;
    logic [Count-1:0][StampW-1:0] stamp;
    logic [Count-1:0][IndexW-1:0] index;
    logic [StampW-1:0] behind;
    valid = valid_i;
    rank = rank_i;
    stamp = stamp_i;
    behind = '0;
    for (int unsigned i = 0; i < Count; i++) index[i] = IndexW'(i);
    for (int unsigned step = 1; step < Count; step *= 2) begin
      for (int unsigned i = 0; i + step < Count; i += 2 * step) begin
        if (valid[i+step]) begin
          behind = stamp[i+step] - stamp[i];
          if (!valid[i] || rank[i+step] < rank[i] ||
              (rank[i+step] == rank[i] && behind[StampW-1])) begin
            valid[i] = 1'b1;
            rank[i] = rank[i+step];
            stamp[i] = stamp[i+step];
            index[i] = index[i+step];
          end
        end
      end
    end
    valid_o = valid[0];
    index_o = index[0];
    rank_o = rank[0];
    stamp_o = stamp[0];
  end

endmodule
