// The next values of the timers of one port. Latency: none, combinational.
module edm_port_timer
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned TimerW = 24,
    parameter int unsigned WindowW = 6,
    parameter int unsigned BlockCycles = 1,
    localparam int unsigned PortW = $clog2(Ports)
) (
    input logic [PortW-1:0] own_i,

    // The port's timers, its blocks on the uplink, and whether an iteration is under way.
    input logic [TimerW-1:0]  source_i,
    input logic [TimerW-1:0]  target_i,
    input logic [WindowW-1:0] booked_i,
    input logic [WindowW-1:0] counted_i,
    input logic               uplink_i,
    input logic [3:0]         uplink_blocks_i,
    input logic               begin_i,
    input logic               mark_i,

    // Its grants, as a source and as a target.
    input logic               source_granted_i,
    input logic [PortW-1:0]   source_target_i,
    input logic               target_granted_i,
    input logic [PortW-1:0]   target_source_i,
    input logic [BlocksW-1:0] target_blocks_i,

    // Of all ports: when a source is free without what was booked since the iteration began, the
    // order of grants, the blocks of a grant itself, and when a target is free.
    input logic [Ports-1:0][TimerW-1:0] free_i,
    input logic [Ports-1:0][PortW-1:0]  order_i,
    input logic [Ports-1:0][2:0]        grant_blocks_i,
    input logic [Ports-1:0][TimerW-1:0] until_i,

    output logic [TimerW-1:0]  free_o,
    output logic [TimerW-1:0]  until_o,
    output logic [TimerW-1:0]  source_o,
    output logic [TimerW-1:0]  target_o,
    output logic [WindowW-1:0] booked_o,
    output logic [WindowW-1:0] counted_o
);
  /* verilator inline_module */

  typedef logic [TimerW-1:0] timer_t;

  function automatic timer_t plus(input timer_t a, input timer_t b);
    logic [TimerW:0] sum;
    sum = {1'b0, a} + {1'b0, b};
    return sum[TimerW] ? '1 : sum[TimerW-1:0];
  endfunction

  function automatic timer_t minus(input timer_t a, input timer_t b);
    logic [TimerW:0] difference;
    difference = {1'b0, a} - {1'b0, b};
    return difference[TimerW] ? '0 : difference[TimerW-1:0];
  endfunction

  logic [WindowW-1:0] uplink, booked;
  assign uplink = uplink_i ? WindowW'(uplink_blocks_i) : '0;
  assign booked = booked_i + uplink;

  always_comb begin
    booked_o = begin_i && !mark_i ? booked : '0;
    counted_o = source_i != 0 ? counted_i + uplink : counted_i;
    if (!begin_i || mark_i) counted_o = '0;
    free_o = minus(source_i, timer_t'(counted_i) * timer_t'(BlockCycles) + timer_t'(1));
  end

  always_comb begin : as_target
    timer_t own_grant, free;
    logic own_before;
    own_grant = '0;
    own_before = 1'b0;
    free = '0;
    until_o = '0;
    target_o = minus(target_i, timer_t'(1));
    if (mark_i && source_granted_i) begin
      own_grant = timer_t'(grant_blocks_i[source_target_i]) * timer_t'(BlockCycles);
      own_before = !target_granted_i || order_i[own_i] < order_i[target_source_i];
      if (own_before) target_o = plus(target_o, own_grant);
    end
    if (mark_i && target_granted_i) begin
      free = free_i[target_source_i];
      until_o = plus(free > target_o ? free : target_o,
                     timer_t'(target_blocks_i) * timer_t'(BlockCycles));
      target_o = plus(until_o, own_before ? '0 : own_grant);
    end
  end

  always_comb begin : as_source
    source_o = '0;
    if (source_i != 0) begin
      source_o = minus(plus(source_i, timer_t'(uplink) * timer_t'(BlockCycles)), timer_t'(1));
    end
    if (mark_i && source_granted_i) begin
      source_o = plus(until_i[source_target_i], timer_t'(booked) * timer_t'(BlockCycles));
    end
  end

endmodule
