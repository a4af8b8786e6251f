// For how long each port is busy, as a source and as a target (paper 3.1.1, step 7).
//
// A grant of l bytes makes both ports busy for l/B from the moment of the grant. The grant itself
// takes its blocks on the source's downlink, and what a busy source sends besides its chunks pushes
// back what it was granted. Timers count down, one a cycle, to zero, and saturate at the top.
//
// Grants that are marked together are booked in the order of the lowest target that asked the
// source, as crates/edm does: a port's grant block is before or after the chunk that it receives.
//
// Latency: a mark or a booking is in effect in the next cycle.
module edm_port_timers
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned TimerW = 24,
    parameter int unsigned BlockCycles = 1,
    parameter int unsigned FreeWithin = 6,
    localparam int unsigned PortW = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,

    output logic [Ports-1:0] source_free_o,
    output logic [Ports-1:0] target_free_o,

    // Blocks that a port has put on its uplink besides chunks.
    input logic [Ports-1:0]      uplink_i,
    input logic [Ports-1:0][3:0] uplink_blocks_i,

    // An iteration has begun in this or an earlier cycle and is not marked yet.
    input logic begin_i,
    // Its grants, in the cycle in which they are marked: by source and by target.
    input logic                          mark_i,
    input logic [Ports-1:0]              source_granted_i,
    input logic [Ports-1:0][PortW-1:0]   source_target_i,
    input logic [Ports-1:0][PortW-1:0]   source_order_i,
    input logic [Ports-1:0]              target_granted_i,
    input logic [Ports-1:0][PortW-1:0]   target_source_i,
    input logic [Ports-1:0][BlocksW-1:0] target_blocks_i,
    input logic [Ports-1:0][2:0]         target_grant_blocks_i
);

  // Three cycles of bookings of up to 15 blocks.
  localparam int unsigned WindowW = 6;

  if (TimerW < BlocksW + 2 + $clog2(BlockCycles + 1)) begin : gen_timer
    $error("TimerW is %0d: too narrow for a chunk", TimerW);
  end

  typedef logic [TimerW-1:0] timer_t;

  function automatic timer_t plus(input timer_t a, input timer_t b);
    logic [TimerW:0] sum;
    sum = {1'b0, a} + {1'b0, b};
    return sum[TimerW] ? '1 : sum[TimerW-1:0];
  endfunction

  function automatic timer_t minus(input timer_t a, input timer_t b);
    return a > b ? a - b : '0;
  endfunction

  timer_t [Ports-1:0] source_q, source_d;
  timer_t [Ports-1:0] target_q, target_d;
  // Bookings since the iteration began: all, and those that a timer has already.
  logic [Ports-1:0][WindowW-1:0] booked_q, booked_d;
  logic [Ports-1:0][WindowW-1:0] counted_q, counted_d;

  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      source_free_o[p] = source_q[p] <= timer_t'(FreeWithin);
      target_free_o[p] = target_q[p] <= timer_t'(FreeWithin);
    end
  end

  always_comb begin : next
    timer_t [Ports-1:0] until_free;
    logic [Ports-1:0] own_before;
    timer_t [Ports-1:0] own_grant;
    timer_t from_source, from_target;
    logic [WindowW-1:0] uplink;
    logic [Ports-1:0][WindowW-1:0] booked;

    for (int unsigned p = 0; p < Ports; p++) begin
      uplink = uplink_i[p] ? WindowW'(uplink_blocks_i[p]) : '0;
      booked[p] = booked_q[p] + uplink;
      booked_d[p] = begin_i && !mark_i ? booked[p] : '0;
      counted_d[p] = counted_q[p];
      source_d[p] = minus(source_q[p], timer_t'(1));
      if (source_q[p] != 0) begin
        source_d[p] = minus(plus(source_q[p], timer_t'(uplink) * timer_t'(BlockCycles)), timer_t'(1));
        counted_d[p] = counted_q[p] + uplink;
      end
      if (!begin_i || mark_i) counted_d[p] = '0;
      target_d[p] = minus(target_q[p], timer_t'(1));
    end

    until_free = '0;
    own_before = '0;
    own_grant = '0;
    from_source = '0;
    from_target = '0;
    if (mark_i) begin
      for (int unsigned t = 0; t < Ports; t++) begin
        if (source_granted_i[t]) begin
          own_grant[t] =
              timer_t'(target_grant_blocks_i[source_target_i[t]]) * timer_t'(BlockCycles);
          own_before[t] = source_order_i[t] < source_order_i[target_source_i[t]];
        end
        if (target_granted_i[t]) begin
          from_source = minus(
              minus(source_q[target_source_i[t]],
                    timer_t'(counted_q[target_source_i[t]]) * timer_t'(BlockCycles)),
              timer_t'(1));
          from_target = plus(target_d[t], own_before[t] ? own_grant[t] : '0);
          until_free[t] = plus(from_source > from_target ? from_source : from_target,
                               timer_t'(target_blocks_i[t]) * timer_t'(BlockCycles));
          target_d[t] = plus(until_free[t], own_before[t] ? '0 : own_grant[t]);
        end else begin
          target_d[t] = plus(target_d[t], own_grant[t]);
        end
      end
      for (int unsigned s = 0; s < Ports; s++) begin
        if (source_granted_i[s]) begin
          source_d[s] = plus(until_free[source_target_i[s]],
                             timer_t'(booked[s]) * timer_t'(BlockCycles));
        end
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      source_q <= '0;
      target_q <= '0;
      booked_q <= '0;
      counted_q <= '0;
    end else begin
      source_q <= source_d;
      target_q <= target_d;
      booked_q <= booked_d;
      counted_q <= counted_d;
      // A circuit opens only between ports that are free when the grant is made, or soon after.
      if (mark_i) begin
        for (int unsigned t = 0; t < Ports; t++) begin
          assert (!target_granted_i[t] || target_q[t] <= timer_t'(FreeWithin));
        end
      end
    end
  end

endmodule
