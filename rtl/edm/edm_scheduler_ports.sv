// All ports of a scheduler and the wires between them, and no gate of its own: `rtl/synth.py` counts
// one port, and here looks at small sizes that there is none.
module edm_scheduler_ports
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

    // As `edm_scheduler` has them; the refusal two cycles later.
    input  logic     [Ports-1:0]      demand_valid_i,
    input  demand_t  [Ports-1:0]      demand_i,
    output refused_e [Ports-1:0]      refused_o,
    input  logic     [Ports-1:0]      uplink_valid_i,
    input  logic     [Ports-1:0][3:0] uplink_blocks_i,
    output logic     [Ports-1:0]      grant_valid_o,
    output grant_t   [Ports-1:0]      grant_o,

    // What all ports have once, and what each tells (`edm_scheduler_port`).
    input  logic [Ports-1:0] down_i,
    input  logic [Ports-1:0] disabled_i,
    input  logic [Ports-1:0] disabled_now_i,
    input  logic [TimeW-1:0] time_i,
    input  logic             request_i,
    input  logic             accept_i,
    input  logic             mark_i,
    input  logic             begin_i,
    input  logic             settles_i,
    output logic [Ports-1:0] taken_o,
    output logic [Ports-1:0] withdraws_o,
    output logic [Ports-1:0] is_refused_o,
    output logic [Ports-1:0] named_o,
    output logic [Ports-1:0] requests_o,

    // For its assertions.
    output logic [Ports-1:0]            granted_o,
    output logic [Ports-1:0][PortW-1:0] granted_source_o,
    output logic [Ports-1:0]            accepted_o,
    output logic [Ports-1:0][PortW-1:0] accepted_target_o,
    output logic [Ports-1:0]            broken_o,
    output logic [Ports-1:0]            busy_o
);
  /* verilator inline_module */

  // The key of a request: its rank and its age.
  localparam int unsigned KeyW = (Fcfs ? 1 : DemandW) + TimeW + PortW;

  // By port, then by peer.
  logic [Ports-1:0][Ports-1:0] writes, reads, withdrawals;
  // By target, then by source.
  logic [Ports-1:0][Ports-1:0] write_full, withdrawn, started;

  demand_t [Ports-1:0] demand;
  logic [Ports-1:0] source_free, asks, best, lowest;
  logic [Ports-1:0][PortW-1:0] asked, order;
  logic [Ports-1:0][KeyW-1:0] key;
  grant_t [Ports-1:0] made;
  logic [Ports-1:0][TimerW-1:0] free_at, until_free;
  logic [Ports-1:0][2:0] grant_blocks;

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    logic [Ports-1:0] write, withdraw, read_arrived, read_started, full, named;
    always_comb begin
      for (int unsigned o = 0; o < Ports; o++) begin
        write[o] = writes[o][p];
        withdraw[o] = withdrawals[o][p];
        read_arrived[o] = reads[o][p];
      end
    end
    always_comb begin
      for (int unsigned o = 0; o < Ports; o++) read_started[o] = started[o][p];
    end
    always_comb begin
      for (int unsigned o = 0; o < Ports; o++) full[o] = write_full[o][p];
    end
    always_comb begin
      for (int unsigned o = 0; o < Ports; o++) named[o] = withdrawn[o][p];
    end

    edm_scheduler_port #(
        .Ports      (Ports),
        .Active     (Active),
        .Chunk      (Chunk),
        .Fcfs       (Fcfs),
        .LookAhead  (LookAhead),
        .BlockCycles(BlockCycles),
        .TimeW      (TimeW),
        .TimerW     (TimerW)
    ) u_port (
        .clk_i,
        .rst_ni,
        .own_i            (PortW'(p)),
        .demand_valid_i   (demand_valid_i[p]),
        .demand_i         (demand_i[p]),
        .uplink_valid_i   (uplink_valid_i[p]),
        .uplink_blocks_i  (uplink_blocks_i[p]),
        .refused_o        (refused_o[p]),
        .grant_valid_o    (grant_valid_o[p]),
        .grant_o          (grant_o[p]),
        .down_i,
        .disabled_i,
        .disabled_now_i,
        .time_i,
        .request_i,
        .accept_i,
        .mark_i,
        .begin_i,
        .settles_i,
        .taken_o          (taken_o[p]),
        .withdraws_o      (withdraws_o[p]),
        .is_refused_o     (is_refused_o[p]),
        .named_o          (named_o[p]),
        .requests_o       (requests_o[p]),
        .demand_o         (demand[p]),
        .demands_i        (demand),
        .write_o          (writes[p]),
        .read_o           (reads[p]),
        .withdraw_o       (withdrawals[p]),
        .write_i          (write),
        .read_arrived_i   (read_arrived),
        .withdraw_i       (withdraw),
        .write_full_o     (write_full[p]),
        .write_full_i     (full),
        .withdrawn_o      (withdrawn[p]),
        .withdrawn_i      (named),
        .read_started_o   (started[p]),
        .read_started_i   (read_started),
        .source_free_o    (source_free[p]),
        .source_free_i    (source_free),
        .asks_o           (asks[p]),
        .asked_o          (asked[p]),
        .key_o            (key[p]),
        .asks_i           (asks),
        .asked_i          (asked),
        .key_i            (key),
        .best_o           (best[p]),
        .lowest_o         (lowest[p]),
        .best_i           (best),
        .lowest_i         (lowest),
        .made_o           (made[p]),
        .made_i           (made),
        .order_o          (order[p]),
        .grant_blocks_o   (grant_blocks[p]),
        .free_o           (free_at[p]),
        .until_o          (until_free[p]),
        .order_i          (order),
        .grant_blocks_i   (grant_blocks),
        .free_i           (free_at),
        .until_i          (until_free),
        .granted_o        (granted_o[p]),
        .granted_source_o (granted_source_o[p]),
        .accepted_o       (accepted_o[p]),
        .accepted_target_o(accepted_target_o[p]),
        .broken_o         (broken_o[p]),
        .busy_o           (busy_o[p])
    );
  end

endmodule
