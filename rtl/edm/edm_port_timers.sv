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

  timer_t [Ports-1:0] source_q, source_d;
  timer_t [Ports-1:0] target_q, target_d;
  // Bookings since the iteration began: all, and those that a timer has already.
  logic [Ports-1:0][WindowW-1:0] booked_q, booked_d;
  logic [Ports-1:0][WindowW-1:0] counted_q, counted_d;
  // When sources are free but for these, and when targets are free.
  timer_t [Ports-1:0] free_at, until_free;

  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      source_free_o[p] = source_q[p] <= timer_t'(FreeWithin);
      target_free_o[p] = target_q[p] <= timer_t'(FreeWithin);
    end
  end

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    edm_port_timer #(
        .Ports      (Ports),
        .TimerW     (TimerW),
        .WindowW    (WindowW),
        .BlockCycles(BlockCycles)
    ) u_timer (
        .own_i           (PortW'(p)),
        .source_i        (source_q[p]),
        .target_i        (target_q[p]),
        .booked_i        (booked_q[p]),
        .counted_i       (counted_q[p]),
        .uplink_i        (uplink_i[p]),
        .uplink_blocks_i (uplink_blocks_i[p]),
        .begin_i,
        .mark_i,
        .source_granted_i(source_granted_i[p]),
        .source_target_i (source_target_i[p]),
        .target_granted_i(target_granted_i[p]),
        .target_source_i (target_source_i[p]),
        .target_blocks_i (target_blocks_i[p]),
        .free_i          (free_at),
        .order_i         (source_order_i),
        .grant_blocks_i  (target_grant_blocks_i),
        .until_i         (until_free),
        .free_o          (free_at[p]),
        .until_o         (until_free[p]),
        .source_o        (source_d[p]),
        .target_o        (target_d[p]),
        .booked_o        (booked_d[p]),
        .counted_o       (counted_d[p])
    );
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
