// The matching scheduler of the switch: priority PIM over one notification queue a target port
// (paper 3.1.1 and 3.1.2).
//
// Latency in cycles:
//   insert     2   `demand_i` to the notification queue: check, then store
//   iteration  3   request, accept, mark; then `grant_o` is valid for one cycle
// An iteration begins in the cycle in which some free target can request a free source. One that
// would request nothing does not begin.
//
//   request    every free target requests the free source of its best demand
//   accept     every source takes the best of its requests
//   mark       both ports are marked busy, and the demand is charged
//
// A write of zero bytes is no demand: it withdraws the one that port, peer and id name, if that is
// the oldest of its channel (docs/decisions/edm-withdrawals.md). One that names none is counted as
// idle.
//
// A slot of a full channel is free when the mark is done. A demand that comes in the three cycles
// before is refused, and counted.
module edm_scheduler
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
    localparam int unsigned PortW = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,

    // Demands, at most one a port and cycle; the answer comes two cycles later.
    input  logic     [Ports-1:0] demand_valid_i,
    input  demand_t  [Ports-1:0] demand_i,
    output refused_e [Ports-1:0] refused_o,

    // Blocks that a port has put on its uplink besides chunks: /N/, RREQ, RMWREQ.
    input logic [Ports-1:0]      uplink_valid_i,
    input logic [Ports-1:0][3:0] uplink_blocks_i,

    // Ports whose link is dead: a pulse is enough.
    input logic [Ports-1:0] down_i,

    // Grants, by source port.
    output logic   [Ports-1:0] grant_valid_o,
    output grant_t [Ports-1:0] grant_o,

    // Demands refused so far, and withdrawn, and withdrawals that named none.
    output logic [31:0] refused_count_o,
    output logic [31:0] withdrawn_count_o,
    output logic [31:0] idle_count_o
);

  localparam int unsigned StampW = TimeW + PortW;
  localparam int unsigned RankW = Fcfs ? 1 : DemandW;
  localparam int unsigned IterationCycles = 3;

  if (Ports < 2 || Ports > 2 ** NodeW) begin : gen_ports
    $error("Ports is %0d: 2 to 512", Ports);
  end
  if (Chunk < 1 || Chunk > 65535) begin : gen_chunk
    $error("Chunk is %0d: 1 to 65535 bytes", Chunk);
  end

  typedef enum logic [1:0] {
    Request,
    Accept,
    Mark
  } phase_e;

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

  logic [Ports-1:0] demand_valid_q;
  demand_t [Ports-1:0] demand_q;
  logic [Ports-1:0] uplink_valid_q;
  logic [Ports-1:0][3:0] uplink_blocks_q;
  logic [Ports-1:0] down_q;
  logic [Ports-1:0] disabled_q, disabled_d;
  logic [TimeW-1:0] time_q, time_d;
  refused_e [Ports-1:0] refused_q, refused_d;
  logic [31:0] refused_count_q, refused_count_d;

  logic [Ports-1:0][Ports-1:0] write_full, response_full;  // by target, then source
  logic [Ports-1:0][Ports-1:0] writes, reads, withdrawals;  // by port, then peer
  logic [Ports-1:0] taken, withdraws, named, refused;
  logic [31:0] withdrawn_count_q, withdrawn_count_d, idle_count_q, idle_count_d;
  logic [Ports-1:0][Ports-1:0] withdrawn;  // by target, then source

  for (genvar p = 0; p < Ports; p++) begin : gen_check
    logic [Ports-1:0] full;
    always_comb begin
      for (int unsigned t = 0; t < Ports; t++) full[t] = write_full[t][p];
    end

    edm_demand_check #(
        .Ports(Ports)
    ) u_check (
        .own_i          (PortW'(p)),
        .valid_i        (demand_valid_q[p]),
        .demand_i       (demand_q[p]),
        .disabled_i     (disabled_d),
        .write_full_i   (full),
        .response_full_i(response_full[p]),
        .refused_o      (refused_d[p]),
        .taken_o        (taken[p]),
        .withdraws_o    (withdraws[p]),
        .write_o        (writes[p]),
        .read_o         (reads[p]),
        .withdraw_o     (withdrawals[p])
    );
  end

  // A counter stays where it is near its top.
  function automatic logic [31:0] counted(input logic [31:0] count, input logic [Ports-1:0] more);
    return count[31:NodeW+1] == '1 ? count : count + 32'($countones(more));
  endfunction

  always_comb begin
    disabled_d = disabled_q | down_q;
    // Only the order of arrivals counts.
    time_d = |taken ? time_q + 1'b1 : time_q;
    named = '0;
    for (int unsigned t = 0; t < Ports; t++) named |= withdrawn[t];
    for (int unsigned p = 0; p < Ports; p++) refused[p] = refused_d[p] != RefusedNot;
    refused_count_d = counted(refused_count_q, refused);
    withdrawn_count_d = counted(withdrawn_count_q, named);
    idle_count_d = counted(idle_count_q, withdraws & ~named);
  end

  assign refused_o = refused_q;
  assign refused_count_o = refused_count_q;
  assign withdrawn_count_o = withdrawn_count_q;
  assign idle_count_o = idle_count_q;

  // --- Request: one queue a target. ---

  phase_e phase_q, phase_d;
  request_t [Ports-1:0] queue_request;
  request_t [Ports-1:0] request_q, request_d;
  granted_t [Ports-1:0] granted_q, granted_d;
  logic [Ports-1:0] source_free, target_free;
  logic mark, begins, settles;

  assign mark = phase_q == Mark;
  always_comb begin
    begins = 1'b0;
    for (int unsigned t = 0; t < Ports; t++) begins |= queue_request[t].valid;
  end
  // After this cycle no iteration is under way.
  assign settles = mark || (phase_q == Request && !begins);

  logic [Ports-1:0][Ports-1:0] started;  // by target, then memory node
  logic [Ports-1:0] forgotten;
  logic [Ports-1:0] broken;
  for (genvar t = 0; t < Ports; t++) begin : gen_queue
    logic [Ports-1:0] write, withdraw, read_arrived, read_started;
    always_comb begin
      for (int unsigned p = 0; p < Ports; p++) begin
        write[p] = writes[p][t];
        withdraw[p] = withdrawals[p][t];
        read_arrived[p] = reads[p][t];
      end
    end
    always_comb begin
      for (int unsigned p = 0; p < Ports; p++) read_started[p] = started[p][t];
    end

    // If this grant is not the last one, it is a whole chunk.
    logic [DemandW-1:0] left;
    assign left = request_q[t].bytes - DemandW'(Chunk);

    logic valid;
    edm_notification_queue #(
        .Ports (Ports),
        .Active(Active),
        .Fcfs  (Fcfs),
        .TimeW (TimeW)
    ) u_queue (
        .clk_i,
        .rst_ni,
        .own_i            (PortW'(t)),
        .write_i          (write),
        .demand_i         (demand_q),
        .response_i       (reads[t]),
        .response_demand_i(demand_q[t]),
        .time_i           (time_q),
        .write_full_o     (write_full[t]),
        .response_full_o  (response_full[t]),
        .withdraw_i       (withdraw),
        .settles_i        (settles),
        .withdrawn_o      (withdrawn[t]),
        .read_arrived_i   (read_arrived),
        .read_started_i   (read_started),
        .down_i           (down_q),
        .source_free_i    (source_free),
        .valid_o          (valid),
        .class_o          (queue_request[t].class_id),
        .source_o         (queue_request[t].source),
        .rank_o           (queue_request[t].rank),
        .stamp_o          (queue_request[t].stamp),
        .id_o             (queue_request[t].id),
        .bytes_o          (queue_request[t].bytes),
        .extra_o          (queue_request[t].extra),
        .started_o        (queue_request[t].started),
        .oldest_o         (queue_request[t].oldest),
        .mark_i           (mark && granted_q[t].valid),
        .mark_forgotten_i (forgotten[t]),
        .mark_class_i     (granted_q[t].class_id),
        .mark_source_i    (granted_q[t].source),
        .mark_left_i      (left),
        .mark_last_i      (granted_q[t].last),
        .mark_oldest_i    (granted_q[t].oldest),
        .broken_o         (broken[t])
    );
    assign queue_request[t].valid = valid && target_free[t];
  end

  // --- Accept: every source takes the best of its requests. ---

  // The key of a request, the least first: its rank, then how long ago its demand came. That was
  // before now, so keys are in one order even where stamps wrap.
  localparam int unsigned KeyW = RankW + StampW;

  logic [Ports-1:0] accepted;
  logic [Ports-1:0][PortW-1:0] accepted_target, order;
  logic [Ports-1:0] accepted_q, accepted_d;
  logic [Ports-1:0][PortW-1:0] accepted_target_q, accepted_target_d;
  logic [Ports-1:0][PortW-1:0] order_q, order_d;

  logic [Ports-1:0] request_valid, best, lowest;
  logic [Ports-1:0][PortW-1:0] request_source;
  logic [Ports-1:0][KeyW-1:0] key;
  // What the targets are granted, and whom the sources have.
  grant_t [Ports-1:0] made, chosen;
  granted_t [Ports-1:0] next_granted;
  always_comb begin
    for (int unsigned t = 0; t < Ports; t++) begin
      request_valid[t] = request_q[t].valid;
      request_source[t] = request_q[t].source;
      key[t] = {
        request_q[t].rank,
        request_q[t].stamp[StampW-1:PortW] - time_q,
        request_q[t].stamp[PortW-1:0]
      };
      made[t].class_id = granted_q[t].class_id;
      made[t].target = NodeW'(t);
      made[t].id = granted_q[t].id;
      made[t].bytes = granted_q[t].bytes;
      made[t].first = granted_q[t].first;
      made[t].last = granted_q[t].last;
    end
  end

  for (genvar p = 0; p < Ports; p++) begin : gen_match
    edm_match_source #(
        .Ports(Ports)
    ) u_source (
        .own_i     (PortW'(p)),
        .source_i  (request_source),
        .best_i    (best),
        .lowest_i  (lowest),
        .accepted_o(accepted[p]),
        .target_o  (accepted_target[p]),
        .order_o   (order[p]),
        .grants_i  (made),
        .accepted_i(accepted_target_q[p]),
        .grant_o   (chosen[p])
    );

    edm_match_target #(
        .Ports(Ports),
        .Chunk(Chunk),
        .KeyW (KeyW)
    ) u_target (
        .own_i         (PortW'(p)),
        .asks_i        (request_valid),
        .asked_i       (request_source),
        .key_i         (key),
        .best_o        (best[p]),
        .lowest_o      (lowest[p]),
        .class_i       (request_q[p].class_id),
        .bytes_i       (request_q[p].bytes),
        .extra_i       (request_q[p].extra),
        .started_i     (request_q[p].started),
        .bytes_o       (next_granted[p].bytes),
        .first_o       (next_granted[p].first),
        .last_o        (next_granted[p].last),
        .blocks_o      (next_granted[p].blocks),
        .grant_blocks_o(next_granted[p].grant_blocks),
        .mark_i        (mark && granted_q[p].valid),
        .mark_class_i  (granted_q[p].class_id),
        .mark_source_i (granted_q[p].source),
        .mark_first_i  (granted_q[p].first),
        .disabled_i    (disabled_q),
        .forgotten_o   (forgotten[p]),
        .read_started_o(started[p])
    );
    assign next_granted[p].valid = best[p];
    assign next_granted[p].class_id = request_q[p].class_id;
    assign next_granted[p].source = request_q[p].source;
    assign next_granted[p].id = request_q[p].id;
    assign next_granted[p].oldest = request_q[p].oldest;
  end

  always_comb begin
    phase_d = phase_q;
    request_d = request_q;
    granted_d = granted_q;
    accepted_d = accepted_q;
    accepted_target_d = accepted_target_q;
    order_d = order_q;
    unique case (phase_q)
      Request: begin
        request_d = queue_request;
        if (begins) phase_d = Accept;
      end
      Accept: begin
        phase_d = Mark;
        accepted_d = accepted;
        accepted_target_d = accepted_target;
        order_d = order;
        granted_d = next_granted;
      end
      default: phase_d = Request;
    endcase
  end

  // --- Mark: the timers, the queues (above) and the outputs. ---

  logic [Ports-1:0] target_granted;
  logic [Ports-1:0][PortW-1:0] target_source;
  logic [Ports-1:0][BlocksW-1:0] target_blocks;
  logic [Ports-1:0][2:0] target_grant_blocks;
  logic [Ports-1:0] grant_valid_q, grant_valid_d;
  grant_t [Ports-1:0] grant_q, grant_d;

  always_comb begin
    for (int unsigned t = 0; t < Ports; t++) begin
      target_granted[t] = granted_q[t].valid;
      target_source[t] = granted_q[t].source;
      target_blocks[t] = granted_q[t].blocks;
      target_grant_blocks[t] = granted_q[t].grant_blocks;
    end
    grant_d = mark ? chosen : grant_q;
    grant_valid_d = mark ? accepted_q : '0;
  end

  edm_port_timers #(
      .Ports      (Ports),
      .TimerW     (TimerW),
      .BlockCycles(BlockCycles),
      .FreeWithin (IterationCycles + LookAhead)
  ) u_timers (
      .clk_i,
      .rst_ni,
      .source_free_o        (source_free),
      .target_free_o        (target_free),
      .uplink_i             (uplink_valid_q),
      .uplink_blocks_i      (uplink_blocks_q),
      .begin_i              (phase_q != Request || phase_d == Accept),
      .mark_i               (mark),
      .source_granted_i     (accepted_q),
      .source_target_i      (accepted_target_q),
      .source_order_i       (order_q),
      .target_granted_i     (target_granted),
      .target_source_i      (target_source),
      .target_blocks_i      (target_blocks),
      .target_grant_blocks_i(target_grant_blocks)
  );

  assign grant_valid_o = grant_valid_q;
  assign grant_o = grant_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      demand_valid_q <= '0;
      demand_q <= '0;
      uplink_valid_q <= '0;
      uplink_blocks_q <= '0;
      down_q <= '0;
      disabled_q <= '0;
      time_q <= '0;
      refused_q <= '0;
      refused_count_q <= '0;
      withdrawn_count_q <= '0;
      idle_count_q <= '0;
      phase_q <= Request;
      for (int unsigned t = 0; t < Ports; t++) begin
        request_q[t] <= '0;
        granted_q[t] <= '0;
      end
      accepted_q <= '0;
      accepted_target_q <= '0;
      order_q <= '0;
      grant_valid_q <= '0;
      grant_q <= '0;
    end else begin
      demand_valid_q <= demand_valid_i;
      demand_q <= demand_i;
      uplink_valid_q <= uplink_valid_i;
      uplink_blocks_q <= uplink_blocks_i;
      down_q <= down_i;
      disabled_q <= disabled_d;
      time_q <= time_d;
      refused_q <= refused_d;
      refused_count_q <= refused_count_d;
      withdrawn_count_q <= withdrawn_count_d;
      idle_count_q <= idle_count_d;
      phase_q <= phase_d;
      request_q <= request_d;
      granted_q <= granted_d;
      accepted_q <= accepted_d;
      accepted_target_q <= accepted_target_d;
      order_q <= order_d;
      grant_valid_q <= grant_valid_d;
      grant_q <= grant_d;

      assert (broken == '0);
      // One circuit a port: what a source has accepted, its target has been granted, and no two
      // targets are granted one source.
      if (mark) begin
        for (int unsigned t = 0; t < Ports; t++) begin
          if (granted_q[t].valid) begin
            assert (accepted_q[granted_q[t].source]);
            assert (accepted_target_q[granted_q[t].source] == PortW'(t));
          end
        end
      end
    end
  end

endmodule
