// What some sources have for one target (paper 3.1.2): two channels a source, one for each class.
//
// A channel holds up to `Active` demands in order of arrival. Channels know nothing of each other:
// those of N sources are N times those of one. A write waits for the reads of its pair that came
// before it. Writes of all sources come first, then responses.
//
// Latency: an arrival, a mark or a withdrawal is in effect in the next cycle. The outputs are
// registers, or choices among registers of one channel.
module edm_channels
  import edm_pkg::*;
#(
    parameter int unsigned Sources = 8,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned TimeW = 32,
    localparam int unsigned Channels = 2 * Sources
) (
    input logic clk_i,
    input logic rst_ni,

    // Arrivals: a write of each source, and a request of the target for the data of a source.
    input logic    [Sources-1:0] write_i,
    input demand_t [Sources-1:0] demand_i,
    input logic    [Sources-1:0] response_i,
    /* verilator lint_off UNUSEDSIGNAL */  // its class and its peer are known
    input demand_t               response_demand_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input logic    [TimeW-1:0]   time_i,

    // Sources that withdraw a demand, whether no iteration is under way after this cycle, and
    // sources that named a demand.
    input  logic [Sources-1:0] withdraw_i,
    input  logic               settles_i,
    output logic [Sources-1:0] withdrawn_o,

    // Reads of the target's memory by each source, which hold back that source's later writes.
    input logic [Sources-1:0] read_arrived_i,
    input logic [Sources-1:0] read_started_i,

    // Sources whose demands are forgotten.
    input logic [Sources-1:0] down_i,

    // The oldest demand of each channel; anything where there is none.
    output logic [Channels-1:0]              full_o,
    output logic [Channels-1:0]              competes_o,
    output logic [Channels-1:0][DemandW-1:0] bytes_o,
    output logic [Channels-1:0][TimeW-1:0]   time_o,
    output logic [Channels-1:0][IdW-1:0]     id_o,
    output logic [Channels-1:0][BatchW-1:0]  extra_o,
    output logic [Channels-1:0]              started_o,

    // The channel that was granted, whether for the last time, and what remains otherwise.
    input logic [Channels-1:0] mark_i,
    input logic                mark_last_i,
    input logic [DemandW-1:0]  left_i,

    // A demand that is not there is granted, or a full channel takes one.
    output logic broken_o
);
  /* verilator inline_module */

  localparam int unsigned CountW = $clog2(Active + 1);

  logic [Channels-1:0][CountW-1:0] count_q, count_d;
  logic [Channels-1:0] started_q, started_d;
  logic [Channels-1:0] withdrawn_q, withdrawn_d;
  // Reads of each source that have not been sent on.
  logic [Sources-1:0][CountW-1:0] reads_q, reads_d;
  // Of each write, how many reads of its pair it still waits for.
  logic [Sources-1:0][Active-1:0][CountW-1:0] behind_q, behind_d;

  // The demands themselves, a few words a channel. They need no reset: `count_q` says which are
  // there. Loops over packed words, not a block a channel: with 144 ports there are 288 of them in
  // each of 144 queues.
  logic [Channels-1:0][Active-1:0][DemandW-1:0] bytes_q;
  logic [Channels-1:0][Active-1:0][TimeW-1:0] time_q;
  logic [Channels-1:0][Active-1:0][IdW-1:0] id_q;
  logic [Channels-1:0][Active-1:0][BatchW-1:0] extra_q;

  // Arrivals by channel. No functions and no assertions here: then Verilator has one copy of the
  // code for all queues.
  logic [Channels-1:0] arrival;
  logic [Channels-1:0][DemandW-1:0] arrived_bytes;
  logic [Channels-1:0][IdW-1:0] arrived_id;
  logic [Channels-1:0][BatchW-1:0] arrived_extra;
  assign arrival = {response_i, write_i};
  always_comb begin
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      arrived_bytes[ch] = ch < Sources ? demand_i[ch%Sources].bytes : response_demand_i.bytes;
      arrived_id[ch] = ch < Sources ? demand_i[ch%Sources].id : response_demand_i.id;
      arrived_extra[ch] = ch < Sources ? demand_i[ch%Sources].extra : response_demand_i.extra;
    end
  end
  always_comb begin
    for (int unsigned ch = 0; ch < Channels; ch++) full_o[ch] = count_q[ch] == CountW'(Active);
  end

  always_comb begin
    broken_o = 1'b0;
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      broken_o |= (arrival[ch] && full_o[ch]) || (mark_i[ch] && count_q[ch] == 0);
    end
  end

  always_comb begin : heads
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      bytes_o[ch] = bytes_q[ch][0];
      time_o[ch] = time_q[ch][0];
      id_o[ch] = id_q[ch][0];
      extra_o[ch] = extra_q[ch][0];
      competes_o[ch] = count_q[ch] != 0;
      if (ch < Sources && behind_q[ch%Sources][0] != 0) competes_o[ch] = 1'b0;
    end
  end
  assign started_o = started_q;

  // Demands that leave: withdrawn, or granted whole.
  logic [Channels-1:0] named, leaves;
  always_comb begin : withdrawals
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      named[ch] = withdraw_i[ch%Sources] && demand_i[ch%Sources].id[IdW-1] == (ch < Sources) &&
          count_q[ch] != 0 && !withdrawn_q[ch] && id_o[ch] == demand_i[ch%Sources].id &&
          (ch < Sources || started_q[ch]);
      leaves[ch] = settles_i && (withdrawn_q[ch] || named[ch]);
      if (mark_i[ch] && mark_last_i) leaves[ch] = 1'b1;
    end
    withdrawn_o = named[Sources-1:0] | named[Channels-1:Sources];
  end

  // The place of an arrival: behind those that stay.
  logic [Channels-1:0][Active-1:0] place;
  always_comb begin
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      for (int unsigned slot = 0; slot < Active; slot++) begin
        place[ch][slot] = arrival[ch] && 32'(count_q[ch]) == slot + 32'(leaves[ch]);
      end
    end
  end

  always_comb begin
    count_d = count_q;
    started_d = started_q | mark_i;
    reads_d = reads_q;
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      if (arrival[ch]) count_d[ch] = count_d[ch] + 1'b1;
      if (leaves[ch]) begin
        started_d[ch] = 1'b0;
        count_d[ch] = count_d[ch] - 1'b1;
      end
      withdrawn_d[ch] = !settles_i && (withdrawn_q[ch] || named[ch]);
    end
    for (int unsigned s = 0; s < Sources; s++) begin
      reads_d[s] = reads_q[s] + CountW'(read_arrived_i[s]) - CountW'(read_started_i[s]);
    end
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      if (down_i[ch%Sources]) begin
        count_d[ch] = '0;
        started_d[ch] = 1'b0;
        withdrawn_d[ch] = 1'b0;
        reads_d[ch%Sources] = '0;
      end
    end
  end

  always_comb begin
    behind_d = behind_q;
    for (int unsigned s = 0; s < Sources; s++) begin
      for (int unsigned slot = 0; slot < Active; slot++) begin
        if (leaves[s] && slot + 1 < Active) behind_d[s][slot] = behind_q[s][(slot+1)%Active];
        if (read_started_i[s] && behind_d[s][slot] != 0) begin
          behind_d[s][slot] = behind_d[s][slot] - 1'b1;
        end
        if (place[s][slot]) behind_d[s][slot] = reads_q[s] - CountW'(read_started_i[s]);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      started_q <= '0;
      withdrawn_q <= '0;
      reads_q <= '0;
      behind_q <= '0;
    end else begin
      count_q <= count_d;
      started_q <= started_d;
      withdrawn_q <= withdrawn_d;
      reads_q <= reads_d;
      behind_q <= behind_d;
    end
  end

  // A comparison for each place, and no index: an index shifts the whole word. The last place takes
  // arrivals alone: what is not there moves up as anything.
  always_ff @(posedge clk_i) begin
    for (int unsigned ch = 0; ch < Channels; ch++) begin
      if (mark_i[ch]) bytes_q[ch][0] <= left_i;
      if (arrival[ch] || leaves[ch]) begin
        for (int unsigned slot = 0; slot < Active; slot++) begin
          if (place[ch][slot] || leaves[ch]) begin
            if (place[ch][slot] || slot + 1 == Active) begin
              bytes_q[ch][slot] <= arrived_bytes[ch];
              time_q[ch][slot] <= time_i;
              id_q[ch][slot] <= arrived_id[ch];
              extra_q[ch][slot] <= arrived_extra[ch];
            end else begin
              bytes_q[ch][slot] <= bytes_q[ch][(slot+1)%Active];
              time_q[ch][slot] <= time_q[ch][(slot+1)%Active];
              id_q[ch][slot] <= id_q[ch][(slot+1)%Active];
              extra_q[ch][slot] <= extra_q[ch][(slot+1)%Active];
            end
          end
        end
      end
    end
  end

endmodule
