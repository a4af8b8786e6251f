// The receiving side of a line: takes memory blocks out, puts idles in their place, and holds a
// frame until its /T/, so that the decoder gets it in consecutive cycles (paper 3.2.3).
//
// A block that cannot be where it is makes a fault, and is dropped. After any fault the next good
// /S/ or /MS/ begins anew. Blocks of a frame wait in one ring: from `front` whole frames, on their
// way to the decoder, and from `whole` the frame that is coming in.
//
// Latency: 1 cycle from the line to `memory_o`. A frame comes out from the cycle after its /T/ on.
module edm_demultiplexer
  import edm_pkg::*;
#(
    parameter policy_t Policy = PolicyFair,
    parameter int unsigned FrameMax = FrameBlocksMax,
    localparam int unsigned Depth = FrameMax + GapBlocksMax,
    localparam int unsigned IndexW = $clog2(Depth),
    localparam int unsigned CountW = $clog2(Depth + 1)
) (
    input logic clk_i,
    input logic rst_ni,

    // The line.
    input block_t block_i,

    // A block of a memory message, a notification or a grant.
    output logic   memory_valid_o,
    output block_t memory_o,

    // For the frame decoder, every cycle.
    output block_t frame_o,

    // What was wrong with the block.
    output fault_e fault_o,
    output logic [31:0] fault_count_o
);

  // Whether blocks of the frame that is coming in are kept.
  typedef enum logic [1:0] {
    HoldClosed,
    HoldOpen,
    HoldDropping
  } hold_e;

  line_t line_q, line_d;
  sequence_t sequence_q, sequence_d;
  hold_e hold_q, hold_d;
  // Blocks of whole frames and of the frame that is coming in; the ring begins at `front`.
  logic [CountW-1:0] whole_q, whole_d, open_q, open_d;
  logic [IndexW-1:0] front_q, front_d;
  logic [1:0] gap_q, gap_d;
  block_t ring_q[Depth];

  logic memory_valid_q, memory_valid_d;
  block_t memory_q;
  block_t frame_q, frame_d;
  fault_e fault_q, fault_d;
  logic [31:0] fault_count_q, fault_count_d;

  if (Policy > PolicyWhole) begin : gen_policy
    $error("Policy is %0d: 0 to 2", Policy);
  end
  if (FrameMax < 10) begin : gen_frame
    $error("FrameMax is %0d: at least the 10 blocks of the shortest frame", FrameMax);
  end

  function automatic logic [IndexW-1:0] place(
      input logic [IndexW-1:0] front, input logic [CountW-1:0] offset);
    logic [CountW:0] sum;
    sum = (CountW + 1)'(front) + (CountW + 1)'(offset);
    return IndexW'(sum >= (CountW + 1)'(Depth) ? sum - (CountW + 1)'(Depth) : sum);
  endfunction

  kind_e kind;
  line_class_e owner;
  sequence_step_t step;
  logic store;
  logic [CountW-1:0] store_offset;

  always_comb begin : sort
    logic to_memory, to_frame, unfinished;
    logic [CountW-1:0] whole, open;

    kind = kind_of(block_i);
    owner = line_owner(line_q, Policy);
    step = '0;

    line_d = line_after(line_q, Policy, kind);
    sequence_d = sequence_q;
    hold_d = hold_q;
    whole = whole_q;
    open = open_q;
    memory_valid_d = 1'b0;
    fault_d = FaultNone;
    store = 1'b0;
    store_offset = '0;

    to_memory = kind == KindMs || kind == KindMt || kind == KindMst ||
        (kind == KindData && line_q.message_open && owner == LineMemory);
    to_frame = kind == KindStart || kind == KindEnd ||
        (kind == KindData && line_q.frame_open && owner == LineFrame);
    unfinished = hold_q == HoldOpen && (kind == KindStart || kind == KindOrdered);

    if (kind == KindBad) fault_d = FaultBlock;
    if (kind == KindNotify || kind == KindGrant) memory_valid_d = 1'b1;
    if (kind == KindData && !line_q.message_open && !line_q.frame_open) fault_d = FaultDataOutside;

    // The header's count decides when a message is over.
    if (to_memory) begin
      step = sequence_after(sequence_q, kind, block_i.payload[63:8]);
      sequence_d = step.next;
      line_d.message_open = step.next.state != SequenceClosed;
      memory_valid_d = step.keep;
      if (step.fault) fault_d = FaultMemory;
    end

    if (kind == KindStart || kind == KindOrdered) begin
      if (unfinished) fault_d = FaultFrameNotEnded;
      open = '0;
      hold_d = kind == KindStart ? HoldOpen : HoldClosed;
    end
    if (kind == KindOrdered) begin
      line_d.frame_open = 1'b0;
      store = whole != CountW'(Depth);
      store_offset = whole;
      if (store) whole = whole + 1'b1;
    end
    if (to_frame) begin
      if (kind == KindEnd && hold_q == HoldClosed) begin
        fault_d = FaultEndWithoutStart;
      end else if (hold_d == HoldOpen) begin
        store_offset = whole + open;
        if (open == CountW'(FrameMax) || store_offset == CountW'(Depth)) begin
          fault_d = open == CountW'(FrameMax) ? FaultFrameTooLong : FaultOverrun;
          open = '0;
          hold_d = HoldDropping;
        end else begin
          store = 1'b1;
          open = open + 1'b1;
        end
      end
      if (kind == KindEnd) begin
        whole = whole + open;
        open = '0;
        hold_d = HoldClosed;
      end
    end

    // The decoder's block: frames back to back but for the gap, idles otherwise.
    frame_d = BlockIdle;
    gap_d = gap_q == 0 ? 2'd0 : gap_q - 2'd1;
    front_d = front_q;
    if (gap_q == 0 && whole != 0) begin
      // Only a lone /O/ can leave in the cycle in which it comes.
      frame_d = store && store_offset == 0 ? block_i : ring_q[front_q];
      gap_d = gap_after(frame_d);
      front_d = place(front_q, CountW'(1));
      whole = whole - 1'b1;
    end
    whole_d = whole;
    open_d = open;

    fault_count_d = fault_count_q;
    if (fault_d != FaultNone && fault_count_q != '1) fault_count_d += 1;
  end

  assign memory_valid_o = memory_valid_q;
  assign memory_o = memory_q;
  assign frame_o = frame_q;
  assign fault_o = fault_q;
  assign fault_count_o = fault_count_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      line_q <= LineIdle;
      sequence_q <= '0;
      hold_q <= HoldClosed;
      whole_q <= '0;
      open_q <= '0;
      front_q <= '0;
      gap_q <= '0;
      memory_valid_q <= 1'b0;
      memory_q <= BlockIdle;
      frame_q <= BlockIdle;
      fault_q <= FaultNone;
      fault_count_q <= '0;
    end else begin
      line_q <= line_d;
      sequence_q <= sequence_d;
      hold_q <= hold_d;
      whole_q <= whole_d;
      open_q <= open_d;
      front_q <= front_d;
      gap_q <= gap_d;
      memory_valid_q <= memory_valid_d;
      memory_q <= block_i;
      frame_q <= frame_d;
      fault_q <= fault_d;
      fault_count_q <= fault_count_d;

      // The ring never holds more than it has room for.
      assert (32'(whole_q) + 32'(open_q) <= Depth);
    end
  end

  always_ff @(posedge clk_i) begin
    if (store) ring_q[place(front_q, store_offset)] <= block_i;
  end

endmodule
