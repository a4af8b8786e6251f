// The bytes of a memory node that the open reads of a host are for: a write that touches some of
// them waits until that read is answered (Order of a pair, README.md).
//
// The memory node reads an answer of more than eight bytes when its chunks leave, and a grant of a
// later write may come before that. A shorter answer is read when its request comes.
//
// Latency: combinational. A read counts from the cycle after it is put.
module edm_read_ranges
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 4,
    parameter int unsigned Slots = 4
) (
    input logic clk_i,

    // A peer, and which of its places have an open read.
    /* verilator lint_off UNUSEDSIGNAL */  // the state table has compared the rest
    input logic [NodeW-1:0] node_i,
    input logic [IdW-1:0]   put_id_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input logic [Slots-1:0] open_i,

    // What a write or a modification of it would change.
    input  logic [AddressW-1:0] from_i,
    input  logic [DemandW-1:0]  bytes_i,
    output logic                touches_o,

    // A read of it opens.
    input logic                put_i,
    input logic [AddressW-1:0] put_from_i,
    input logic [DemandW-1:0]  put_bytes_i
);

  typedef struct packed {
    logic [AddressW-1:0] from;
    logic [DemandW-1:0] bytes;
  } range_t;

  localparam int unsigned PeerW = $clog2(Nodes);
  localparam int unsigned SlotW = $clog2(Slots);

  logic [PeerW-1:0] peer;
  logic [Slots-1:0] touches;
  assign peer = node_i[PeerW-1:0];
  assign touches_o = |touches;

  for (genvar s = 0; s < Slots; s++) begin : gen_slot
    range_t range_q[Nodes];
    range_t range;
    assign range = range_q[peer];
    // Either begins in the other one. Addresses go round.
    assign touches[s] = open_i[s] && range.bytes > DemandW'(8) &&
        (from_i - range.from < AddressW'(range.bytes) || range.from - from_i < AddressW'(bytes_i));

    always_ff @(posedge clk_i) begin
      if (put_i && put_id_i[SlotW-1:0] == SlotW'(s)) begin
        range_q[peer] <= '{from: put_from_i, bytes: put_bytes_i};
      end
    end
  end

endmodule
