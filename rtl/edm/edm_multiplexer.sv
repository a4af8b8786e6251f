// The transmitting side of a line: puts memory blocks and frame blocks on it, one block a cycle
// (paper 3.2.3). Memory blocks may be in the middle of a frame and replace the idles between
// frames.
//
// Three queues wait: /N/ and /G/, messages, frames. Whose a data block is follows from the blocks
// on the line alone (crates/edm/src/pcs/multiplex.rs, "Owner of a data block"), so the receiver
// knows too. A block out of sequence is not taken, and counted. An /MST/ with `message_cut_i` ends
// a message of which no more will come; the receiver sees a fault, and then that /MST/.
//
// Latency: 2 cycles from an offer to the line, one for the queue and one for the choice.
module edm_multiplexer
  import edm_pkg::*;
#(
    parameter policy_t Policy = PolicyFair,
    parameter int unsigned ControlDepth = 8,
    parameter int unsigned MessageDepth = 64,
    parameter int unsigned FrameDepth = 4
) (
    input logic clk_i,
    input logic rst_ni,

    // /N/ and /G/.
    input  logic   control_valid_i,
    output logic   control_ready_o,
    input  block_t control_i,

    // /M*/.
    input  logic   message_valid_i,
    output logic   message_ready_o,
    input  block_t message_i,
    input  logic   message_cut_i,
    output logic   message_left_o,   // the block that has waited longest goes to the line
    output logic   message_open_o,   // what has been offered so far is not whole

    // /S/ to /T/, and /O/. Idles are taken and forgotten. Not ready is back pressure to the MAC.
    input  logic   frame_valid_i,
    output logic   frame_ready_o,
    input  block_t frame_i,

    // The line.
    output block_t block_o,

    // Blocks that were offered out of sequence.
    output logic [31:0] refused_count_o
);

  if (Policy > PolicyWhole) begin : gen_policy
    $error("Policy is %0d: 0 to 2", Policy);
  end

  line_t line_q, line_d;
  logic [1:0] gap_q, gap_d;
  block_t block_q, block_d;
  sequence_t offered_q, offered_d;
  logic offered_frame_open_q, offered_frame_open_d;
  logic [31:0] refused_count_q, refused_count_d;

  // --- Offers: only blocks in sequence go to the queues. ---

  logic control_good, message_good, frame_good, frame_idle;

  always_comb begin
    kind_e kind;
    kind = KindBad;
    control_good = 1'b0;
    if (control_valid_i) begin
      kind = kind_of(control_i);
      control_good = kind == KindNotify || kind == KindGrant;
    end
  end

  always_comb begin
    kind_e kind;
    sequence_step_t step;
    kind = KindBad;
    step = '0;
    message_good = 1'b0;
    offered_d = offered_q;
    if (message_valid_i) begin
      kind = kind_of(message_i);
      step = sequence_after(offered_q, kind, message_i.payload[63:8]);
      message_good = step.keep && (!step.fault || (message_cut_i && kind == KindMst));
      if (message_good && message_ready_o) offered_d = step.next;
    end
  end

  always_comb begin
    kind_e kind;
    kind = KindBad;
    frame_good = 1'b0;
    frame_idle = 1'b0;
    offered_frame_open_d = offered_frame_open_q;
    if (frame_valid_i) begin
      kind = kind_of(frame_i);
      frame_idle = kind == KindIdle && !offered_frame_open_q;
      frame_good = offered_frame_open_q ?
          kind == KindData || kind == KindEnd : kind == KindStart || kind == KindOrdered;
      if (frame_good && frame_ready_o) begin
        offered_frame_open_d = kind == KindStart || kind == KindData;
      end
    end
  end

  always_comb begin
    refused_count_d = refused_count_q;
    if (control_valid_i && !control_good) refused_count_d += 1;
    if (message_valid_i && !message_good) refused_count_d += 1;
    if (frame_valid_i && !frame_good && !frame_idle) refused_count_d += 1;
  end

  logic control_waits, message_waits, frame_waits;
  logic take_control, take_message, take_frame;
  block_t control, message, frame;

  edm_fifo #(
      .Width($bits(block_t)),
      .Depth(ControlDepth)
  ) u_control (
      .clk_i,
      .rst_ni,
      .valid_i(control_good),
      .ready_o(control_ready_o),
      .word_i (control_i),
      .valid_o(control_waits),
      .take_i (take_control),
      .word_o (control)
  );

  edm_fifo #(
      .Width($bits(block_t)),
      .Depth(MessageDepth)
  ) u_messages (
      .clk_i,
      .rst_ni,
      .valid_i(message_good),
      .ready_o(message_ready_o),
      .word_i (message_i),
      .valid_o(message_waits),
      .take_i (take_message),
      .word_o (message)
  );

  edm_fifo #(
      .Width($bits(block_t)),
      .Depth(FrameDepth)
  ) u_frames (
      .clk_i,
      .rst_ni,
      .valid_i(frame_good),
      .ready_o(frame_ready_o),
      .word_i (frame_i),
      .valid_o(frame_waits),
      .take_i (take_frame),
      .word_o (frame)
  );

  // --- Choice: the block of this cycle. ---

  always_comb begin
    logic memory_ready, frame_ready, memory_first, data_is_memory, data_is_frame;
    kind_e block_kind;

    data_is_memory = line_owner(line_q, Policy) == LineMemory && line_q.message_open;
    data_is_frame = line_owner(line_q, Policy) == LineFrame && line_q.frame_open;
    memory_ready = control_waits ||
        (message_waits && (message.sync == SyncControl || data_is_memory));
    frame_ready = frame_waits && (line_q.frame_open || gap_q == 0) &&
        (frame.sync == SyncControl || data_is_frame);
    if (Policy == PolicyWhole) begin
      if (line_q.frame_open) memory_ready = 1'b0;
      if (line_q.message_open) frame_ready = 1'b0;
    end

    memory_first = Policy == PolicyStrict || line_turn(line_q.last) == LineMemory;
    take_frame = frame_ready && !(memory_ready && memory_first);
    take_control = memory_ready && !take_frame && control_waits;
    take_message = memory_ready && !take_frame && !control_waits;

    block_d = BlockIdle;
    block_kind = KindIdle;
    gap_d = gap_q == 0 ? 2'd0 : gap_q - 2'd1;
    if (take_frame || take_control || take_message) begin
      block_d = take_frame ? frame : take_control ? control : message;
      block_kind = kind_of(block_d);
      if (take_frame && block_kind == KindEnd) gap_d = gap_after(frame);
    end
    line_d = line_after(line_q, Policy, block_kind);
  end

  assign message_left_o = take_message;
  assign message_open_o = offered_q.state == SequenceOpen;
  assign block_o = block_q;
  assign refused_count_o = refused_count_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      line_q <= LineIdle;
      gap_q <= '0;
      block_q <= BlockIdle;
      offered_q <= '0;
      offered_frame_open_q <= 1'b0;
      refused_count_q <= '0;
    end else begin
      line_q <= line_d;
      gap_q <= gap_d;
      block_q <= block_d;
      offered_q <= offered_d;
      offered_frame_open_q <= offered_frame_open_d;
      refused_count_q <= refused_count_d;

      // One queue at most gives the block, and a data block has an owner.
      assert (32'(take_control) + 32'(take_message) + 32'(take_frame) <= 1);
      assert (block_d.sync != SyncData || line_q.message_open || line_q.frame_open);
    end
  end

endmodule
