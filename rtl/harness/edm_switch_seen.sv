// A switch, and what the harness looks at inside: how many circuits each ingress has, what its open
// message is, and what goes out at each egress.
module edm_switch_seen
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 3,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned Chunk = ChunkBytes,
    parameter bit Fcfs = 1'b0,
    parameter int unsigned Timeout = 390625,
    parameter policy_t Policy = PolicyFair,
    parameter int unsigned FaultsAllowed = 0,
    parameter int unsigned ForwardDepth = 256,
    parameter int unsigned StallMax = 1023
) (
    input logic clk_i,
    input logic rst_ni,

    input  block_t [Ports-1:0] line_i,
    output block_t [Ports-1:0] line_o,

    input  logic   [Ports-1:0] frame_valid_i,
    output logic   [Ports-1:0] frame_ready_o,
    input  block_t [Ports-1:0] frame_i,
    output block_t [Ports-1:0] frame_o,

    output logic [Ports-1:0]       down_o,
    output logic [Ports-1:0][31:0] fault_count_o,
    output logic [31:0]            refused_count_o,
    output logic [31:0]            withdrawn_count_o,
    output logic [31:0]            idle_count_o,
    output logic [Ports-1:0][31:0] violation_count_o,
    output logic [Ports-1:0][31:0] lost_count_o,

    // Circuits; `open_e` of the ingress, `lane_e` of the egress.
    output logic [Ports-1:0][15:0] circuits_o,
    output logic [Ports-1:0][7:0]  open_o,
    output logic [Ports-1:0][7:0]  lane_o
);

  edm_switch #(
      .Ports        (Ports),
      .Active       (Active),
      .Chunk        (Chunk),
      .Fcfs         (Fcfs),
      .Timeout      (Timeout),
      .Policy       (Policy),
      .FaultsAllowed(FaultsAllowed),
      .ForwardDepth (ForwardDepth),
      .StallMax     (StallMax)
  ) u_switch (
      .clk_i,
      .rst_ni,
      .line_i,
      .line_o,
      .frame_valid_i,
      .frame_ready_o,
      .frame_i,
      .frame_o,
      .down_o,
      .fault_count_o,
      .refused_count_o,
      .withdrawn_count_o,
      .idle_count_o,
      .violation_count_o,
      .lost_count_o
  );

  for (genvar p = 0; p < Ports; p++) begin : gen_seen
    assign circuits_o[p] = 16'($countones(u_switch.gen_port[p].u_ingress.circuit_valid_q));
    assign open_o[p] = 8'(u_switch.gen_port[p].u_ingress.open_q);
    assign lane_o[p] = 8'(u_switch.gen_port[p].u_egress.lane_q);
  end

endmodule
