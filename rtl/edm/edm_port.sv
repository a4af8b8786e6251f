// One port of a host or of the switch: what is between EDM's logic and the line, both ways.
//
//   out   multiplexer, scrambler             2 cycles from an offer to `line_o`
//   in    descrambler, demultiplexer         2 cycles from `line_i` to `memory_o`
// These are the crossings of the PCS that Table 1 counts with two cycles each.
//
// A link that shows `FaultsAllowed` faults and one more is disabled until a reset (paper 3.3): the
// memory blocks on it are not to be trusted. It says so on `down_o`, and takes and gives no memory
// block any more. Frames have a check sequence of their own and pass. A message that is ended with a
// NULL response, because its sender has failed, is no fault of this link.
//
// Such a link, and one whose network is abandoned, ends the message that it has been offered a part
// of: frames would wait for the rest. It does so with a NULL response from a node to itself, which
// is for nobody.
module edm_port
  import edm_pkg::*;
#(
    parameter policy_t Policy = PolicyFair,
    parameter int unsigned FaultsAllowed = 0
) (
    input logic clk_i,
    input logic rst_ni,

    // The network is abandoned: this port sends no memory block any more.
    input logic abandoned_i,

    // To the line.
    input  logic   control_valid_i,
    output logic   control_ready_o,
    input  block_t control_i,
    input  logic   message_valid_i,
    output logic   message_ready_o,
    input  block_t message_i,
    input  logic   message_cut_i,
    output logic   message_left_o,
    input  logic   frame_valid_i,
    output logic   frame_ready_o,
    input  block_t frame_i,
    output block_t line_o,

    // From the line.
    input  block_t line_i,
    output logic   memory_valid_o,
    output block_t memory_o,
    output logic   memory_fault_o,  // a message is broken off, or begins wrongly
    output block_t frame_o,

    output logic        down_o,
    output logic [31:0] fault_count_o,
    output logic [31:0] refused_count_o
);

  block_t out, in, in_q;
  logic [31:0] bad_q;
  logic down_q, silent, ends, bad, cut, memory_valid, control_ready, message_ready, message_open;
  fault_e fault;

  // A silent link swallows what is offered, so that nobody waits for it.
  assign silent = down_q || abandoned_i;
  assign control_ready_o = control_ready || silent;
  assign message_ready_o = message_ready || silent;
  assign ends = silent && message_open;

  edm_multiplexer #(
      .Policy(Policy)
  ) u_multiplexer (
      .clk_i,
      .rst_ni,
      .control_valid_i(control_valid_i && !silent),
      .control_ready_o(control_ready),
      .control_i,
      .message_valid_i(ends || (message_valid_i && !silent)),
      .message_ready_o(message_ready),
      .message_i      (ends ? null_answer('1, '1, '0) : message_i),
      .message_cut_i  (ends || message_cut_i),
      .message_left_o,
      .message_open_o (message_open),
      .frame_valid_i,
      .frame_ready_o,
      .frame_i,
      .block_o        (out),
      .refused_count_o
  );

  edm_scrambler u_scrambler (
      .clk_i,
      .rst_ni,
      .block_i(out),
      .block_o(line_o)
  );

  edm_scrambler #(
      .Descramble(1'b1)
  ) u_descrambler (
      .clk_i,
      .rst_ni,
      .block_i(line_i),
      .block_o(in)
  );

  edm_demultiplexer #(
      .Policy(Policy)
  ) u_demultiplexer (
      .clk_i,
      .rst_ni,
      .block_i       (in_q),
      .memory_valid_o(memory_valid),
      .memory_o,
      .frame_o,
      .fault_o       (fault),
      .fault_count_o
  );

  // /MST/ of an RRES without data.
  /* verilator lint_off UNUSEDSIGNAL */  // the rest may be anything
  header_t header;
  /* verilator lint_on UNUSEDSIGNAL */
  assign header = memory_o.payload[63:8];
  always_comb begin
    cut = 1'b0;
    if (fault == FaultMemory && memory_valid) begin
      cut = kind_of(memory_o) == KindMst && header.kind == MessageRres && header.size == 0;
    end
  end
  assign bad = fault != FaultNone && !cut;

  assign memory_valid_o = memory_valid && !down_q;
  assign memory_fault_o = fault == FaultMemory;
  assign down_o = down_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_q <= BlockIdle;
      bad_q <= '0;
      down_q <= 1'b0;
    end else begin
      in_q <= in;
      if (bad && bad_q != '1) bad_q <= bad_q + 1'b1;
      if (bad_q + 32'(bad) > FaultsAllowed) down_q <= 1'b1;
    end
  end

endmodule
