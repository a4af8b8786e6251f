// The scrambler of 10GBASE-R and 25GBASE-R, x^58 + x^39 + 1 (IEEE 802.3, 49.2.6), over the 64 bits
// of a block's payload, or with `Descramble` its inverse. The synchronisation bits stay as they
// are.
//
// It synchronises itself: a receiver that begins anywhere, or has seen an error, is right after 58
// bits.
//
// Latency: none. The register holds the last 58 bits on the line.
module edm_scrambler
  import edm_pkg::*;
#(
    parameter bit Descramble = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,
    input  block_t block_i,
    output block_t block_o
);

  localparam int unsigned StateW = 58;
  localparam int unsigned Tap = 39;

  logic [StateW-1:0] state_q;
  // The last bits on the line, then this block's; bit `StateW` of it is the block's first.
  logic [StateW+63:0] line;

  always_comb begin
    line = '0;
    line[StateW-1:0] = state_q;
    block_o.sync = block_i.sync;
    for (int unsigned i = 0; i < 64; i++) begin
      block_o.payload[i] = block_i.payload[i] ^ line[StateW+i-Tap] ^ line[i];
      line[StateW+i] = Descramble ? block_i.payload[i] : block_o.payload[i];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= '1;
    else state_q <= line[StateW+63:64];
  end

endmodule
