// A queue between two clocks: words go in with one and come out with the other, in order.
//
// Each side has a pointer in Gray code, of which one bit changes a step, and sees the other's
// through two registers. Both clocks may be the same one, or any two.
//
// Latency, with clocks of one speed: 4 cycles from `valid_i` to `valid_o`: store, two registers,
// read. That is what the paper gives a grant queue and a forwarded block (3.2.1, 3.2.2).
module edm_crossing #(
    parameter int unsigned Width = 66,
    parameter int unsigned Depth = 64,
    localparam int unsigned IndexW = $clog2(Depth),
    localparam int unsigned CountW = IndexW + 1
) (
    input logic in_clk_i,
    input logic in_rst_ni,
    input  logic              valid_i,
    input  logic [Width-1:0]  word_i,
    output logic [CountW-1:0] room_o,   // at least so many more words may come

    input logic out_clk_i,
    input logic out_rst_ni,
    output logic             valid_o,
    input  logic             take_i,
    output logic [Width-1:0] word_o
);

  if (Depth < 4 || 2 ** IndexW != Depth) begin : gen_depth
    $error("Depth is %0d: a power of two, at least 4", Depth);
  end

  typedef logic [CountW-1:0] pointer_t;

  function automatic pointer_t gray_of(input pointer_t binary);
    return binary ^ (binary >> 1);
  endfunction

  function automatic pointer_t binary_of(input pointer_t gray);
    pointer_t value;
    value = gray;
    for (int unsigned step = 1; step < CountW; step *= 2) value = value ^ (value >> step);
    return value;
  endfunction

  logic [Width-1:0] words_q[Depth];

  // --- In ---

  pointer_t in_q, in_gray_q, out_seen_q, out_meta_q;
  pointer_t out_q, out_gray_q, in_seen_q, in_meta_q;
  logic push;

  assign room_o = pointer_t'(Depth) - (in_q - binary_of(out_seen_q));
  assign push = valid_i && room_o != 0;

  always_ff @(posedge in_clk_i or negedge in_rst_ni) begin
    if (!in_rst_ni) begin
      in_q <= '0;
      in_gray_q <= '0;
      out_meta_q <= '0;
      out_seen_q <= '0;
    end else begin
      in_q <= in_q + pointer_t'(push);
      in_gray_q <= gray_of(in_q + pointer_t'(push));
      out_meta_q <= out_gray_q;
      out_seen_q <= out_meta_q;
      // Who pushes has looked whether there is room.
      assert (!valid_i || room_o != 0);
    end
  end

  // The words need no reset: the pointers say which of them are there.
  always_ff @(posedge in_clk_i) begin
    if (push) words_q[in_q[IndexW-1:0]] <= word_i;
  end

  // --- Out: the word that is next is in a register. ---

  logic valid_q;
  logic [Width-1:0] word_q;
  logic load;

  assign load = out_q != binary_of(in_seen_q) && (!valid_q || take_i);
  assign valid_o = valid_q;
  assign word_o = word_q;

  always_ff @(posedge out_clk_i or negedge out_rst_ni) begin
    if (!out_rst_ni) begin
      out_q <= '0;
      out_gray_q <= '0;
      in_meta_q <= '0;
      in_seen_q <= '0;
      valid_q <= 1'b0;
    end else begin
      out_q <= out_q + pointer_t'(load);
      out_gray_q <= gray_of(out_q + pointer_t'(load));
      in_meta_q <= in_gray_q;
      in_seen_q <= in_meta_q;
      valid_q <= load || (valid_q && !take_i);
    end
  end

  always_ff @(posedge out_clk_i) begin
    if (load) word_q <= words_q[out_q[IndexW-1:0]];
  end

endmodule
