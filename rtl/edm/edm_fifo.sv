// A queue of words: in order, one in and one out a cycle.
//
// A word that comes in is at the front in the next cycle if the queue was empty. `ready_o` depends
// on registers alone: a full queue takes nothing in the cycle in which one leaves. Latency: 1
// cycle.
module edm_fifo #(
    parameter int unsigned Width = 66,
    parameter int unsigned Depth = 4,
    localparam int unsigned IndexW = Depth > 1 ? $clog2(Depth) : 1,
    localparam int unsigned CountW = $clog2(Depth + 1)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic             valid_i,
    output logic             ready_o,
    input  logic [Width-1:0] word_i,

    output logic             valid_o,
    input  logic             take_i,
    output logic [Width-1:0] word_o
);

  if (Depth < 1) begin : gen_depth
    $error("Depth is %0d: at least 1", Depth);
  end

  logic [Width-1:0] words_q[Depth];
  logic [IndexW-1:0] front_q, back_q;
  logic [CountW-1:0] count_q;
  logic push, pop;

  function automatic logic [IndexW-1:0] after(input logic [IndexW-1:0] index);
    return 32'(index) == Depth - 1 ? '0 : index + 1'b1;
  endfunction

  assign ready_o = count_q != CountW'(Depth);
  assign valid_o = count_q != 0;
  assign word_o = words_q[front_q];

  assign push = valid_i && ready_o;
  assign pop = take_i && valid_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      front_q <= '0;
      back_q <= '0;
      count_q <= '0;
    end else begin
      if (pop) front_q <= after(front_q);
      if (push) back_q <= after(back_q);
      if (push != pop) count_q <= push ? count_q + 1'b1 : count_q - 1'b1;
      // What waits is what is between the two indices.
      assert ((32'(front_q) + 32'(count_q)) % Depth == 32'(back_q));
    end
  end

  // The words need no reset: `count_q` says which of them are.
  always_ff @(posedge clk_i) begin
    if (push) words_q[back_q] <= word_i;
  end

endmodule
