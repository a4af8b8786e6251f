// Properties of the scrambler, for any block and any state of its register:
//
//   serial    it does what the shift register of IEEE 802.3, 49.2.6, does bit by bit
//   inverse   the descrambler at the other end of a line gives what went in
module formal_scrambler
  import edm_pkg::*;
#(
    parameter bit Induct = 1'b0
) (
    input logic clk_i,
    input block_t block_i
);

  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  block_t line, back;
  edm_scrambler dut (
      .clk_i,
      .rst_ni,
      .block_i,
      .block_o(line)
  );
  edm_scrambler #(
      .Descramble(1'b1)
  ) u_back (
      .clk_i,
      .rst_ni,
      .block_i(line),
      .block_o(back)
  );

  // The last 58 bits on the line; the latest is bit 0.
  logic [57:0] shift_q, shift_d;
  block_t serial;
  always_comb begin
    shift_d = shift_q;
    serial.sync = block_i.sync;
    for (int unsigned i = 0; i < 64; i++) begin
      serial.payload[i] = block_i.payload[i] ^ shift_d[38] ^ shift_d[57];
      shift_d = {shift_d[56:0], serial.payload[i]};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      shift_q <= '1;
    end else begin
      shift_q <= shift_d;
      assert (line == serial);
      assert (back == block_i);
    end
  end

  if (Induct) begin : gen_invariants
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        for (int unsigned i = 0; i < 58; i++) assert (dut.state_q[i] == shift_q[57-i]);
        assert (dut.state_q == u_back.state_q);
      end
    end
  end

endmodule
