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

  // The last bits on the line, the oldest first.
  logic [StateW-1:0] state_q;
  logic [63:0] plain, scrambled;
  logic [Tap-1:0] first;

  assign plain = Descramble ? scrambled ^ {scrambled[63-Tap:0], state_q[StateW-1:StateW-Tap]} ^
      {scrambled[63-StateW:0], state_q} : block_i.payload;

  // The first bits of a scrambled block depend on the register alone, the last ones on these too.
  assign first = plain[Tap-1:0] ^ state_q[StateW-1:StateW-Tap] ^ state_q[Tap-1:0];
  assign scrambled = Descramble ? block_i.payload : {
      plain[63:Tap] ^ first[63-Tap:0] ^ {first[63-StateW:0], state_q[StateW-1:Tap]}, first};

  assign block_o.sync = block_i.sync;
  assign block_o.payload = Descramble ? plain : scrambled;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= '1;
    else state_q <= scrambled[63:64-StateW];
  end

endmodule
