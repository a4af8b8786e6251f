// Properties of a line: multiplexer, wire, demultiplexer.
//
//   whole     the frame blocks that come out are those that went in, in order
//   straight  a frame comes out in consecutive cycles, whatever was between its blocks on the line
//   memory    the memory blocks that come out are those that went in, in order
//   faults    a line without noise has no fault
//
// Offers are anything; the multiplexer keeps what is out of sequence. One block of each kind is
// watched: the one with the number `watch_i`, which is any.
module formal_line
  import edm_pkg::*;
#(
    parameter policy_t Policy = PolicyFair,
    parameter int unsigned FrameMax = 10,
    parameter bit Calm = 1'b0,  // to find a counterexample sooner: no /N/ and /G/
    localparam int unsigned NumberW = 4
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
  kind_e out_kind, memory_kind;

  assign frame_in = dut.frame_good && frame_ready;
  assign message_in = dut.message_good && message_ready;
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
      if (Calm) assume (!control_valid_i && watch_i < 4'd3);
      // A frame is no longer than the receiver allows.
      assume (!frame_in || dut.frame_kind == KindEnd || dut.frame_kind == KindOrdered ||
              32'(length_q) + 1 < FrameMax);
      if (frame_in) begin
        frames_in_q <= frames_in_q + 1'b1;
        length_q <= dut.frame_kind == KindEnd || dut.frame_kind == KindOrdered ? '0 : length_q + 1'b1;
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
      // A number is not used twice: the proof ends before.
      assume (frames_in_q != '1 && messages_in_q != '1);

      // whole
      assert (!frame_out || frames_out_q < frames_in_q);
      assert (!frame_out || frames_out_q != watch_i || frame == frame_q);
      // straight
      assert (!out_open_q || out_kind == KindData || out_kind == KindEnd);
      assert (out_open_q || out_kind == KindIdle || out_kind == KindStart || out_kind == KindOrdered);
      // memory
      assert (!message_out || messages_out_q < messages_in_q);
      assert (!message_out || messages_out_q != watch_i || memory == message_q);
      // faults
      assert (fault == FaultNone);
    end
  end

endmodule
