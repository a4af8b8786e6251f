// Parameters and types that all modules of EDM share: widths on the wire, blocks, demands, grants.
//
// Source of the numbers: Su and Shrivastav, "EDM", ASPLOS 2025, and crates/edm/src/pcs, which fixes
// what the paper leaves open.
package edm_pkg;

  /* verilator lint_off UNUSEDPARAM */  // no module uses all of them

  // Widths of the fields of /N/ and /G/ (paper 3.1.4); a demand is wider than the paper's 16 bits.
  localparam int unsigned NodeW = 9;
  localparam int unsigned IdW = 8;
  localparam int unsigned SizeW = 16;
  localparam int unsigned DemandW = 32;
  localparam int unsigned BatchW = 4;

  // The paper's testbed: X and the chunk in bytes (4.3).
  localparam int unsigned ActivePerPair = 3;
  localparam int unsigned ChunkBytes = 256;

  // Blocks on a line that one chunk, one request or one booking makes: 65,535 bytes are 8,194.
  localparam int unsigned BlocksW = 14;

  // What the data of a demand are for. Each pair has one channel for each class.
  typedef enum logic {
    ClassWrite    = 1'b0,
    ClassResponse = 1'b1
  } class_e;

  // A demand as a port brings it in.
  typedef struct packed {
    class_e class_id;
    logic [NodeW-1:0] peer;           // a write's target, or the memory node of a request
    logic [IdW-1:0] id;
    logic [DemandW-1:0] bytes;
    logic [BatchW-1:0] extra;         // a write's messages less one, or the blocks of the request
  } demand_t;

  // Why a demand was not taken; the order is the order of the checks.
  typedef enum logic [2:0] {
    RefusedNot      = 3'd0,
    RefusedNoPort   = 3'd1,
    RefusedEmpty    = 3'd2,
    RefusedDisabled = 3'd3,
    RefusedPairFull = 3'd4
  } refused_e;

  // A grant of the scheduler, to the port that it is an output of.
  typedef struct packed {
    class_e class_id;
    logic [NodeW-1:0] target;
    logic [IdW-1:0] id;
    logic [SizeW-1:0] bytes;
    logic first;                      // the demand's first grant: of a response, the request itself
    logic last;                       // nothing remains after it
  } grant_t;

  // Blocks that a message with so many bytes of payload makes (crates/edm/src/pcs/memory.rs,
  // payload_blocks): one byte is in /MST/ or /MS/, seven in /MT/, eight in each /MD/.
  function automatic logic [BlocksW-1:0] payload_blocks(input logic [SizeW:0] bytes);
    logic [BlocksW-1:0] inner;
    inner = bytes <= 8 ? '0 : BlocksW'((bytes - 17'd1) >> 3);
    return bytes <= 1 ? BlocksW'(1) : BlocksW'(2) + inner;
  endfunction

  // Blocks of one chunk of a demand. A batch has /MS/ and /MT/ for each of its messages, and each
  // may round up to a whole block (crates/edm/src/scheduler.rs, chunk_blocks).
  function automatic logic [BlocksW-1:0] chunk_blocks(
      input class_e class_id, input logic [SizeW-1:0] bytes, input logic [BatchW-1:0] batch);
    logic [BlocksW-1:0] whole, framing;
    whole = BlocksW'((17'(bytes) + 17'd7) >> 3);
    framing = 3 * (BlocksW'(batch) + 1) - 1;
    if (class_id == ClassResponse) return payload_blocks(17'(bytes));
    return whole + framing;
  endfunction

  // --- Blocks (IEEE 802.3 clauses 49 and 82; crates/edm/src/pcs/block.rs) ---

  // The first bit on the line is bit 0: two synchronisation bits, then eight bytes.
  typedef struct packed {
    logic [63:0] payload;
    logic [1:0] sync;
  } block_t;

  localparam logic [1:0] SyncData = 2'b10;
  localparam logic [1:0] SyncControl = 2'b01;

  // What a block means, and how many bytes a /T/ holds is in its type.
  typedef enum logic [3:0] {
    KindBad,       // no block: wrong synchronisation bits, type, codes or padding
    KindData,      // /D/ or /MD/
    KindIdle,      // /E/
    KindStart,     // /S/
    KindEnd,       // /T0/ to /T7/
    KindOrdered,   // /O/
    KindMs,        // /MS/
    KindMt,        // /MT/
    KindMst,       // /MST/
    KindNotify,    // /N/
    KindGrant      // /G/
  } kind_e;

  localparam block_t BlockIdle = '{payload: 64'h1e, sync: SyncControl};

  // One choice, and no loop: simulators evaluate this several times a cycle and port.
  function automatic kind_e kind_of(input block_t block);
    kind_e kind;
    kind = KindBad;
    if (block.sync == SyncData) begin
      kind = KindData;
    end else if (block.sync == SyncControl) begin
      // Padding after the last byte is zero.
      unique case (block.payload[7:0])
        8'h1e: if (block.payload[63:8] == 0) kind = KindIdle;
        8'h78: kind = KindStart;
        8'h87: if (block.payload[63:8] == 0) kind = KindEnd;
        8'h99: if (block.payload[63:16] == 0) kind = KindEnd;
        8'haa: if (block.payload[63:24] == 0) kind = KindEnd;
        8'hb4: if (block.payload[63:32] == 0) kind = KindEnd;
        8'hcc: if (block.payload[63:40] == 0) kind = KindEnd;
        8'hd2: if (block.payload[63:48] == 0) kind = KindEnd;
        8'he1: if (block.payload[63:56] == 0) kind = KindEnd;
        8'hff: kind = KindEnd;
        8'h4b: if (block.payload[63:36] == 0) kind = KindOrdered;
        8'h33: kind = KindMs;
        8'h2d: kind = KindMt;
        8'h00: kind = KindMst;
        8'h55: kind = KindNotify;
        8'h66: kind = KindGrant;
        default: ;
      endcase
    end
    return kind;
  endfunction

  // Idles that must follow a block: the gap of 12 bytes begins in the /T/ itself.
  function automatic logic [1:0] gap_after(input block_t block);
    logic [1:0] gap;
    gap = 2'd0;
    if (block.sync == SyncControl) begin
      unique case (block.payload[7:0])
        8'h87, 8'h99, 8'haa, 8'hb4, 8'hcc: gap = 2'd1;
        8'hd2, 8'he1, 8'hff: gap = 2'd2;
        default: ;
      endcase
    end
    return gap;
  endfunction

  // Who may send when both classes wait (paper 3.2.3; crates/edm/src/pcs/multiplex.rs).
  // No enum, so that tools can set it from outside.
  typedef logic [1:0] policy_t;
  localparam policy_t PolicyFair = 2'd0;    // in turn, block by block
  localparam policy_t PolicyStrict = 2'd1;  // memory first
  localparam policy_t PolicyWhole = 2'd2;   // no preemption

  // The two classes on a line.
  typedef enum logic {
    LineMemory,
    LineFrame
  } line_class_e;

  // What both ends of a line know from the blocks that have been on it.
  typedef struct packed {
    logic message_open;
    logic frame_open;
    line_class_e last;  // the class with the last turn
  } line_t;

  localparam line_t LineIdle = '{message_open: 1'b0, frame_open: 1'b0, last: LineFrame};

  function automatic line_class_e line_turn(input line_class_e last);
    return last == LineMemory ? LineFrame : LineMemory;
  endfunction

  // Whose the next block is, should it be a data block; only while something is open.
  function automatic line_class_e line_owner(input line_t line, input policy_t policy);
    if (!line.frame_open) return LineMemory;
    if (!line.message_open) return LineFrame;
    return policy == PolicyStrict ? LineMemory : line_turn(line.last);
  endfunction

  // The line after a block.
  function automatic line_t line_after(input line_t line, input policy_t policy, input kind_e kind);
    line_t next;
    next = line;
    unique case (kind)
      KindBad: ;
      KindData: if (line.message_open || line.frame_open) next.last = line_owner(line, policy);
      // A pass: the class with the turn has nothing to send.
      KindIdle: next.last = line.message_open && line.frame_open ? line_turn(line.last) : LineFrame;
      KindStart, KindEnd, KindOrdered: next.last = LineFrame;
      default: next.last = LineMemory;
    endcase
    unique case (kind)
      KindStart: next.frame_open = 1'b1;
      KindEnd: next.frame_open = 1'b0;
      KindMs: next.message_open = 1'b1;
      KindMt, KindMst: next.message_open = 1'b0;
      default: ;
    endcase
    return next;
  endfunction

  // --- Memory messages (crates/edm/src/pcs/header.rs) ---

  typedef enum logic [2:0] {
    MessageNone  = 3'd0,
    MessageRreq  = 3'd1,
    MessageWreq  = 3'd2,
    MessageRmw   = 3'd3,
    MessageRres  = 3'd4
  } message_e;

  // The 56 bits beside the type of /MS/ and /MST/; the kind is on the line first.
  typedef struct packed {
    logic [7:0] first;
    logic [SizeW-1:0] size;
    logic [IdW-1:0] id;
    logic [NodeW-1:0] source;
    logic [NodeW-1:0] target;
    logic reserved;
    logic long_size;
    logic last;
    logic [2:0] kind;
  } header_t;

  // Bytes of payload that a header announces: address, opcode and arguments count.
  function automatic logic [SizeW:0] header_bytes(
      input logic [2:0] kind, input logic long_size, input logic [SizeW-1:0] size);
    unique case (kind)
      MessageRreq: return long_size ? 17'd10 : 17'd8;
      MessageWreq: return 17'd8 + 17'(size);
      MessageRmw: return 17'd9 + 17'(size);
      default: return 17'(size);
    endcase
  endfunction

  // Whether a header makes sense in a block of this type.
  /* verilator lint_off UNUSEDSIGNAL */  // any node, id and payload will do
  function automatic logic header_ok(input header_t header, input logic single);
    /* verilator lint_on UNUSEDSIGNAL */
    if (header.kind < 3'd1 || header.kind > 3'd4 || header.reserved) return 1'b0;
    if (header.long_size && header.kind != MessageRreq) return 1'b0;
    if (!header.last && header.kind != MessageWreq && header.kind != MessageRres) return 1'b0;
    if (header.kind == MessageRmw && header.size != 16'd8 && header.size != 16'd16) return 1'b0;
    return single == (header_bytes(header.kind, header.long_size, header.size) <= 17'd1);
  endfunction

  // /MST/ of an RRES without data: it ends a message whose sender has failed.
  function automatic block_t null_answer(
      input logic [NodeW-1:0] target, input logic [NodeW-1:0] source, input logic [IdW-1:0] id);
    block_t block;
    block.sync = SyncControl;
    block.payload = 64'({8'd0, SizeW'(0), id, source, target, 3'b001, MessageRres, 8'h00});
    return block;
  endfunction

  // /MD/ blocks between /MS/ and /MT/.
  localparam int unsigned InnerW = 14;
  localparam int unsigned InnerMax = 8192;

  function automatic logic [InnerW-1:0] inner_blocks(input logic [SizeW:0] bytes);
    return bytes <= 17'd8 ? '0 : InnerW'((bytes - 17'd1) >> 3);
  endfunction

  // Where in a message a line is.
  typedef enum logic [1:0] {
    SequenceClosed,
    SequenceOpen,     // after /MS/
    SequenceSkipping  // after an /MS/ that made no sense
  } sequence_e;

  typedef struct packed {
    sequence_e state;
    logic [InnerW-1:0] left;  // /MD/ to come before /MT/
  } sequence_t;

  // The answer to a block of memory messages.
  typedef struct packed {
    sequence_t next;
    logic keep;   // it is a block of a good message
    logic fault;
  } sequence_step_t;

  function automatic sequence_step_t sequence_after(
      input sequence_t now, input kind_e kind, input header_t header);
    sequence_step_t step;
    logic closed;
    step.next = '{state: SequenceClosed, left: '0};
    step.keep = 1'b0;
    step.fault = 1'b0;
    closed = now.state == SequenceClosed;
    unique case (kind)
      KindMs, KindMst: begin
        step.keep = header_ok(header, kind == KindMst);
        step.fault = !step.keep || now.state == SequenceOpen;
        if (kind == KindMs) begin
          step.next.state = step.keep ? SequenceOpen : SequenceSkipping;
          step.next.left = step.keep ?
              inner_blocks(header_bytes(header.kind, header.long_size, header.size)) :
              InnerW'(InnerMax);
        end
      end
      KindData: begin
        if (!closed && now.left != 0) step.next = '{state: now.state, left: now.left - 1'b1};
        step.keep = now.state == SequenceOpen && now.left != 0;
        step.fault = closed || now.left == 0;
      end
      KindMt: begin
        step.keep = now.state == SequenceOpen && now.left == 0;
        step.fault = closed || (now.state == SequenceOpen && now.left != 0);
      end
      default: begin
        step.next = now;
        step.fault = 1'b1;
      end
    endcase
    return step;
  endfunction

  // --- What hosts and the switch keep of messages ---

  localparam int unsigned AddressW = 64;
  localparam int unsigned TagW = 16;

  typedef enum logic [1:0] {
    AccessRead,
    AccessWrite,
    AccessModify
  } access_e;

  // Opcodes of an RMWREQ. A compare-and-swap has two arguments and answers one byte.
  localparam logic [7:0] OpcodeCompareAndSwap = 8'd1;
  localparam logic [7:0] OpcodeFetchAndAdd = 8'd2;
  localparam logic [7:0] OpcodeSwap = 8'd3;

  // A request of the application. Data come from, or go to, `here` in the node's own memory.
  typedef struct packed {
    access_e kind;
    logic [NodeW-1:0] target;
    logic [AddressW-1:0] there;
    logic [AddressW-1:0] here;
    logic [DemandW-1:0] bytes;        // of a read or write
    logic [7:0] opcode;
    logic [63:0] first;               // what is expected, added or stored
    logic [63:0] second;              // a compare-and-swap: what is stored
    logic [TagW-1:0] tag;
  } access_t;

  // An entry of a message state table.
  typedef struct packed {
    logic [AddressW-1:0] there;       // of a write: its address at the memory node
    logic [AddressW-1:0] here;        // of the data in the own memory
    logic [DemandW-1:0] bytes;
    logic [DemandW-1:0] done;         // granted, or received
    logic [TagW-1:0] tag;
    logic in_word;                    // of a response: its data are `there`, not in the memory
  } state_t;

  // Bytes that may be sent: a grant from the switch, or a request that is one.
  typedef struct packed {
    logic [NodeW-1:0] target;
    logic [IdW-1:0] id;
    logic [DemandW-1:0] bytes;
  } permit_t;

  // The longest request: a compare-and-swap, 25 bytes.
  localparam int unsigned RequestBlocksMax = 5;
  typedef struct packed {
    logic [IdW-1:0] id;
    logic [2:0] blocks;
    logic [RequestBlocksMax-1:0][63:0] payload;  // the first block is number 0
  } buffered_t;

  // A block on its way through the switch.
  typedef struct packed {
    logic [NodeW-1:0] target;
    logic last;                       // the message ends with it
    logic cut;                        // in the middle: what came was broken
    block_t block;
  } forward_t;

  // What a message does to the memory, eight bytes at most.
  typedef enum logic [1:0] {
    MemoryNothing,
    MemoryWrite,
    MemoryServe,                      // an RREQ
    MemoryModify                      // an RMWREQ
  } memory_e;

  typedef struct packed {
    memory_e kind;
    logic [AddressW-1:0] address;
    logic [63:0] data;                // or the first argument
    logic [63:0] second;
    logic [7:0] opcode;
    logic [3:0] bytes;                // of a write
    logic [DemandW-1:0] size;         // of the answer
    logic [NodeW-1:0] peer;
    logic [IdW-1:0] id;
    logic answered;                   // the last of a read
    logic null_answer;
    logic written;                    // the last of a write
    logic [TagW-1:0] tag;
  } memory_op_t;

  // Bits of a class in an id: writes have the top bit (crates/edm/src/host.rs).
  function automatic logic id_of_write(input logic [IdW-1:0] id);
    return id[IdW-1];
  endfunction

  function automatic logic [DemandW-1:0] answer_bytes(input logic [7:0] opcode);
    return opcode == OpcodeCompareAndSwap ? DemandW'(1) : DemandW'(8);
  endfunction

  function automatic logic [SizeW-1:0] argument_bytes(input logic [7:0] opcode);
    return opcode == OpcodeCompareAndSwap ? SizeW'(16) : SizeW'(8);
  endfunction

  function automatic logic opcode_ok(input logic [7:0] opcode, input logic [SizeW-1:0] arguments);
    return opcode >= OpcodeCompareAndSwap && opcode <= OpcodeSwap &&
        arguments == argument_bytes(opcode);
  endfunction

  // The first `bytes` of eight.
  function automatic logic [63:0] first_bytes(input logic [63:0] word, input logic [3:0] bytes);
    return bytes >= 4'd8 ? word : word & ~(64'hffff_ffff_ffff_ffff << (7'(bytes) * 7'd8));
  endfunction

  // Why a received block is not what it should be.
  typedef enum logic [2:0] {
    FaultNone,
    FaultBlock,          // no block
    FaultMemory,         // a memory block out of sequence, or a header that makes no sense
    FaultDataOutside,
    FaultFrameNotEnded,
    FaultEndWithoutStart,
    FaultFrameTooLong,
    FaultOverrun
  } fault_e;

  // The longest frame: 9,022 bytes in /D/ and /T/, after /S/; and the longest gap.
  localparam int unsigned FrameBlocksMax = 1129;
  localparam int unsigned GapBlocksMax = 2;

  /* verilator lint_on UNUSEDPARAM */

endpackage
