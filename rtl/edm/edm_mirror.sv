// Two interfaces, one stream: passes the first copy of each message from a primary and a backup
// network, and says which of them the node sends on (paper 3.3, fault tolerance;
// crates/edm/src/mirror.rs).
//
// Messages of one kind from one peer have the same order on both networks. So the k-th copy on
// either is the same message, and how far one interface is ahead says which copies are the second
// ones. An interface that falls back by 2^LagW - 1 messages has lost some, and does not return: from
// then on all of its copies are second ones.
//
// A copy counts when it is whole. Its blocks go on at once, and the same message of the other
// interface waits in a queue until then: if the first copy breaks off, the second one goes on from
// its begin. What was written by then is written again, and only a whole message has an effect.
// Second copies leave their queue beside the stream, one block a cycle.
//
// Latency: none while the queue is empty, combinational. An interface that breaks off a message,
// loses a block or stands still in a message for `StallMax` cycles is given up, unless it is the
// last one: it has missed a message. So is one whose network is not in use any more: its switch
// grants what the other one may not.
//
// Queues: while both networks are in step, the second copies wait for the message that is under way.
// Networks of which one is behind by any time bring nothing that has to wait. What waits else is
// undelivered: both bring a block a cycle, the stream takes one, and all but the messages that one
// network has brought and the other has not are the same. So `Depth` is the longest message, and
// `StallMax`, and by how many blocks the networks may differ in their order. A queue that is full
// gives the interface up. Of the last one it loses a block, and with it the rest of the message, so
// that what goes on of it is never whole. Both are counted.
module edm_mirror
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 4,
    parameter int unsigned LagW = 16,
    parameter int unsigned Depth = 128,
    parameter int unsigned StallMax = 63
) (
    input logic clk_i,
    input logic rst_ni,

    // From both ports, the primary's is number 0. A message is broken off; the link is dead.
    input  logic   [1:0] memory_valid_i,
    input  block_t [1:0] memory_i,
    input  logic   [1:0] memory_fault_i,
    input  logic   [1:0] down_i,
    output logic         memory_valid_o,
    output block_t       memory_o,

    // A link to the primary switch is lost, anywhere in the rack: its twin gets what it does not, so
    // all nodes abandon it. Or a switch is lost. A pulse is enough.
    input  logic       link_lost_i,
    input  logic [1:0] switch_lost_i,
    output logic [1:0] used_o,
    output logic [1:0] given_up_o,

    // Second copies, and messages of peers that do not exist or from a node to itself, with which a
    // silent port ends a message; both are dropped. Blocks that found no room, and the rest of their
    // messages.
    output logic [31:0] copy_count_o,
    output logic [31:0] stranger_count_o,
    output logic [31:0] lost_count_o
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
  localparam int unsigned StallW = $clog2(StallMax + 1);
  typedef logic signed [LagW:0] lead_t;
  localparam lead_t LeadMax = {1'b0, {LagW{1'b1}}};

  if (Nodes < 2 || Nodes > 2 ** NodeW) begin : gen_nodes
    $error("Nodes is %0d: 2 to 512", Nodes);
  end
  if (LagW < 1 || LagW > 31) begin : gen_lag
    $error("LagW is %0d: 1 to 31", LagW);
  end
  if (StallMax < 1 || StallMax >= Depth) begin : gen_stall
    $error("StallMax is %0d: at least 1, and below Depth", StallMax);
  end

  // The message that an interface is in.
  typedef struct packed {
    logic open;
    logic keep;       // it goes on
    logic stranger;
    counted_t counted;
    logic [PeerW-1:0] peer;
  } message_t;

  // By how many messages the primary is ahead.
  lead_t [Nodes-1:0][Kinds-1:0] lead_q, lead_d;
  message_t [1:0] message_q, message_d;
  logic [1:0] used_q, used_d, dead_q, dead_d;
  logic [StallW-1:0] stall_q, stall_d;
  logic [31:0] copies_q, strangers_q, lost_q;
  logic [1:0] copy, stranger, lost;

  // --- What is next of each interface: of its queue, or what comes in. ---

  logic [1:0] comes, waits, ready, head_valid, take, dies;
  block_t [1:0] waiting, head;
  // A block of the message that comes in is lost.
  logic [1:0] torn_q, torn_d;

  for (genvar i = 0; i < 2; i++) begin : gen_queue
    kind_e comes_kind;
    logic of_message, is_rest;
    assign comes_kind = kind_of(memory_i[i]);
    assign of_message = comes_kind != KindGrant && comes_kind != KindNotify;
    assign is_rest = comes_kind == KindData || comes_kind == KindMt;

    edm_fifo #(
        .Width($bits(block_t)),
        .Depth(Depth)
    ) u_queue (
        .clk_i,
        .rst_ni,
        .valid_i(comes[i] && (waits[i] || !take[i])),
        .ready_o(ready[i]),
        .word_i (memory_i[i]),
        .valid_o(waits[i]),
        .take_i (take[i]),
        .word_o (waiting[i])
    );
    assign comes[i] = memory_valid_i[i] && !dead_q[i] && !dies[i] && !(torn_q[i] && is_rest);
    assign head_valid[i] = waits[i] || comes[i];
    assign head[i] = waits[i] ? waiting[i] : memory_i[i];
    assign lost[i] = memory_valid_i[i] && !dead_q[i] && (!ready[i] || (torn_q[i] && is_rest));
    assign torn_d[i] = memory_valid_i[i] && of_message ? lost[i] : torn_q[i];
  end

  always_comb begin : give_up
    logic stalls;
    stalls = stall_q == StallW'(StallMax);
    for (int unsigned i = 0; i < 2; i++) begin
      dies[i] = down_i[i] || !used_q[i];
      // The last one is kept. Of two that fail together, that is the backup.
      if (!dead_q[1-i] && !(i == 1 && dies[0]) &&
          (memory_fault_i[i] || lost[i] || (stalls && message_q[i].open && message_q[i].keep))) begin
        dies[i] = 1'b1;
      end
    end
    dead_d = dead_q | dies;
  end

  // --- The stream ---

  always_comb begin : filter
    /* verilator lint_off UNUSEDSIGNAL */  // the rest may be anything
    header_t header;
    /* verilator lint_on UNUSEDSIGNAL */
    kind_e kind;
    logic [NodeW-1:0] peer;
    message_t message;
    lead_t lead;
    logic starts, is_first, goes, ends;

    lead_d = lead_q;
    message_d = message_q;
    take = '0;
    copy = '0;
    stranger = '0;
    memory_valid_o = 1'b0;
    memory_o = head[0];
    stall_d = '0;
    for (int unsigned i = 0; i < 2; i++) begin
      kind = kind_of(head[i]);
      header = head[i].payload[63:8];
      starts = kind == KindMs || kind == KindMst || kind == KindGrant;
      message = message_q[i];
      peer = header.source;
      if (kind == KindGrant) peer = head[i].payload[16:8];
      if (starts) begin
        message.stranger =
            32'(peer) >= Nodes || (kind != KindGrant && header.source == header.target);
        message.peer = PeerW'(peer);
        message.counted = CountedRequest;
        if (kind == KindGrant) begin
          message.counted =
              id_of_write(head[i].payload[24:17]) ? CountedWriteGrant : CountedAnswerGrant;
        end else if (header.kind == MessageWreq) begin
          message.counted = CountedWrite;
        end else if (header.kind == MessageRres) begin
          message.counted = CountedAnswer;
        end
      end
      lead = lead_d[message.peer][message.counted];
      is_first = i == 0 ? lead >= 0 : lead <= 0;
      // What goes on needs a place in this cycle, and a message that the other one is in no message
      // that goes on.
      goes = starts ? is_first && !message.stranger : kind == KindNotify || message.keep;
      take[i] = head_valid[i] && (!goes || !memory_valid_o);
      if (starts && goes && kind != KindGrant && message_q[1-i].open && message_q[1-i].keep) begin
        take[i] = 1'b0;
      end
      ends = kind == KindGrant || kind == KindMt || kind == KindMst;

      if (take[i]) begin
        if (goes) begin
          memory_valid_o = 1'b1;
          memory_o = head[i];
        end
        if (starts) begin
          stranger[i] = message.stranger;
          copy[i] = !message.stranger && !is_first;
        end
        if (kind != KindGrant && kind != KindNotify) begin
          message.keep = goes;
          message.open = !ends;
          message_d[i] = message;
        end
        if (ends && !message.stranger && lead != LeadMax && lead != -LeadMax) begin
          lead_d[message.peer][message.counted] = i == 0 ? lead + lead_t'(1) : lead - lead_t'(1);
        end
      end
      // What has broken off is no message.
      if (dead_q[i] && !head_valid[i]) message_d[i].open = 1'b0;
      if (message_q[i].open && message_q[i].keep && !head_valid[i]) begin
        stall_d = stall_q == StallW'(StallMax) ? stall_q : stall_q + 1'b1;
      end
    end
    used_d = used_q & ~switch_lost_i & {1'b1, !link_lost_i};
  end

  assign used_o = used_q;
  assign given_up_o = dead_q;
  assign copy_count_o = copies_q;
  assign stranger_count_o = strangers_q;
  assign lost_count_o = lost_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lead_q <= '0;
      message_q <= '0;
      used_q <= '1;
      dead_q <= '0;
      torn_q <= '0;
      stall_q <= '0;
      copies_q <= '0;
      strangers_q <= '0;
      lost_q <= '0;
    end else begin
      lead_q <= lead_d;
      message_q <= message_d;
      used_q <= used_d;
      dead_q <= dead_d;
      torn_q <= torn_d;
      stall_q <= stall_d;
      if (copies_q[31:1] != '1) copies_q <= copies_q + 32'(copy[0]) + 32'(copy[1]);
      if (strangers_q[31:1] != '1) begin
        strangers_q <= strangers_q + 32'(stranger[0]) + 32'(stranger[1]);
      end
      if (lost_q[31:1] != '1) lost_q <= lost_q + 32'(lost[0]) + 32'(lost[1]);

      // A network that is abandoned stays so, and one message at a time goes on.
      assert ((used_d & ~used_q) == 0);
      assert (!(message_q[0].open && message_q[0].keep && message_q[1].open && message_q[1].keep));
      // What goes on is a block of a message that has begun.
      for (int unsigned i = 0; i < 2; i++) begin
        assert (!(take[i] && (kind_of(head[i]) == KindData || kind_of(head[i]) == KindMt)) ||
                message_q[i].open);
      end
    end
  end

endmodule
