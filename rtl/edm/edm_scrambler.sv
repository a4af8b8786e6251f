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

  // The first bits of a scrambled block depend on the register alone, the last ones on these too.
  always_comb begin
    line[StateW-1:0] = state_q;
    if (Descramble) begin
      line[StateW+63:StateW] = block_i.payload;
    end else begin
      line[StateW+:Tap] = block_i.payload[Tap-1:0] ^ line[StateW-Tap+:Tap] ^ line[0+:Tap];
      line[StateW+63:StateW+Tap] =
          block_i.payload[63:Tap] ^ line[StateW+63-Tap:StateW] ^ line[63:Tap];
    end
    block_o.sync = block_i.sync;
    block_o.payload = Descramble ?
        block_i.payload ^ line[StateW-Tap+:64] ^ line[63:0] : line[StateW+63:StateW];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= '1;
    else state_q <= line[StateW+63:64];
  end

endmodule
