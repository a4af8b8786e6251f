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

  /* verilator lint_on UNUSEDPARAM */

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

endpackage
