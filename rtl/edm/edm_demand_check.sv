// What becomes of the demand of one port: it is refused, or goes to one queue, or withdraws another
// (the second cycle of an insertion). Latency: none, combinational.
module edm_demand_check
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 8,
    localparam int unsigned PortW = $clog2(Ports)
) (
    input logic [PortW-1:0] own_i,
    input logic             valid_i,
    /* verilator lint_off UNUSEDSIGNAL */  // the queue takes the rest
    input demand_t          demand_i,
    /* verilator lint_on UNUSEDSIGNAL */

    // Dead ports, and channels without room: of our writes to each port, and of our reads of each.
    input logic [Ports-1:0] disabled_i,
    input logic [Ports-1:0] write_full_i,
    input logic [Ports-1:0] response_full_i,

    output refused_e         refused_o,
    output logic             taken_o,
    output logic             withdraws_o,
    // The port that is written, read, or named by a withdrawal.
    output logic [Ports-1:0] write_o,
    output logic [Ports-1:0] read_o,
    output logic [Ports-1:0] withdraw_o
);
  /* verilator inline_module */

  logic [PortW-1:0] peer;
  logic is_port;
  assign peer = PortW'(demand_i.peer);
  assign is_port = 32'(demand_i.peer) < Ports;

  always_comb begin
    withdraws_o = valid_i && demand_i.class_id == ClassWrite && demand_i.bytes == 0;
    refused_o = RefusedNot;
    if (!is_port || peer == own_i) begin
      refused_o = RefusedNoPort;
    end else if (demand_i.bytes == 0) begin
      refused_o = RefusedEmpty;
    end else if (disabled_i[own_i] || disabled_i[peer]) begin
      refused_o = RefusedDisabled;
    end else if (demand_i.class_id == ClassResponse ? response_full_i[peer] : write_full_i[peer]) begin
      refused_o = RefusedPairFull;
    end
    if (!valid_i || withdraws_o) refused_o = RefusedNot;
    taken_o = valid_i && !withdraws_o && refused_o == RefusedNot;
  end

  always_comb begin
    for (int unsigned t = 0; t < Ports; t++) begin
      write_o[t] = taken_o && demand_i.class_id == ClassWrite && peer == PortW'(t);
      read_o[t] = taken_o && demand_i.class_id == ClassResponse && peer == PortW'(t);
      withdraw_o[t] = withdraws_o && is_port && peer == PortW'(t);
    end
  end

endmodule
