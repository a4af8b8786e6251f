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
//
// Here is what all ports have once: the phase of an iteration, the time, the counters. What grows with
// the square of the ports is in modules of a port, so `rtl/synth.py` counts those once.
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

  phase_e phase_q, phase_d;
  logic [Ports-1:0] down_q, disabled_q, disabled_d;
  logic [TimeW-1:0] time_q, time_d;
  logic [31:0] refused_count_q, refused_count_d;
  logic [31:0] withdrawn_count_q, withdrawn_count_d, idle_count_q, idle_count_d;

  // Of each port: its demand is taken, withdraws another, is refused; its withdrawal named a demand;
  // as a target it requests.
  logic [Ports-1:0] taken, withdraws, refused, named, requests;
  logic begins, settles;
  // For assertions: circuits as targets and as sources; what should not be.
  logic [Ports-1:0] granted, accepted, broken, busy;
  logic [Ports-1:0][PortW-1:0] granted_source, accepted_target;

  // A counter stays where it is near its top.
  function automatic logic [31:0] counted(input logic [31:0] count, input logic [Ports-1:0] more);
    return count[31:NodeW+1] == '1 ? count : count + 32'($countones(more));
  endfunction

  always_comb begin
    disabled_d = disabled_q | down_q;
    // Only the order of arrivals counts.
    time_d = |taken ? time_q + 1'b1 : time_q;
    refused_count_d = counted(refused_count_q, refused);
    withdrawn_count_d = counted(withdrawn_count_q, named);
    idle_count_d = counted(idle_count_q, withdraws & ~named);
  end

  assign refused_count_o = refused_count_q;
  assign withdrawn_count_o = withdrawn_count_q;
  assign idle_count_o = idle_count_q;

  assign begins = |requests;
  // After this cycle no iteration is under way.
  assign settles = phase_q == Mark || (phase_q == Request && !begins);
  always_comb begin
    unique case (phase_q)
      Request: phase_d = begins ? Accept : Request;
      Accept: phase_d = Mark;
      default: phase_d = Request;
    endcase
  end

  edm_scheduler_ports #(
      .Ports      (Ports),
      .Active     (Active),
      .Chunk      (Chunk),
      .Fcfs       (Fcfs),
      .LookAhead  (LookAhead),
      .BlockCycles(BlockCycles),
      .TimeW      (TimeW),
      .TimerW     (TimerW)
  ) u_ports (
      .clk_i,
      .rst_ni,
      .demand_valid_i,
      .demand_i,
      .refused_o,
      .uplink_valid_i,
      .uplink_blocks_i,
      .down_i           (down_q),
      .disabled_i       (disabled_q),
      .disabled_now_i   (disabled_d),
      .time_i           (time_q),
      .request_i        (phase_q == Request),
      .accept_i         (phase_q == Accept),
      .mark_i           (phase_q == Mark),
      .begin_i          (phase_q != Request || begins),
      .settles_i        (settles),
      .taken_o          (taken),
      .withdraws_o      (withdraws),
      .is_refused_o     (refused),
      .named_o          (named),
      .requests_o       (requests),
      .grant_valid_o,
      .grant_o,
      .granted_o        (granted),
      .granted_source_o (granted_source),
      .accepted_o       (accepted),
      .accepted_target_o(accepted_target),
      .broken_o         (broken),
      .busy_o           (busy)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      down_q <= '0;
      disabled_q <= '0;
      time_q <= '0;
      refused_count_q <= '0;
      withdrawn_count_q <= '0;
      idle_count_q <= '0;
      phase_q <= Request;
    end else begin
      down_q <= down_i;
      disabled_q <= disabled_d;
      time_q <= time_d;
      refused_count_q <= refused_count_d;
      withdrawn_count_q <= withdrawn_count_d;
      idle_count_q <= idle_count_d;
      phase_q <= phase_d;

      assert (broken == '0);
      // One circuit a port: what a source has accepted, its target has been granted, and no two
      // targets are granted one source. It opens only between ports that are free, or are soon.
      if (phase_q == Mark) begin
        assert (busy == '0);
        for (int unsigned t = 0; t < Ports; t++) begin
          if (granted[t]) begin
            assert (accepted[granted_source[t]]);
            assert (accepted_target[granted_source[t]] == PortW'(t));
          end
        end
      end
    end
  end

endmodule
