// The notification queue of one target port (paper 3.1.2): what all sources have for this target.
//
// Only the oldest demand of a channel competes, so data between two ports stay in order. The target
// requests the best competitor whose source is free: the one with the fewest bytes left, or, with
// `Fcfs`, the oldest.
//
// Latency: an arrival competes in the next cycle. The request is combinational. A mark (what was
// granted) is in effect in the next cycle, and so is a withdrawal: the oldest demand of its channel
// leaves as after its last grant. During an iteration, which may grant it, it stays until the mark.
module edm_notification_queue
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned Active = ActivePerPair,
    parameter bit Fcfs = 1'b0,
    parameter int unsigned TimeW = 32,
    localparam int unsigned PortW = $clog2(Ports),
    localparam int unsigned StampW = TimeW + PortW,
    localparam int unsigned RankW = Fcfs ? 1 : DemandW
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [PortW-1:0] own_i,

    // Arrivals that have passed all checks: a write of each source, and a request of our own port
    // for the data of a source.
    input logic    [Ports-1:0] write_i,
    input demand_t [Ports-1:0] demand_i,
    input logic    [Ports-1:0] response_i,
    input demand_t             response_demand_i,
    input logic    [TimeW-1:0] time_i,
    output logic   [Ports-1:0] write_full_o,
    output logic   [Ports-1:0] response_full_o,

    // Sources that withdraw a demand: the id in `demand_i` names it and its class. A response must
    // have been sent on: before that its source does not know of it. Whether no iteration is under
    // way after this cycle. Sources that named a demand.
    input  logic [Ports-1:0] withdraw_i,
    input  logic             settles_i,
    output logic [Ports-1:0] withdrawn_o,

    // Reads of our port's memory by each source, which hold back that source's later writes.
    input logic [Ports-1:0] read_arrived_i,
    input logic [Ports-1:0] read_started_i,

    // Ports that are out of service: their demands are forgotten.
    input logic [Ports-1:0] down_i,

    // The request of this cycle.
    input  logic [Ports-1:0]   source_free_i,
    output logic               valid_o,
    output class_e             class_o,
    output logic [PortW-1:0]   source_o,
    output logic [RankW-1:0]   rank_o,
    output logic [StampW-1:0]  stamp_o,
    output logic [IdW-1:0]     id_o,
    output logic [DemandW-1:0] bytes_o,
    output logic [BatchW-1:0]  extra_o,     // a write's batch, a response's request blocks
    output logic               started_o,
    output logic               oldest_o,    // nothing that competes is before it

    // What the iteration has granted to this target, what is left of it then, and whether it was
    // forgotten since.
    input logic             mark_i,
    input logic             mark_forgotten_i,
    input class_e           mark_class_i,
    input logic [PortW-1:0] mark_source_i,
    input logic [DemandW-1:0] mark_left_i,
    input logic             mark_last_i,
    input logic             mark_oldest_i,

    // A demand that is not there is granted, or a full channel takes one. It never is: the scheduler
    // asserts that for all its queues.
    output logic broken_o
);
  /* verilator no_inline_module */  // one C++ class for all queues

  localparam int unsigned Channels = 2 * Ports;
  localparam int unsigned ChannelW = PortW + 1;
  localparam int unsigned PassesMax = Active * Ports;
  localparam int unsigned PassesW = $clog2(PassesMax + 1);

  if (Ports < 2 || Ports > 2 ** NodeW) begin : gen_ports
    $error("Ports is %0d: 2 to 512", Ports);
  end
  if (Active < 1 || Active > 255) begin : gen_active
    $error("Active is %0d: 1 to 255", Active);
  end

  logic [PassesW-1:0] passes_q, passes_d;

  // The oldest demand of each channel; anything where there is none.
  logic [Channels-1:0] full, competes, started;
  logic [Channels-1:0][DemandW-1:0] head_bytes;
  logic [Channels-1:0][TimeW-1:0] head_time;
  logic [Channels-1:0][IdW-1:0] head_id;
  logic [Channels-1:0][BatchW-1:0] head_extra;

  // The channel that is granted.
  logic [ChannelW-1:0] marked;
  logic [Channels-1:0] mark;
  assign marked = ChannelW'(mark_source_i) +
      (mark_class_i == ClassResponse ? ChannelW'(Ports) : '0);
  always_comb begin
    mark = '0;
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      mark[ch] = mark_i && !mark_forgotten_i && marked == ChannelW'(ch);
    end
  end

  edm_channels #(
      .Sources(Ports),
      .Active (Active),
      .TimeW  (TimeW)
  ) u_channels (
      .clk_i,
      .rst_ni,
      .write_i,
      .demand_i,
      .response_i,
      .response_demand_i,
      .time_i,
      .withdraw_i,
      .settles_i,
      .withdrawn_o,
      .read_arrived_i,
      .read_started_i,
      .down_i     (down_i | {Ports{down_i[own_i]}}),
      .full_o     (full),
      .competes_o (competes),
      .bytes_o    (head_bytes),
      .time_o     (head_time),
      .id_o       (head_id),
      .extra_o    (head_extra),
      .started_o  (started),
      .mark_i     (mark),
      .mark_last_i,
      .left_i     (mark_left_i),
      .broken_o
  );
  assign write_full_o = full[Ports-1:0];
  assign response_full_o = full[Channels-1:Ports];

  // The competitors. Of demands that came in one cycle, the one of the lower port is older.
  logic [Channels-1:0] eligible;
  logic [Channels-1:0][RankW-1:0] rank;
  logic [Channels-1:0][StampW-1:0] stamp;
  always_comb begin
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      eligible[ch] = competes[ch] && source_free_i[ch%Ports];
      rank[ch] = Fcfs ? '0 : RankW'(head_bytes[ch]);
      stamp[ch] = {head_time[ch], ch < Ports ? PortW'(ch) : own_i};
    end
  end

  logic found;
  logic [ChannelW-1:0] best;
  edm_pick #(
      .Count (Channels),
      .RankW (RankW),
      .StampW(StampW)
  ) u_pick (
      .valid_i(eligible),
      .rank_i (rank),
      .stamp_i(stamp),
      .valid_o(found),
      .index_o(best),
      .rank_o,
      .stamp_o
  );

  // First come, first served: after a full queue's worth of grants past the oldest demand, that one
  // alone may be requested (crates/edm/src/scheduler.rs, "No starvation under FCFS").
  logic may_request;
  if (Fcfs) begin : gen_oldest
    logic any;
    logic [ChannelW-1:0] oldest;
    /* verilator lint_off UNUSEDSIGNAL */  // the oldest alone counts
    logic [RankW-1:0] oldest_rank;
    logic [StampW-1:0] oldest_stamp;
    /* verilator lint_on UNUSEDSIGNAL */
    edm_pick #(
        .Count (Channels),
        .RankW (RankW),
        .StampW(StampW)
    ) u_oldest (
        .valid_i(competes),
        .rank_i (rank),
        .stamp_i(stamp),
        .valid_o(any),
        .index_o(oldest),
        .rank_o (oldest_rank),
        .stamp_o(oldest_stamp)
    );
    assign bytes_o = head_bytes[best];
    assign oldest_o = any && oldest == best;
    assign may_request = oldest_o || passes_q < PassesW'(PassesMax);
  end else begin : gen_any
    assign bytes_o = rank_o;
    assign oldest_o = 1'b1;
    assign may_request = 1'b1;
  end

  assign valid_o = found && may_request;
  assign class_o = best >= ChannelW'(Ports) ? ClassResponse : ClassWrite;
  assign source_o = PortW'(best >= ChannelW'(Ports) ? best - ChannelW'(Ports) : best);
  assign id_o = head_id[best];
  assign extra_o = head_extra[best];
  assign started_o = started[best];

  always_comb begin
    passes_d = passes_q;
    if (mark_i) begin
      passes_d = mark_oldest_i ? '0 : passes_q < PassesW'(PassesMax) ? passes_q + 1'b1 : passes_q;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) passes_q <= '0;
    else passes_q <= passes_d;
  end

endmodule
