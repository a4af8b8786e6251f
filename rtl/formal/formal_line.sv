// Properties of a line: multiplexer, wire, demultiplexer.
//
//   whole     the frame blocks that come out are those that went in, in order
//   straight  a frame comes out in consecutive cycles, whatever was between its blocks on the line
//   memory    the memory blocks that come out are those that went in, in order
//   faults    a line without noise has no fault
//
// Offers are anything; the multiplexer keeps what is out of sequence. One block of each kind is
// watched: the one with the number `watch_i`, which is any. Numbers wrap; fewer blocks are under way
// than there are numbers. The induction covers frames and messages in any number and order.
module formal_line
  import edm_pkg::*;
#(
    parameter policy_t Policy = PolicyFair,
    parameter int unsigned FrameMax = 10,
    parameter bit Calm = 1'b0,    // to find a counterexample sooner: no /N/ and /G/
    parameter bit Induct = 1'b0,  // with the invariants of the induction
    localparam int unsigned NumberW = 5
) (
    input logic clk_i,
    input logic   control_valid_i,
    input block_t control_i,
    input logic   message_valid_i,
    input block_t message_i,
    input logic   frame_valid_i,
    input block_t frame_i,
    input logic [NumberW-1:0] watch_i
);

  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic control_ready, message_ready, frame_ready, memory_valid;
  block_t line, memory, frame;
  fault_e fault;

  edm_multiplexer #(
      .Policy      (Policy),
      .ControlDepth(1),
      .MessageDepth(2),
      .FrameDepth  (2)
  ) dut (
      .clk_i,
      .rst_ni,
      .control_valid_i,
      .control_ready_o(control_ready),
      .control_i,
      .message_valid_i,
      .message_ready_o(message_ready),
      .message_i,
      .message_cut_i  (1'b0),
      .message_left_o (),
      .message_open_o (),
      .frame_valid_i,
      .frame_ready_o  (frame_ready),
      .frame_i,
      .block_o        (line),
      .refused_count_o()
  );

  edm_demultiplexer #(
      .Policy  (Policy),
      .FrameMax(FrameMax)
  ) u_demultiplexer (
      .clk_i,
      .rst_ni,
      .block_i       (line),
      .memory_valid_o(memory_valid),
      .memory_o      (memory),
      .frame_o       (frame),
      .fault_o       (fault),
      .fault_count_o ()
  );

  // --- In and out, counted: frames, and messages; /N/ and /G/ have a queue of their own. ---

  logic frame_in, frame_out, message_in, message_out;
  logic [NumberW-1:0] frames_in_q, frames_out_q, messages_in_q, messages_out_q, watch_q;
  block_t frame_q, message_q;
  logic [3:0] length_q;
  logic out_open_q;
  kind_e in_kind, out_kind, memory_kind;

  assign frame_in = dut.frame_good && frame_ready;
  assign message_in = dut.message_good && message_ready;
  assign in_kind = kind_of(frame_i);
  assign out_kind = kind_of(frame);
  assign memory_kind = kind_of(memory);
  assign frame_out = out_kind != KindIdle;
  assign message_out = memory_valid && memory_kind != KindNotify && memory_kind != KindGrant;

  always_ff @(posedge clk_i) begin
    watch_q <= watch_i;
    if (!rst_ni) begin
      frames_in_q <= '0;
      frames_out_q <= '0;
      messages_in_q <= '0;
      messages_out_q <= '0;
      length_q <= '0;
      out_open_q <= 1'b0;
    end else begin
      assume (watch_i == watch_q);
      if (Calm) assume (!control_valid_i && watch_i < 5'd3);
      // A frame is no longer than the receiver allows.
      assume (!frame_in || in_kind == KindEnd || in_kind == KindOrdered ||
              32'(length_q) + 1 < FrameMax);
      if (frame_in) begin
        frames_in_q <= frames_in_q + 1'b1;
        length_q <= in_kind == KindEnd || in_kind == KindOrdered ? '0 : length_q + 1'b1;
        if (frames_in_q == watch_i) frame_q <= frame_i;
      end
      if (frame_out) begin
        frames_out_q <= frames_out_q + 1'b1;
        out_open_q <= out_kind == KindStart || out_kind == KindData;
      end
      if (message_in) begin
        messages_in_q <= messages_in_q + 1'b1;
        if (messages_in_q == watch_i) message_q <= message_i;
      end
      if (message_out) messages_out_q <= messages_out_q + 1'b1;

      // whole
      assert (!frame_out || frames_out_q != frames_in_q);
      assert (!frame_out || frames_out_q != watch_i || frame == frame_q);
      // straight
      assert (!out_open_q || out_kind == KindData || out_kind == KindEnd);
      assert (out_open_q || out_kind == KindIdle || out_kind == KindStart || out_kind == KindOrdered);
      // memory
      assert (!message_out || messages_out_q != messages_in_q);
      assert (!message_out || messages_out_q != watch_i || memory == message_q);
      // faults
      assert (fault == FaultNone);
    end
  end

  // --- Invariants, for the induction: where each block is, and that it is the right one there. ---

  if (Induct) begin : gen_invariants

  localparam int unsigned Depth = FrameMax + GapBlocksMax;
  localparam logic [1:0] HoldOpen = 2'd1, HoldDropping = 2'd2;
  typedef logic [NumberW-1:0] number_t;

  // What is before the receiver: the block on the line, then the queues.
  kind_e line_kind;
  line_class_e owner;
  logic to_memory, to_frame;
  line_t after;
  logic [1:0] frames_wait, messages_wait;
  block_t [1:0] frame_waiting, message_waiting;
  always_comb begin
    line_kind = kind_of(line);
    owner = line_owner(u_demultiplexer.line_q, Policy);
    after = line_after(u_demultiplexer.line_q, Policy, line_kind);
    to_memory = line_kind == KindMs || line_kind == KindMt || line_kind == KindMst ||
        (line_kind == KindData && u_demultiplexer.line_q.message_open && owner == LineMemory);
    to_frame = line_kind == KindStart || line_kind == KindEnd || line_kind == KindOrdered ||
        (line_kind == KindData && u_demultiplexer.line_q.frame_open && owner == LineFrame);
    frames_wait = dut.u_frames.count_q;
    messages_wait = dut.u_messages.count_q;
    for (int unsigned i = 0; i < 2; i++) begin
      frame_waiting[i] = dut.u_frames.words_q[dut.u_frames.front_q+1'(i)];
      message_waiting[i] = dut.u_messages.words_q[dut.u_messages.front_q+1'(i)];
    end
  end

  // --- Messages: the receiver's place in a message, moved on by what is under way, is the sender's. ---

  sequence_t [3:0] place;
  logic [2:0] message_moves, message_fits;
  number_t message_number;
  always_comb begin
    sequence_step_t step;
    block_t [2:0] blocks;
    blocks = {message_waiting, line};
    message_moves = {messages_wait == 2'd2, messages_wait != 0, to_memory};
    place[0] = u_demultiplexer.sequence_q;
    for (int unsigned i = 0; i < 3; i++) begin
      step = sequence_after(place[i], kind_of(blocks[i]), blocks[i].payload[63:8]);
      message_fits[i] = !message_moves[i] || (step.keep && !step.fault);
      place[i+1] = message_moves[i] ? step.next : place[i];
    end
    message_number = messages_out_q + number_t'(message_out);
  end

  // --- Frames: the same for open frames and their length. ---

  logic [3:0] open;
  logic [3:0][3:0] length;
  logic [2:0] frame_moves, frame_fits;
  always_comb begin
    kind_e kind;
    block_t [2:0] blocks;
    blocks = {frame_waiting, line};
    frame_moves = {frames_wait == 2'd2, frames_wait != 0, to_frame};
    open[0] = u_demultiplexer.hold_q == HoldOpen;
    length[0] = 4'(u_demultiplexer.open_q);
    for (int unsigned i = 0; i < 3; i++) begin
      kind = kind_of(blocks[i]);
      frame_fits[i] = 1'b1;
      open[i+1] = open[i];
      length[i+1] = length[i];
      if (frame_moves[i]) begin
        frame_fits[i] = open[i] ? kind == KindData || kind == KindEnd :
            kind == KindStart || kind == KindOrdered;
        open[i+1] = kind == KindStart || kind == KindData;
        length[i+1] = open[i+1] ? length[i] + 1'b1 : '0;
        if (32'(length[i+1]) >= FrameMax) frame_fits[i] = 1'b0;
      end
    end
  end

  // --- The ring: whole frames, then the open one; the cycles that the decoder needs for them. ---

  block_t [Depth-1:0] ring;
  logic [Depth:0] out_open;
  logic [Depth-1:0] held, ring_fits, ring_right;
  number_t ring_number;
  logic [5:0] needed;
  always_comb begin
    kind_e kind;
    logic is_open;
    ring_number = frames_out_q + number_t'(frame_out);
    out_open[0] = frame_out ? out_kind == KindStart || out_kind == KindData : out_open_q;
    needed = 6'(u_demultiplexer.gap_q);
    for (int unsigned i = 0; i < Depth; i++) begin
      ring[i] = u_demultiplexer.ring_q[
          (32'(u_demultiplexer.front_q) + i) % Depth];
      kind = kind_of(ring[i]);
      held[i] = i < 32'(u_demultiplexer.whole_q) + 32'(u_demultiplexer.open_q);
      is_open = out_open[i];
      // Whole frames end before the open one begins.
      ring_fits[i] = !held[i] || ((is_open ? kind == KindData || kind == KindEnd :
          kind == KindStart || kind == KindOrdered) && (i != 32'(u_demultiplexer.whole_q) || !is_open) &&
          (i < 32'(u_demultiplexer.whole_q) || kind == KindStart || kind == KindData));
      if (i + 1 == 32'(u_demultiplexer.whole_q) && kind != KindEnd && kind != KindOrdered) begin
        ring_fits[i] = 1'b0;
      end
      ring_right[i] = !held[i] || ring_number + number_t'(i) != watch_q || ring[i] == frame_q;
      out_open[i+1] = held[i] ? kind == KindStart || kind == KindData : is_open;
      if (i < 32'(u_demultiplexer.whole_q)) needed += 6'd1 + 6'(gap_after(ring[i]));
    end
  end

  number_t line_number, frame_number;
  assign line_number = ring_number + number_t'(u_demultiplexer.whole_q) + number_t'(u_demultiplexer.open_q);
  assign frame_number = line_number + number_t'(to_frame);

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (frames_wait <= 2'd2 && messages_wait <= 2'd2);
      assert (dut.u_control.front_q == 0 && dut.u_control.back_q == 0 && dut.u_control.count_q <= 1);
      assert (dut.u_control.count_q == 0 || kind_of(dut.u_control.words_q[0]) == KindNotify ||
              kind_of(dut.u_control.words_q[0]) == KindGrant);
      // The line.
      assert (line_kind != KindBad && (line_kind != KindData || to_memory || to_frame));
      assert (after == dut.line_q);
      assert (u_demultiplexer.line_q.message_open == (place[0].state == SequenceOpen));
      assert (u_demultiplexer.line_q.frame_open == open[0]);
      assert (dut.line_q.message_open == (place[1].state == SequenceOpen));
      assert (dut.line_q.frame_open == open[1]);
      // Messages.
      assert (place[0].state == SequenceOpen || (place[0].state == SequenceClosed && place[0].left == 0));
      assert (message_fits == '1);
      assert (place[3] == dut.offered_q);
      assert (messages_in_q == message_number + number_t'(to_memory) + number_t'(messages_wait));
      assert (!to_memory || message_number != watch_q || line == message_q);
      for (int unsigned i = 0; i < 2; i++) begin
        assert (32'(messages_wait) <= i || message_number + number_t'(to_memory) + number_t'(i) != watch_q ||
                message_waiting[i] == message_q);
      end
      // Frames before the ring.
      assert (u_demultiplexer.hold_q != HoldDropping);
      assert (open[0] == (length[0] != 0));
      assert (32'(length[0]) < FrameMax);
      assert (frame_fits == '1);
      assert (open[3] == dut.offered_frame_open_q && length[3] == length_q);
      assert (frames_in_q == frame_number + number_t'(frames_wait));
      assert (!to_frame || line_number != watch_q || line == frame_q);
      for (int unsigned i = 0; i < 2; i++) begin
        assert (32'(frames_wait) <= i || frame_number + number_t'(i) != watch_q || frame_waiting[i] == frame_q);
      end
      // The ring.
      assert (32'(u_demultiplexer.front_q) < Depth);
      assert (32'(u_demultiplexer.whole_q) + 32'(u_demultiplexer.open_q) <= Depth);
      assert (ring_fits == '1 && ring_right == '1);
      assert (u_demultiplexer.whole_q != 0 || !out_open[0]);
      assert (u_demultiplexer.gap_q == 0 || !out_open[0]);
      // There is room: the decoder is behind by no more than a frame and its gap.
      assert (!open[1] || dut.gap_q == 0);
      assert (line_kind != KindEnd || dut.gap_q == gap_after(line));
      assert (line_kind == KindEnd || !to_frame || dut.gap_q == 0);
      assert (32'(needed) + 32'(length[0]) < FrameMax + (open[0] || to_frame ? 0 : 1 + 32'(dut.gap_q)));
    end
  end

  end

endmodule
