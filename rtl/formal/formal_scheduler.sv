// Properties of the scheduler, seen from its ports; `demands` also sees when an iteration is over.
//
//   circuits  no two sources are granted one target in a cycle, none is granted itself
//   chunks    a port has one chunk in flight at most: what is granted before the last chunk is over
//             is granted in the look-ahead, and begins after it
//   demands   a grant is for the oldest demand of its channel, of the bytes that remain, to a chunk;
//             a demand leaves with its last grant, when it is withdrawn, or with a port that dies
//   dead      a dead port gets no grant, but for an iteration under way
//
// The channel that `demands` follows is any: the inputs `watch_*` do not change.
module formal_scheduler
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 2,
    parameter int unsigned Active = 1,
    parameter int unsigned Chunk = 64,
    parameter bit Fcfs = 1'b0,
    parameter int unsigned LookAhead = 0,
    parameter int unsigned BytesMax = 127,
    parameter bit Induct = 1'b0,         // with the invariants of the induction
    // To find a counterexample sooner, demands in three cycles alone: 1 any, 2 writes from one source
    // to two targets, 3 writes from two sources to one target.
    parameter int unsigned Calm = 0,
    localparam int unsigned PortW = $clog2(Ports)
) (
    input logic clk_i,
    input logic    [Ports-1:0] demand_valid_i,
    input demand_t [Ports-1:0] demand_i,
    input logic [Ports-1:0]      uplink_valid_i,
    input logic [Ports-1:0][3:0] uplink_blocks_i,
    input logic [Ports-1:0] down_i,
    input class_e           watch_class_i,
    input logic [PortW-1:0] watch_source_i,
    input logic [PortW-1:0] watch_target_i
);

  localparam int unsigned CountW = $clog2(Active + 1);
  localparam int unsigned TimerW = BlocksW + 3;

  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic [2:0] cycle_q;
  always_ff @(posedge clk_i) cycle_q <= !rst_ni ? 3'd0 : cycle_q == '1 ? cycle_q : cycle_q + 1'b1;

  refused_e [Ports-1:0] refused;
  logic [Ports-1:0] grant_valid;
  grant_t [Ports-1:0] grant;
  logic [31:0] refused_count, withdrawn_count, idle_count;

  edm_scheduler #(
      .Ports    (Ports),
      .Active   (Active),
      .Chunk    (Chunk),
      .Fcfs     (Fcfs),
      .LookAhead(LookAhead),
      .TimeW    (4),
      .TimerW   (TimerW)
  ) dut (
      .clk_i,
      .rst_ni,
      .demand_valid_i,
      .demand_i,
      .refused_o      (refused),
      .uplink_valid_i,
      .uplink_blocks_i,
      .down_i,
      .grant_valid_o  (grant_valid),
      .grant_o        (grant),
      .refused_count_o(refused_count),
      .withdrawn_count_o(withdrawn_count),
      .idle_count_o   (idle_count)
  );

  // --- circuits ---

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      for (int unsigned a = 0; a < Ports; a++) begin
        if (grant_valid[a]) begin
          assert (32'(grant[a].target) < Ports && grant[a].target != NodeW'(a));
          assert (grant[a].bytes != 0 && 32'(grant[a].bytes) <= Chunk);
          for (int unsigned b = 0; b < a; b++) begin
            assert (!grant_valid[b] || grant[a].target != grant[b].target);
          end
        end
      end
    end
  end

  // --- chunks: cycles for which granted chunks still have a port, as a source and as a target ---

  typedef logic [TimerW-1:0] rest_t;
  rest_t [Ports-1:0] source_rest_q, source_rest_d, target_rest_q, target_rest_d;

  always_comb begin
    rest_t start;
    logic [PortW-1:0] t;
    start = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      source_rest_d[p] = source_rest_q[p] == 0 ? '0 : source_rest_q[p] - 1'b1;
      target_rest_d[p] = target_rest_q[p] == 0 ? '0 : target_rest_q[p] - 1'b1;
    end
    for (int unsigned s = 0; s < Ports; s++) begin
      t = PortW'(grant[s].target);
      if (grant_valid[s]) begin
        start = source_rest_q[s] > target_rest_q[t] ? source_rest_q[s] : target_rest_q[t];
        // The least that a chunk takes: a batch takes more.
        source_rest_d[s] = start + rest_t'(chunk_blocks(grant[s].class_id, grant[s].bytes, '0)) - 1'b1;
        target_rest_d[t] = source_rest_d[s];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      source_rest_q <= '0;
      target_rest_q <= '0;
    end else begin
      source_rest_q <= source_rest_d;
      target_rest_q <= target_rest_d;
      for (int unsigned s = 0; s < Ports; s++) begin
        if (grant_valid[s]) begin
          assert (32'(source_rest_q[s]) <= LookAhead);
          assert (32'(target_rest_q[PortW'(grant[s].target)]) <= LookAhead);
        end
      end
    end
  end

  // --- demands: a list of what one channel has been promised ---

  class_e watch_class_q;
  logic [PortW-1:0] watch_source_q, watch_target_q, asker;
  logic [1:0] came_q;
  demand_t [1:0] demand_q;
  logic [CountW-1:0] count_q, count_d;
  logic [Active-1:0][IdW-1:0] id_q, id_d;
  logic [Active-1:0][DemandW-1:0] bytes_q, bytes_d;
  logic started_q, started_d, dead_q;
  logic watched, taken, leaves;
  // A withdrawal comes from the source, and names the oldest demand one cycle later; of a response,
  // if that was sent on. It leaves when no iteration is under way.
  logic withdraws_q, leaving_q, leaving, gone_q;
  logic [IdW-1:0] withdrawn_id, withdrawn_id_q;
  logic withdrawal;
  grant_t seen;

  assign asker = watch_class_i == ClassResponse ? watch_target_i : watch_source_i;
  assign seen = grant[watch_source_i];
  assign watched = grant_valid[watch_source_i] && seen.target == NodeW'(watch_target_i) &&
      seen.class_id == watch_class_i;
  assign withdrawal = demand_valid_i[watch_source_i] &&
      demand_i[watch_source_i].class_id == ClassWrite &&
      demand_i[watch_source_i].bytes == 0 &&
      demand_i[watch_source_i].peer == NodeW'(watch_target_i);
  assign withdrawn_id = demand_i[watch_source_i].id;
  // The answer comes two cycles after the demand.
  assign leaves = (watched && seen.last) || gone_q;
  assign leaving = leaving_q || (withdraws_q && count_d != 0 && withdrawn_id_q == id_d[0] &&
      (watch_class_i == ClassWrite || started_d));
  assign taken = came_q[1] && refused[asker] == RefusedNot;

  always_comb begin
    count_d = count_q;
    id_d = id_q;
    bytes_d = bytes_q;
    started_d = started_q;
    if (watched) begin
      bytes_d[0] = bytes_q[0] - DemandW'(seen.bytes);
      started_d = 1'b1;
    end
    if (leaves) begin
      started_d = 1'b0;
      count_d = count_q - 1'b1;
      for (int unsigned i = 0; i + 1 < Active; i++) begin
        id_d[i] = id_q[i+1];
        bytes_d[i] = bytes_q[i+1];
      end
    end
    if (taken) begin
      for (int unsigned i = 0; i < Active; i++) begin
        if (count_d == CountW'(i)) begin
          id_d[i] = demand_q[1].id;
          bytes_d[i] = demand_q[1].bytes;
        end
      end
      count_d = count_d + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    watch_class_q <= watch_class_i;
    watch_source_q <= watch_source_i;
    watch_target_q <= watch_target_i;
    demand_q <= {demand_q[0], demand_i[asker]};
    assume (32'(watch_source_i) < Ports && 32'(watch_target_i) < Ports);
    assume (watch_source_i != watch_target_i);
    if (Calm != 0) begin
      assume (uplink_valid_i == 0);
      assume ((rst_ni && cycle_q < 3'd3) || (demand_valid_i == 0 && down_i == 0));
    end
    if (Calm > 1) begin
      for (int unsigned p = 0; p < Ports; p++) begin
        assume (demand_valid_i[p] == (rst_ni && (Calm == 2 ? p == 1 && cycle_q < 3'd2 :
            p != 0 && cycle_q == 0)));
        assume (demand_i[p].class_id == ClassWrite && demand_i[p].extra == '0);
        assume (demand_i[p].peer == NodeW'(Calm == 2 && cycle_q != 0 ? 2 : 0));
        assume (demand_i[p].id == '0 && demand_i[p].bytes == DemandW'(BytesMax));
        assume (!down_i[p]);
      end
    end
    // The solver sees three chunks and a bit more.
    for (int unsigned p = 0; p < Ports; p++) assume (demand_i[p].bytes <= DemandW'(BytesMax));
    if (!rst_ni) begin
      came_q <= '0;
      count_q <= '0;
      started_q <= 1'b0;
      dead_q <= 1'b0;
      withdraws_q <= 1'b0;
      leaving_q <= 1'b0;
      gone_q <= 1'b0;
    end else begin
      assume (watch_class_i == watch_class_q);
      assume (watch_source_i == watch_source_q && watch_target_i == watch_target_q);
      withdraws_q <= withdrawal && id_of_write(withdrawn_id) == (watch_class_i == ClassWrite);
      withdrawn_id_q <= withdrawn_id;
      leaving_q <= leaving && !dut.settles;
      gone_q <= leaving && dut.settles;
      came_q <= {came_q[0], demand_valid_i[asker] && demand_i[asker].class_id == watch_class_i &&
          !(demand_i[asker].class_id == ClassWrite && demand_i[asker].bytes == 0) &&
          demand_i[asker].peer ==
          NodeW'(watch_class_i == ClassResponse ? watch_source_i : watch_target_i)};
      count_q <= count_d;
      id_q <= id_d;
      bytes_q <= bytes_d;
      started_q <= started_d;
      dead_q <= dead_q || down_i[watch_source_i] || down_i[watch_target_i];
      if (!dead_q) begin
        assert (!taken || 32'(count_q) - 32'(leaves) < Active);
        if (watched) begin
          assert (count_q != 0);
          assert (seen.id == id_q[0]);
          assert (seen.first == !started_q);
          assert (seen.last == (bytes_q[0] <= DemandW'(Chunk)));
          assert (seen.bytes == (seen.last ? SizeW'(bytes_q[0]) : SizeW'(Chunk)));
        end
      end
    end
  end

  // --- dead ---

  logic [Ports-1:0][4:0] down_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < Ports; p++) begin
      if (!rst_ni) begin
        down_q[p] <= '0;
      end else begin
        down_q[p] <= {down_q[p][3:0], down_q[p][0] || down_i[p]};
        assert (!down_q[p][4] || !grant_valid[p]);
        for (int unsigned s = 0; s < Ports; s++) begin
          assert (!down_q[p][4] || !grant_valid[s] || grant[s].target != NodeW'(p));
        end
      end
    end
  end

  // --- Invariants, for the induction: what the gates hold is what the lists above hold. ---

  if (Induct) begin : gen_invariants

  logic [1:0] phase;
  assign phase = dut.phase_q;
  localparam logic [1:0] Request = 2'd0, Accept = 2'd1, Mark = 2'd2;

  // What each port holds.
  typedef struct packed {
    logic valid;
    class_e class_id;
    logic [PortW-1:0] source;
    logic [(Fcfs ? 1 : DemandW)-1:0] rank;
    logic [4+PortW-1:0] stamp;
    logic [IdW-1:0] id;
    logic [DemandW-1:0] bytes;
    logic [BatchW-1:0] extra;
    logic started;
    logic oldest;
  } request_t;
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
  request_t [Ports-1:0] request_q;
  granted_t [Ports-1:0] granted_q;
  logic [Ports-1:0] accepted_q, held_valid;
  logic [Ports-1:0][PortW-1:0] accepted_target_q;
  demand_t [Ports-1:0] held;
  rest_t [Ports-1:0] source_q, target_q;
  logic [Ports-1:0][5:0] booked_q, counted_q;
  for (genvar p = 0; p < Ports; p++) begin : gen_held
    assign request_q[p] = dut.u_ports.gen_port[p].u_port.request_q;
    assign granted_q[p] = dut.u_ports.gen_port[p].u_port.granted_q;
    assign accepted_q[p] = dut.u_ports.gen_port[p].u_port.accepted_q;
    assign accepted_target_q[p] = dut.u_ports.gen_port[p].u_port.accepted_target_q;
    assign held_valid[p] = dut.u_ports.gen_port[p].u_port.demand_valid_q;
    assign held[p] = dut.u_ports.gen_port[p].u_port.demand_q;
    assign source_q[p] = dut.u_ports.gen_port[p].u_port.source_q;
    assign target_q[p] = dut.u_ports.gen_port[p].u_port.target_q;
    assign booked_q[p] = dut.u_ports.gen_port[p].u_port.booked_q;
    assign counted_q[p] = dut.u_ports.gen_port[p].u_port.counted_q;
  end

  // What the timers hold, without what has been booked since the iteration began.
  rest_t [Ports-1:0] source_timer, target_timer;
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      source_timer[p] = rest_t'(source_q[p]);
      source_timer[p] = source_timer[p] <= rest_t'(counted_q[p]) ? '0 :
          source_timer[p] - rest_t'(counted_q[p]) - 1'b1;
      target_timer[p] = target_q[p] == 0 ? '0 :
          rest_t'(target_q[p]) - 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    // No timer has reached its top: a port that has booked so much is no port of these proofs.
    for (int unsigned p = 0; p < Ports; p++) begin
      assume (!(&source_q[p][TimerW-1-:2]) && !(&target_q[p][TimerW-1-:2]));
    end
    if (rst_ni) begin
      assert (phase <= Mark);
      assert (phase == Request || grant_valid == 0);
      for (int unsigned p = 0; p < Ports; p++) begin
        assert (source_rest_d[p] <= source_timer[p] && target_rest_d[p] <= target_timer[p]);
        assert (32'(counted_q[p]) <= (phase == Request ? 0 : phase == Accept ? 15 : 30));
        assert (32'(booked_q[p]) <= (phase == Request ? 0 : phase == Accept ? 15 : 30));
        if (phase == Accept && request_q[p].valid) begin
          assert (32'(request_q[p].source) < Ports);
          assert (32'(target_rest_q[p]) <= LookAhead + 2);
          assert (32'(source_rest_q[request_q[p].source]) <= LookAhead + 2);
          assert (!down_q[p][2] && !down_q[request_q[p].source][2]);
          assert (32'(target_q[p]) <= LookAhead + 2);
        end
        if (phase == Mark && granted_q[p].valid) begin
          assert (32'(target_rest_q[p]) <= LookAhead + 1);
          assert (32'(source_rest_q[granted_q[p].source]) <= LookAhead + 1);
          assert (!down_q[p][3] && !down_q[granted_q[p].source][3]);
          assert (32'(target_q[p]) <= LookAhead + 1);
          assert (32'(granted_q[p].source) < Ports && granted_q[p].source != PortW'(p));
          assert (granted_q[p].bytes != 0 && 32'(granted_q[p].bytes) <= Chunk);
          assert (granted_q[p].blocks >=
                  chunk_blocks(granted_q[p].class_id, granted_q[p].bytes, '0));
          assert (accepted_q[granted_q[p].source]);
          assert (accepted_target_q[granted_q[p].source] == PortW'(p));
        end
        if (phase == Mark && accepted_q[p]) begin
          assert (granted_q[accepted_target_q[p]].valid);
          assert (granted_q[accepted_target_q[p]].source == PortW'(p));
        end
        // A dead port has said so, and has nothing in its queues.
        assert (!down_q[p][0] || dut.disabled_q[p] || dut.down_q[p]);
        assert (!down_q[p][1] || dut.disabled_q[p]);
        assert ((down_q[p] & (down_q[p] + 1'b1)) == 0);
      end
    end
  end

  for (genvar t = 0; t < Ports; t++) begin : gen_target
    for (genvar ch = 0; ch < 2 * Ports; ch++) begin : gen_channel
      localparam int unsigned Source = ch % Ports;
      localparam class_e Class = ch < Ports ? ClassWrite : ClassResponse;
      logic [CountW-1:0] count;
      logic [Active-1:0][DemandW-1:0] bytes;
      logic [Active-1:0][IdW-1:0] id;
      logic started, withdrawn, alive;
      assign count = dut.u_ports.gen_port[t].u_port.u_queue.u_channels.count_q[ch];
      assign started = dut.u_ports.gen_port[t].u_port.u_queue.u_channels.started_q[ch];
      assign withdrawn = dut.u_ports.gen_port[t].u_port.u_queue.u_channels.withdrawn_q[ch];
      assign alive = !dut.disabled_q[t] && !dut.disabled_q[Source];
      // The oldest is in the first place.
      assign bytes = dut.u_ports.gen_port[t].u_port.u_queue.u_channels.bytes_q[ch];
      assign id = dut.u_ports.gen_port[t].u_port.u_queue.u_channels.id_q[ch];

      always_ff @(posedge clk_i) begin
        if (rst_ni) begin
          assert (32'(count) <= Active);
          assert (count == 0 || (alive && t != Source));
          assert (count != 0 || (!started && !withdrawn));
          assert (!withdrawn || (phase != Request && (Class == ClassWrite || started)));
          for (int unsigned i = 0; i < Active; i++) begin
            assert (32'(count) <= i || bytes[i] != 0);
          end
          // What is requested and granted is still there.
          if (phase == Accept && request_q[t].valid && request_q[t].class_id == Class &&
              32'(request_q[t].source) == Source && alive) begin
            assert (count != 0 && t != Source);
            assert (request_q[t].bytes == bytes[0] && request_q[t].id == id[0]);
            assert (request_q[t].started == started);
          end
          if (phase == Accept && request_q[t].valid && 32'(request_q[t].source) == Source) begin
            assert (t != Source && request_q[t].bytes != 0);
          end
          if (phase == Mark && granted_q[t].valid && granted_q[t].class_id == Class &&
              32'(granted_q[t].source) == Source && alive) begin
            assert (count != 0 && granted_q[t].id == id[0] && request_q[t].bytes == bytes[0]);
            assert (granted_q[t].first == !started);
            assert (granted_q[t].last == (bytes[0] <= DemandW'(Chunk)));
            assert (granted_q[t].bytes == (granted_q[t].last ? SizeW'(bytes[0]) : SizeW'(Chunk)));
          end
          if (!dead_q && t == 32'(watch_target_i) && Source == 32'(watch_source_i) &&
              Class == watch_class_i) begin
            assert (count_d == count && started_d == started && leaving_q == withdrawn);
            for (int unsigned i = 0; i < Active; i++) begin
              assert (32'(count) <= i || (id_d[i] == id[i] && bytes_d[i] == bytes[i]));
            end
          end
        end
      end
    end
  end

  // What the insertion holds is what was on the ports.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (withdraws_q == (dut.withdraws[watch_source_i] &&
              held[watch_source_i].peer == NodeW'(watch_target_i) &&
              id_of_write(held[watch_source_i].id) == (watch_class_i == ClassWrite)));
      assert (!withdraws_q || withdrawn_id_q == held[watch_source_i].id);
      assert (came_q[0] == (held_valid[asker] && !dut.withdraws[asker] &&
              held[asker].class_id == watch_class_i && held[asker].peer ==
              NodeW'(watch_class_i == ClassResponse ? watch_source_i : watch_target_i)));
      assert (!came_q[0] || demand_q[0] == held[asker]);
      if (!dead_q) assert (!dut.disabled_q[watch_source_i] && !dut.disabled_q[watch_target_i]);
      if (!dead_q) assert (!dut.down_q[watch_source_i] && !dut.down_q[watch_target_i]);
    end
  end

  end

endmodule
