// Two interfaces, one stream: passes the first copy of each message from a primary and a backup
// network, and says which of them the node sends on (paper 3.3, fault tolerance;
// crates/edm/src/mirror.rs).
//
// Messages of one kind from one peer have the same order on both networks. So the k-th copy on
// either is the same message, and how far one interface is ahead says which copies are the second
// ones. An interface that falls back by 2^LagW - 1 messages has lost some, and does not return: from
// then on all of its copies are second ones.
//
// What both interfaces bring in one cycle comes out in one cycle, the primary's first in the count.
// /N/ is no message for a host, and passes. Latency: 1 cycle.
module edm_mirror
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 4,
    parameter int unsigned LagW = 16
) (
    input logic clk_i,
    input logic rst_ni,

    // From both ports, the primary's is number 0.
    input  logic   [1:0] memory_valid_i,
    input  block_t [1:0] memory_i,
    output logic   [1:0] memory_valid_o,
    output block_t [1:0] memory_o,

    // A link to the primary switch is lost, anywhere in the rack: its twin gets what it does not, so
    // all nodes abandon it. Or a switch is lost. A pulse is enough.
    input  logic       link_lost_i,
    input  logic [1:0] switch_lost_i,
    output logic [1:0] used_o,

    // Second copies, and messages of peers that do not exist; both are dropped.
    output logic [31:0] copy_count_o,
    output logic [31:0] stranger_count_o
);

  // What is counted apart, because only messages of one kind from one peer keep their order.
  localparam int unsigned Kinds = 5;
  typedef logic [2:0] counted_t;
  localparam counted_t CountedWriteGrant = 3'd0;
  localparam counted_t CountedAnswerGrant = 3'd1;
  localparam counted_t CountedRequest = 3'd2;
  localparam counted_t CountedWrite = 3'd3;
  localparam counted_t CountedAnswer = 3'd4;

  localparam int unsigned PeerW = $clog2(Nodes);
  typedef logic signed [LagW:0] lead_t;
  localparam lead_t LeadMax = {1'b0, {LagW{1'b1}}};

  if (Nodes < 2 || Nodes > 2 ** NodeW) begin : gen_nodes
    $error("Nodes is %0d: 2 to 512", Nodes);
  end
  if (LagW < 1 || LagW > 31) begin : gen_lag
    $error("LagW is %0d: 1 to 31", LagW);
  end

  // By how many messages the primary is ahead.
  lead_t [Nodes-1:0][Kinds-1:0] lead_q, lead_d;
  // Whether the message that comes in is a first copy.
  logic [1:0] keep_q, keep_d;
  logic [1:0] used_q, used_d;
  logic [1:0] valid_q, valid_d;
  block_t [1:0] block_q;
  logic [31:0] copies_q, strangers_q;
  logic [1:0] copy, stranger;

  always_comb begin : filter
    /* verilator lint_off UNUSEDSIGNAL */  // the rest may be anything
    header_t header;
    /* verilator lint_on UNUSEDSIGNAL */
    kind_e kind;
    counted_t counted;
    logic [NodeW-1:0] peer;
    logic [PeerW-1:0] at;
    lead_t lead;

    lead_d = lead_q;
    keep_d = keep_q;
    valid_d = '0;
    copy = '0;
    stranger = '0;
    for (int unsigned i = 0; i < 2; i++) begin
      kind = kind_of(memory_i[i]);
      header = memory_i[i].payload[63:8];
      if (kind == KindGrant) begin
        peer = memory_i[i].payload[16:8];
        counted = id_of_write(memory_i[i].payload[24:17]) ? CountedWriteGrant : CountedAnswerGrant;
      end else begin
        peer = header.source;
        unique case (header.kind)
          MessageWreq: counted = CountedWrite;
          MessageRres: counted = CountedAnswer;
          default: counted = CountedRequest;
        endcase
      end
      at = PeerW'(peer);
      lead = lead_d[at][counted];

      if (memory_valid_i[i] && (kind == KindGrant || kind == KindMs || kind == KindMst)) begin
        stranger[i] = 32'(peer) >= Nodes;
        valid_d[i] = !stranger[i] && (i == 0 ? lead >= 0 : lead <= 0);
        copy[i] = !stranger[i] && !valid_d[i];
        if (!stranger[i] && lead != LeadMax && lead != -LeadMax) begin
          lead_d[at][counted] = i == 0 ? lead + lead_t'(1) : lead - lead_t'(1);
        end
        if (kind != KindGrant) keep_d[i] = valid_d[i];
      end else begin
        valid_d[i] = memory_valid_i[i] && (kind == KindNotify || keep_q[i]);
      end
    end
    used_d = used_q & ~switch_lost_i & {1'b1, !link_lost_i};
  end

  assign memory_valid_o = valid_q;
  assign memory_o = block_q;
  assign used_o = used_q;
  assign copy_count_o = copies_q;
  assign stranger_count_o = strangers_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lead_q <= '0;
      keep_q <= '0;
      used_q <= '1;
      valid_q <= '0;
      block_q <= {2{BlockIdle}};
      copies_q <= '0;
      strangers_q <= '0;
    end else begin
      lead_q <= lead_d;
      keep_q <= keep_d;
      used_q <= used_d;
      valid_q <= valid_d;
      block_q <= memory_i;
      if (copies_q[31:1] != '1) copies_q <= copies_q + 32'(copy[0]) + 32'(copy[1]);
      if (strangers_q[31:1] != '1) begin
        strangers_q <= strangers_q + 32'(stranger[0]) + 32'(stranger[1]);
      end

      // A network that is abandoned stays so.
      assert ((used_d & ~used_q) == 0);
    end
  end

endmodule
