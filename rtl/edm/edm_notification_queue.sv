// The notification queue of one target port (paper 3.1.2): what all sources have for this target.
//
// A channel is a source with a class (write or response), and holds up to `Active` demands in order
// of arrival. Only the oldest of a channel competes, so data between two ports stay in order. The
// target requests the best competitor whose source is free: the one with the fewest bytes left, or,
// with `Fcfs`, the oldest. A write waits for the reads of its pair that came before it.
//
// Latency: an arrival competes in the next cycle. `request_o` is combinational. A mark (what was
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

    // Arrivals that have passed all checks: a write of each source, and a request of our own port.
    input logic    [Ports-1:0] write_i,
    input demand_t [Ports-1:0] demand_i,
    input logic                response_i,
    /* verilator lint_off UNUSEDSIGNAL */  // its class is known
    input demand_t             response_demand_i,
    /* verilator lint_on UNUSEDSIGNAL */
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

    // What the iteration has granted to this target, and whether it was forgotten since.
    input logic             mark_i,
    input logic             mark_forgotten_i,
    input class_e           mark_class_i,
    input logic [PortW-1:0] mark_source_i,
    input logic [SizeW-1:0] mark_bytes_i,
    input logic             mark_last_i,
    input logic             mark_oldest_i,

    // A demand that is not there is granted, or a full channel takes one. It never is: the scheduler
    // asserts that for all its queues.
    output logic broken_o
);
  /* verilator no_inline_module */  // one C++ class for all queues

  localparam int unsigned Channels = 2 * Ports;
  localparam int unsigned ChannelW = PortW + 1;
  localparam int unsigned CountW = $clog2(Active + 1);
  localparam int unsigned SlotW = Active > 1 ? $clog2(Active) : 1;
  localparam int unsigned PassesMax = Active * Ports;
  localparam int unsigned PassesW = $clog2(PassesMax + 1);

  if (Ports < 2 || Ports > 2 ** NodeW) begin : gen_ports
    $error("Ports is %0d: 2 to 512", Ports);
  end
  if (Active < 1 || Active > 255) begin : gen_active
    $error("Active is %0d: 1 to 255", Active);
  end

  logic [Channels-1:0][CountW-1:0] count_q, count_d;
  logic [Channels-1:0][SlotW-1:0] head_q, head_d;
  logic [Channels-1:0] started_q, started_d;
  logic [Channels-1:0] withdrawn_q, withdrawn_d;
  // Reads of each source that have not been sent on.
  logic [Ports-1:0][CountW-1:0] reads_q, reads_d;
  logic [PassesW-1:0] passes_q, passes_d;

  // The oldest demand of each channel; zero where there is none.
  logic [Channels-1:0][DemandW-1:0] head_bytes;
  logic [Channels-1:0][StampW-1:0] head_stamp;
  logic [Channels-1:0][IdW-1:0] head_id;
  logic [Channels-1:0][BatchW-1:0] head_extra;
  // Whether a write still waits for reads of its pair.
  logic [Ports-1:0] head_waits;

  // The channel that is granted.
  logic [ChannelW-1:0] marked;
  assign marked = ChannelW'(mark_source_i) +
      (mark_class_i == ClassResponse ? ChannelW'(Ports) : '0);

  // Arrivals by channel, and their places. No functions and no assertions here:
  // then Verilator has one copy of the code for all queues.
  logic [Channels-1:0] arrival;
  logic [Channels-1:0][SlotW-1:0] tail;
  logic overfull;
  assign broken_o = overfull || (mark_i && !mark_forgotten_i && count_q[marked] == 0);
  always_comb begin : arrivals
    logic [CountW:0] sum;
    arrival = '0;
    for (int unsigned s = 0; s < Ports; s++) begin
      arrival[s] = write_i[s];
      arrival[Ports+s] = response_i && response_demand_i.peer == NodeW'(s);
    end
    tail = '0;
    overfull = 1'b0;
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      sum = (CountW + 1)'(head_q[ch]) + (CountW + 1)'(count_q[ch]);
      tail[ch] = SlotW'(sum >= (CountW + 1)'(Active) ? sum - (CountW + 1)'(Active) : sum);
      overfull |= arrival[ch] && count_q[ch] == CountW'(Active);
    end
  end

  always_comb begin
    for (int unsigned s = 0; s < Ports; s++) begin
      write_full_o[s] = count_q[s] == CountW'(Active);
      response_full_o[s] = count_q[Ports+s] == CountW'(Active);
    end
  end

  // The competitors.
  logic [Channels-1:0] competes, eligible;
  logic [Channels-1:0][RankW-1:0] rank;
  logic [Channels-1:0][StampW-1:0] stamp;
  always_comb begin
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      competes[ch] = count_q[ch] != 0;
      if (ch < Ports && head_waits[ch%Ports]) competes[ch] = 1'b0;
      eligible[ch] = competes[ch] && source_free_i[ch%Ports];
      rank[ch] = Fcfs ? '0 : RankW'(head_bytes[ch]);
      stamp[ch] = head_stamp[ch];
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
      .index_o(best)
  );

  // First come, first served: after a full queue's worth of grants past the oldest demand, that one
  // alone may be requested (crates/edm/src/scheduler.rs, "No starvation under FCFS").
  logic may_request;
  if (Fcfs) begin : gen_oldest
    logic any;
    logic [ChannelW-1:0] oldest;
    edm_pick #(
        .Count (Channels),
        .RankW (RankW),
        .StampW(StampW)
    ) u_oldest (
        .valid_i(competes),
        .rank_i (rank),
        .stamp_i(stamp),
        .valid_o(any),
        .index_o(oldest)
    );
    assign oldest_o = any && oldest == best;
    assign may_request = oldest_o || passes_q < PassesW'(PassesMax);
  end else begin : gen_any
    assign oldest_o = 1'b1;
    assign may_request = 1'b1;
  end

  assign valid_o = found && may_request;
  assign class_o = best >= ChannelW'(Ports) ? ClassResponse : ClassWrite;
  assign source_o = PortW'(best >= ChannelW'(Ports) ? best - ChannelW'(Ports) : best);
  assign rank_o = rank[best];
  assign stamp_o = stamp[best];
  assign id_o = head_id[best];
  assign bytes_o = head_bytes[best];
  assign extra_o = head_extra[best];
  assign started_o = started_q[best];

  // Demands that leave: withdrawn, or granted whole.
  logic [Channels-1:0] named, leaves;
  always_comb begin : withdrawals
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      named[ch] = withdraw_i[ch%Ports] && demand_i[ch%Ports].id[IdW-1] == (ch < Ports) &&
          count_q[ch] != 0 && !withdrawn_q[ch] && head_id[ch] == demand_i[ch%Ports].id &&
          (ch < Ports || started_q[ch]);
      leaves[ch] = settles_i && (withdrawn_q[ch] || named[ch]);
      if (mark_i && !mark_forgotten_i && mark_last_i && ChannelW'(ch) == marked) leaves[ch] = 1'b1;
    end
    withdrawn_o = named[Ports-1:0] | named[Channels-1:Ports];
  end

  always_comb begin
    count_d = count_q;
    head_d = head_q;
    started_d = started_q;
    withdrawn_d = withdrawn_q;
    reads_d = reads_q;
    passes_d = passes_q;
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      if (arrival[ch]) count_d[ch] = count_d[ch] + 1'b1;
      if (mark_i && !mark_forgotten_i && ChannelW'(ch) == marked) started_d[ch] = 1'b1;
      if (leaves[ch]) begin
        started_d[ch] = 1'b0;
        count_d[ch] = count_d[ch] - 1'b1;
        head_d[ch] = 32'(head_q[ch]) == Active - 1 ? '0 : head_q[ch] + 1'b1;
      end
      withdrawn_d[ch] = !settles_i && (withdrawn_q[ch] || named[ch]);
    end
    if (mark_i) begin
      passes_d = mark_oldest_i ? '0 : passes_q < PassesW'(PassesMax) ? passes_q + 1'b1 : passes_q;
    end
    for (int unsigned s = 0; s < Ports; s++) begin
      reads_d[s] = reads_q[s] + CountW'(read_arrived_i[s]) - CountW'(read_started_i[s]);
    end
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      if (down_i[ch%Ports] || down_i[own_i]) begin
        count_d[ch] = '0;
        started_d[ch] = 1'b0;
        withdrawn_d[ch] = 1'b0;
        reads_d[ch%Ports] = '0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      head_q <= '0;
      started_q <= '0;
      withdrawn_q <= '0;
      reads_q <= '0;
      passes_q <= '0;
    end else begin
      count_q <= count_d;
      head_q <= head_d;
      started_q <= started_d;
      withdrawn_q <= withdrawn_d;
      reads_q <= reads_d;
      passes_q <= passes_d;
    end
  end

  // The demands themselves, a few words a channel. They need no reset: `count_q` says which are
  // there. Loops over packed words, not a block a channel: with 144 ports there are 288 of them in
  // each of 144 queues.
  logic [Channels-1:0][Active-1:0][DemandW-1:0] bytes_q;
  logic [Channels-1:0][Active-1:0][StampW-1:0] stamp_q;
  logic [Channels-1:0][Active-1:0][IdW-1:0] id_q;
  logic [Channels-1:0][Active-1:0][BatchW-1:0] extra_q;
  // Of each write, how many reads of its pair it still waits for.
  logic [Ports-1:0][Active-1:0][CountW-1:0] behind_q, behind_d;
  // What remains of the granted demand.
  logic charge;
  logic [DemandW-1:0] left;

  assign left = head_bytes[marked] - DemandW'(mark_bytes_i);
  assign charge = mark_i && !mark_forgotten_i && !mark_last_i;

  always_comb begin
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      head_bytes[ch] = '0;
      head_stamp[ch] = '0;
      head_id[ch] = '0;
      head_extra[ch] = '0;
      if (count_q[ch] != 0) begin
        head_bytes[ch] = bytes_q[ch][head_q[ch]];
        head_stamp[ch] = stamp_q[ch][head_q[ch]];
        head_id[ch] = id_q[ch][head_q[ch]];
        head_extra[ch] = extra_q[ch][head_q[ch]];
      end
    end
    for (int unsigned s = 0; s < Ports; s++) head_waits[s] = behind_q[s][head_q[s]] != 0;
  end

  // A comparison for each place, and no index: an index shifts the whole word.
  always_ff @(posedge clk_i) begin
    for (int unsigned s = 0; s < Ports; s++) begin
      if (arrival[s]) begin
        for (int unsigned slot = 0; slot < Active; slot++) begin
          if (SlotW'(slot) == tail[s]) begin
            stamp_q[s][slot] <= {time_i, PortW'(s)};
            id_q[s][slot] <= demand_i[s].id;
            extra_q[s][slot] <= demand_i[s].extra;
          end
        end
      end
      if (arrival[Ports+s]) begin
        for (int unsigned slot = 0; slot < Active; slot++) begin
          if (SlotW'(slot) == tail[Ports+s]) begin
            stamp_q[Ports+s][slot] <= {time_i, own_i};
            id_q[Ports+s][slot] <= response_demand_i.id;
            extra_q[Ports+s][slot] <= response_demand_i.extra;
          end
        end
      end
    end
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      if (arrival[ch] || (charge && marked == ChannelW'(ch))) begin
        for (int unsigned slot = 0; slot < Active; slot++) begin
          if ((arrival[ch] && SlotW'(slot) == tail[ch]) ||
              (charge && marked == ChannelW'(ch) && SlotW'(slot) == head_q[ch])) begin
            bytes_q[ch][slot] <= !(arrival[ch] && SlotW'(slot) == tail[ch]) ? left :
                ch < Ports ? demand_i[ch%Ports].bytes : response_demand_i.bytes;
          end
        end
      end
    end
  end

  always_comb begin
    behind_d = behind_q;
    for (int unsigned s = 0; s < Ports; s++) begin
      for (int unsigned slot = 0; slot < Active; slot++) begin
        if (read_started_i[s] && behind_q[s][slot] != 0) behind_d[s][slot] = behind_q[s][slot] - 1'b1;
      end
      for (int unsigned slot = 0; slot < Active; slot++) begin
        if (arrival[s] && SlotW'(slot) == tail[s]) begin
          behind_d[s][slot] = reads_q[s] - CountW'(read_started_i[s]);
        end
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) behind_q <= '0;
    else behind_q <= behind_d;
  end

endmodule
