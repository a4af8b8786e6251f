// One port of a scheduler: as a source the check of its demands, whom it accepts and its grant; as a
// target its notification queue and what it is granted; its timers; and the registers of all these.
//
// Latency: that of `edm_scheduler`.
module edm_scheduler_port
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned Chunk = ChunkBytes,
    parameter bit Fcfs = 1'b0,
    parameter int unsigned LookAhead = 3,
    parameter int unsigned BlockCycles = 1,
    parameter int unsigned TimeW = 32,
    parameter int unsigned TimerW = 24,
    localparam int unsigned PortW = $clog2(Ports),
    localparam int unsigned StampW = TimeW + PortW,
    localparam int unsigned RankW = Fcfs ? 1 : DemandW,
    localparam int unsigned KeyW = RankW + StampW
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [PortW-1:0] own_i,

    // As `edm_scheduler` has them.
    input  logic       demand_valid_i,
    input  demand_t    demand_i,
    input  logic       uplink_valid_i,
    input  logic [3:0] uplink_blocks_i,
    output refused_e   refused_o,
    output logic       grant_valid_o,
    output grant_t     grant_o,

    // Ports that die in this cycle, are dead, and are dead with those of this cycle. The time of
    // arrivals. The phase; whether an iteration has begun; whether none is under way after this cycle.
    input logic [Ports-1:0] down_i,
    input logic [Ports-1:0] disabled_i,
    input logic [Ports-1:0] disabled_now_i,
    input logic [TimeW-1:0] time_i,
    input logic             request_i,
    input logic             accept_i,
    input logic             mark_i,
    input logic             begin_i,
    input logic             settles_i,

    // Our demand is taken, withdraws another, is refused; a withdrawal named a demand; we request.
    output logic taken_o,
    output logic withdraws_o,
    output logic is_refused_o,
    output logic named_o,
    output logic requests_o,

    // Insert: our demand, and those of all. What ours is to each peer, and those of all to us.
    output demand_t             demand_o,
    input  demand_t [Ports-1:0] demands_i,
    output logic    [Ports-1:0] write_o,
    output logic    [Ports-1:0] read_o,
    output logic    [Ports-1:0] withdraw_o,
    input  logic    [Ports-1:0] write_i,
    input  logic    [Ports-1:0] read_arrived_i,
    input  logic    [Ports-1:0] withdraw_i,
    // By our queue to each source, and by each target's queue to us: a channel of writes is full, a
    // withdrawal named a demand, a read was sent on.
    output logic    [Ports-1:0] write_full_o,
    input  logic    [Ports-1:0] write_full_i,
    output logic    [Ports-1:0] withdrawn_o,
    input  logic    [Ports-1:0] withdrawn_i,
    output logic    [Ports-1:0] read_started_o,
    input  logic    [Ports-1:0] read_started_i,

    // Request and accept: what we ask, and what all ask.
    output logic                        source_free_o,
    input  logic [Ports-1:0]            source_free_i,
    output logic                        asks_o,
    output logic [PortW-1:0]            asked_o,
    output logic [KeyW-1:0]             key_o,
    input  logic [Ports-1:0]            asks_i,
    input  logic [Ports-1:0][PortW-1:0] asked_i,
    input  logic [Ports-1:0][KeyW-1:0]  key_i,
    output logic                        best_o,
    output logic                        lowest_o,
    input  logic [Ports-1:0]            best_i,
    input  logic [Ports-1:0]            lowest_i,

    // Mark: what we are granted as a target, and what all are. For the timers: the order of grants,
    // the blocks of a grant itself, when a source and when a target is free.
    output grant_t                       made_o,
    input  grant_t [Ports-1:0]           made_i,
    output logic [PortW-1:0]             order_o,
    output logic [2:0]                   grant_blocks_o,
    output logic [TimerW-1:0]            free_o,
    output logic [TimerW-1:0]            until_o,
    input  logic [Ports-1:0][PortW-1:0]  order_i,
    input  logic [Ports-1:0][2:0]        grant_blocks_i,
    input  logic [Ports-1:0][TimerW-1:0] free_i,
    input  logic [Ports-1:0][TimerW-1:0] until_i,

    // For assertions: our circuits as a target and as a source; a queue that is broken; a target that
    // is granted and not free.
    output logic             granted_o,
    output logic [PortW-1:0] granted_source_o,
    output logic             accepted_o,
    output logic [PortW-1:0] accepted_target_o,
    output logic             broken_o,
    output logic             busy_o
);
  /* verilator inline_module */

  localparam int unsigned IterationCycles = 3;
  localparam int unsigned FreeWithin = IterationCycles + LookAhead;
  // Three cycles of bookings of up to 15 blocks.
  localparam int unsigned WindowW = 6;

  if (TimerW < BlocksW + 2 + $clog2(BlockCycles + 1)) begin : gen_timer
    $error("TimerW is %0d: too narrow for a chunk", TimerW);
  end

  // A target's request.
  typedef struct packed {
    logic valid;
    class_e class_id;
    logic [PortW-1:0] source;
    logic [RankW-1:0] rank;
    logic [StampW-1:0] stamp;
    logic [IdW-1:0] id;
    logic [DemandW-1:0] bytes;
    logic [BatchW-1:0] extra;
    logic started;
    logic oldest;
  } request_t;

  // What a target is granted.
  typedef struct packed {
    logic valid;
    class_e class_id;
    logic [PortW-1:0] source;
    logic [IdW-1:0] id;
    logic [SizeW-1:0] bytes;
    logic first;
    logic last;
    logic oldest;
    logic [BlocksW-1:0] blocks;
    logic [2:0] grant_blocks;
  } granted_t;

  // --- Insert, first cycle: hold. Second cycle: check, and store in the queue. ---

  logic demand_valid_q, uplink_valid_q;
  demand_t demand_q;
  logic [3:0] uplink_blocks_q;
  refused_e refused_q, refused_d;
  logic [Ports-1:0] response_full;

  edm_demand_check #(
      .Ports(Ports)
  ) u_check (
      .own_i,
      .valid_i        (demand_valid_q),
      .demand_i       (demand_q),
      .disabled_i     (disabled_now_i),
      .write_full_i,
      .response_full_i(response_full),
      .refused_o      (refused_d),
      .taken_o,
      .withdraws_o,
      .write_o,
      .read_o,
      .withdraw_o
  );
  assign demand_o = demand_q;
  assign refused_o = refused_q;
  assign is_refused_o = refused_d != RefusedNot;
  assign named_o = |withdrawn_i;

  // --- Request: the queue of what all have for this port. ---

  request_t request, request_q;
  granted_t granted, granted_q;
  logic target_free, valid, forgotten, mark;
  // If this grant is not the last one, it is a whole chunk.
  logic [DemandW-1:0] left;
  assign left = request_q.bytes - DemandW'(Chunk);
  assign mark = mark_i && granted_q.valid;

  edm_notification_queue #(
      .Ports (Ports),
      .Active(Active),
      .Fcfs  (Fcfs),
      .TimeW (TimeW)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .own_i,
      .write_i,
      .demand_i         (demands_i),
      .response_i       (read_o),
      .response_demand_i(demand_q),
      .time_i,
      .write_full_o,
      .response_full_o  (response_full),
      .withdraw_i,
      .settles_i,
      .withdrawn_o,
      .read_arrived_i,
      .read_started_i,
      .down_i,
      .source_free_i,
      .valid_o          (valid),
      .class_o          (request.class_id),
      .source_o         (request.source),
      .rank_o           (request.rank),
      .stamp_o          (request.stamp),
      .id_o             (request.id),
      .bytes_o          (request.bytes),
      .extra_o          (request.extra),
      .started_o        (request.started),
      .oldest_o         (request.oldest),
      .mark_i           (mark),
      .mark_forgotten_i (forgotten),
      .mark_class_i     (granted_q.class_id),
      .mark_source_i    (granted_q.source),
      .mark_left_i      (left),
      .mark_last_i      (granted_q.last),
      .mark_oldest_i    (granted_q.oldest),
      .broken_o
  );
  assign request.valid = valid && target_free;
  assign requests_o = request.valid;

  // --- Accept: every source takes the best of its requests. ---

  // The key of a request, the least first: its rank, then how long ago its demand came. That was
  // before now, so keys are in one order even where stamps wrap.
  assign asks_o = request_q.valid;
  assign asked_o = request_q.source;
  assign key_o = {
    request_q.rank, request_q.stamp[StampW-1:PortW] - time_i, request_q.stamp[PortW-1:0]
  };

  logic accepted, accepted_q;
  logic [PortW-1:0] accepted_target, accepted_target_q, order, order_q;
  grant_t chosen, grant_q;
  logic grant_valid_q;

  edm_match_source #(
      .Ports(Ports)
  ) u_source (
      .own_i,
      .source_i  (asked_i),
      .best_i,
      .lowest_i,
      .accepted_o(accepted),
      .target_o  (accepted_target),
      .order_o   (order),
      .grants_i  (made_i),
      .accepted_i(accepted_target_q),
      .grant_o   (chosen)
  );

  edm_match_target #(
      .Ports(Ports),
      .Chunk(Chunk),
      .KeyW (KeyW)
  ) u_target (
      .own_i,
      .asks_i,
      .asked_i,
      .key_i,
      .best_o,
      .lowest_o,
      .class_i       (request_q.class_id),
      .bytes_i       (request_q.bytes),
      .extra_i       (request_q.extra),
      .started_i     (request_q.started),
      .bytes_o       (granted.bytes),
      .first_o       (granted.first),
      .last_o        (granted.last),
      .blocks_o      (granted.blocks),
      .grant_blocks_o(granted.grant_blocks),
      .mark_i        (mark),
      .mark_class_i  (granted_q.class_id),
      .mark_source_i (granted_q.source),
      .mark_first_i  (granted_q.first),
      .disabled_i,
      .forgotten_o   (forgotten),
      .read_started_o
  );
  assign granted.valid = best_o;
  assign granted.class_id = request_q.class_id;
  assign granted.source = request_q.source;
  assign granted.id = request_q.id;
  assign granted.oldest = request_q.oldest;

  // --- Mark: the grant and the timers. The queue is above. ---

  assign made_o = '{
    class_id: granted_q.class_id,
    target: NodeW'(own_i),
    id: granted_q.id,
    bytes: granted_q.bytes,
    first: granted_q.first,
    last: granted_q.last
  };
  assign order_o = order_q;
  assign grant_blocks_o = granted_q.grant_blocks;
  assign grant_valid_o = grant_valid_q;
  assign grant_o = grant_q;

  // Timers of the source and of the target. Bookings since the iteration began: all, and those that a
  // timer has already.
  logic [TimerW-1:0] source_q, source_d, target_q, target_d;
  logic [WindowW-1:0] booked_q, booked_d, counted_q, counted_d;

  assign source_free_o = source_q <= TimerW'(FreeWithin);
  assign target_free = target_q <= TimerW'(FreeWithin);

  edm_port_timer #(
      .Ports      (Ports),
      .TimerW     (TimerW),
      .WindowW    (WindowW),
      .BlockCycles(BlockCycles)
  ) u_timer (
      .own_i,
      .source_i        (source_q),
      .target_i        (target_q),
      .booked_i        (booked_q),
      .counted_i       (counted_q),
      .uplink_i        (uplink_valid_q),
      .uplink_blocks_i (uplink_blocks_q),
      .begin_i,
      .mark_i,
      .source_granted_i(accepted_q),
      .source_target_i (accepted_target_q),
      .target_granted_i(granted_q.valid),
      .target_source_i (granted_q.source),
      .target_blocks_i (granted_q.blocks),
      .free_i,
      .order_i,
      .grant_blocks_i,
      .until_i,
      .free_o,
      .until_o,
      .source_o        (source_d),
      .target_o        (target_d),
      .booked_o        (booked_d),
      .counted_o       (counted_d)
  );

  assign granted_o = granted_q.valid;
  assign granted_source_o = granted_q.source;
  assign accepted_o = accepted_q;
  assign accepted_target_o = accepted_target_q;
  assign busy_o = granted_q.valid && !target_free;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      demand_valid_q <= 1'b0;
      demand_q <= '0;
      uplink_valid_q <= 1'b0;
      uplink_blocks_q <= '0;
      refused_q <= RefusedNot;
      request_q <= '0;
      granted_q <= '0;
      accepted_q <= 1'b0;
      accepted_target_q <= '0;
      order_q <= '0;
      grant_valid_q <= 1'b0;
      grant_q <= '0;
      source_q <= '0;
      target_q <= '0;
      booked_q <= '0;
      counted_q <= '0;
    end else begin
      demand_valid_q <= demand_valid_i;
      demand_q <= demand_i;
      uplink_valid_q <= uplink_valid_i;
      uplink_blocks_q <= uplink_blocks_i;
      refused_q <= refused_d;
      if (request_i) request_q <= request;
      if (accept_i) begin
        granted_q <= granted;
        accepted_q <= accepted;
        accepted_target_q <= accepted_target;
        order_q <= order;
      end
      grant_valid_q <= mark_i && accepted_q;
      if (mark_i) grant_q <= chosen;
      source_q <= source_d;
      target_q <= target_d;
      booked_q <= booked_d;
      counted_q <= counted_d;
    end
  end

endmodule
