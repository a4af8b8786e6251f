// What the scheduler must never do, for any inputs: read by rtl/formal/prove.py.
//
// The properties are stated on its inputs and outputs alone, with a model of their own for one
// channel and one port, which the solver chooses. Look-ahead is 0, so a port is granted only when the
// time of its last chunk is over.
module scheduler_proof
  import edm_pkg::*;
#(
    parameter int unsigned Ports = 3,
    parameter int unsigned Active = 2,
    localparam int unsigned PortW = $clog2(Ports)
) (
    input logic clk_i,
    input logic    [Ports-1:0] demand_valid_i,
    input demand_t [Ports-1:0] demand_i,
    input logic [Ports-1:0] uplink_valid_i,
    input logic [Ports-1:0][3:0] uplink_blocks_i,
    input logic [Ports-1:0] down_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  refused_e [Ports-1:0] refused;
  logic [Ports-1:0] grant_valid;
  grant_t [Ports-1:0] grant;
  logic [31:0] refused_count;

  edm_scheduler #(
      .Ports    (Ports),
      .Active   (Active),
      .LookAhead(0),
      .TimeW    (6)
  ) dut (
      .clk_i,
      .rst_ni         (rst_n),
      .demand_valid_i,
      .demand_i,
      .refused_o      (refused),
      .uplink_valid_i,
      .uplink_blocks_i,
      .down_i,
      .grant_valid_o  (grant_valid),
      .grant_o        (grant),
      .refused_count_o(refused_count)
  );

  // --- One port, chosen by the solver: its circuits. ---

  (* anyconst *) logic [PortW-1:0] port;

  // Blocks of a chunk, by the text of 3.2: a response is bytes, a write is an address and bytes; at
  // least one message of a batch.
  function automatic logic [15:0] blocks(input grant_t made);
    if (made.class_id == ClassWrite) return 16'd2 + ((16'(made.bytes) + 16'd7) >> 3);
    if (made.bytes <= 1) return 16'd1;
    return made.bytes <= 8 ? 16'd2 : 16'd2 + ((16'(made.bytes) - 16'd1) >> 3);
  endfunction

  logic [15:0] source_left_q, target_left_q;  // cycles until the last chunk's time is over
  logic [1:0] granted_as_target;
  logic [15:0] granted_blocks;
  always_comb begin
    granted_as_target = '0;
    granted_blocks = '0;
    for (int unsigned s = 0; s < Ports; s++) begin
      if (grant_valid[s] && grant[s].target == NodeW'(port)) begin
        granted_as_target += 1;
        granted_blocks = blocks(grant[s]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    source_left_q <= source_left_q == 0 ? '0 : source_left_q - 1'b1;
    target_left_q <= target_left_q == 0 ? '0 : target_left_q - 1'b1;
    if (grant_valid[port]) source_left_q <= blocks(grant[port]) - 1'b1;
    if (granted_as_target != 0) target_left_q <= granted_blocks - 1'b1;
    if (!rst_n) begin
      source_left_q <= '0;
      target_left_q <= '0;
    end else begin
      two_circuits_to_a_port : assert (granted_as_target <= 1);
      one_chunk_in_flight_to_a_target : assert (granted_as_target == 0 || target_left_q == 0);
      one_chunk_in_flight_from_a_source : assert (!grant_valid[port] || source_left_q == 0);
    end
  end

  // --- One channel, chosen by the solver: its demands in order. ---

  (* anyconst *) logic [PortW-1:0] source, target;
  (* anyconst *) class_e class_id;
  logic [PortW-1:0] ingress, peer;
  assign ingress = class_id == ClassWrite ? source : target;
  assign peer = class_id == ClassWrite ? target : source;

  // A demand is answered two cycles after it came.
  logic valid_q, valid_qq;
  demand_t demand_q, demand_qq;
  logic [Active:0][IdW-1:0] ids_q;
  logic [Active:0][DemandW-1:0] left_q;
  logic [3:0] count_q;
  logic first_q;  // the oldest has had no grant
  logic here, taken, gone;

  always_comb begin
    here = grant_valid[source] && grant[source].target == NodeW'(target) &&
        grant[source].class_id == class_id;
    taken = valid_qq && refused[ingress] == RefusedNot && demand_qq.class_id == class_id &&
        demand_qq.peer == NodeW'(peer);
    gone = here && grant[source].last;
  end

  always_ff @(posedge clk_i) begin
    valid_q <= demand_valid_i[ingress];
    valid_qq <= valid_q;
    demand_q <= demand_i[ingress];
    demand_qq <= demand_q;
    if (here) begin
      left_q[0] <= left_q[0] - DemandW'(grant[source].bytes);
      first_q <= gone;
      if (gone) begin
        for (int unsigned k = 0; k < Active; k++) begin
          ids_q[k] <= ids_q[k+1];
          left_q[k] <= left_q[k+1];
        end
      end
    end
    if (taken) begin
      ids_q[count_q-4'(gone)] <= demand_qq.id;
      left_q[count_q-4'(gone)] <= demand_qq.bytes;
    end
    count_q <= count_q + 4'(taken) - 4'(gone);
    if (!rst_n) begin
      valid_q <= 1'b0;
      valid_qq <= 1'b0;
      count_q <= '0;
      first_q <= 1'b1;
    end else begin
      assume (source != target && 32'(source) < Ports && 32'(target) < Ports && 32'(port) < Ports);
      never_more_than_x_active : assert (count_q <= 4'(Active));
      if (here) begin
        a_grant_only_to_a_demand : assert (count_q != 0);
        in_order : assert (count_q == 0 || grant[source].id == ids_q[0]);
        no_more_than_was_asked : assert (count_q == 0 || DemandW'(grant[source].bytes) <= left_q[0]);
        last_is_last : assert (
            count_q == 0 || grant[source].last == (DemandW'(grant[source].bytes) == left_q[0]));
        first_is_first : assert (count_q == 0 || grant[source].first == first_q);
        a_whole_chunk : assert (grant[source].last || grant[source].bytes == SizeW'(ChunkBytes));
      end
    end
  end

endmodule
