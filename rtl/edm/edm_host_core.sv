// A host without its port: the transmitting and the receiving side, the grant queue between their
// clocks, and the state tables (paper 3.2.1, Figure 3).
//
// Latency in cycles, from the port's `memory_o` or the application to the port's offer:
//   request    2   of the application to /N/, RREQ or RMWREQ
//   /G/        9   2 to take it, 4 through the grant queue, 3 to make the chunk
//   RREQ      10   3 to take it, 4 through the grant queue, 3 to make the chunk
//   data       3   of a WREQ or RRES to the memory
module edm_host_core
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 4,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned Chunk = ChunkBytes,
    parameter int unsigned Timeout = 390625,      // 1 ms
    parameter int unsigned GrantDepth = 64,
    localparam int unsigned SlotW = Active > 1 ? $clog2(Active) : 1,
    localparam int unsigned Slots = 2 ** SlotW,
    localparam int unsigned RoomW = $clog2(GrantDepth) + 1
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [NodeW-1:0] own_i,

    // The application: requests, and how they end.
    input  logic            access_valid_i,
    output logic            access_ready_o,
    input  access_t         access_i,
    output logic            answered_o,         // a read or modification
    output logic            answered_null_o,
    output logic [TagW-1:0] answered_tag_o,
    output logic            sent_o,             // a write has left
    output logic [TagW-1:0] sent_tag_o,
    output logic            expired_read_o,     // no answer in time: NULL
    output logic [TagW-1:0] expired_read_tag_o,
    output logic            expired_write_o,    // no grant in time
    output logic [TagW-1:0] expired_write_tag_o,
    output logic            refused_o,
    output logic [TagW-1:0] refused_tag_o,
    output logic            written_o,          // a write to this node is whole

    // The memory.
    output logic                receive_read_o,
    output logic [AddressW-1:0] receive_address_o,
    input  logic [63:0]         receive_data_i,
    output logic                transmit_read_o,
    output logic [AddressW-1:0] transmit_address_o,
    input  logic [63:0]         transmit_data_i,
    output logic                write_o,
    output logic [AddressW-1:0] write_address_o,
    output logic [63:0]         write_data_o,
    output logic [3:0]          write_bytes_o,

    // To the port, and from it.
    output logic   control_valid_o,
    input  logic   control_ready_i,
    output block_t control_o,
    output logic   message_valid_o,
    input  logic   message_ready_i,
    output block_t message_o,
    input  logic   message_left_i,
    input  logic   memory_valid_i,
    input  block_t memory_i,
    input  logic   down_i,

    output logic [31:0] unexpected_count_o
);

  if (Timeout < 1) begin : gen_timeout
    $error("Timeout is %0d: at least 1 cycle", Timeout);
  end

  // --- State tables ---

  logic [NodeW-1:0] may_node, read_node, write_end_node;
  logic [IdW-1:0] may_read_id, may_write_id, put_id, read_id, write_end_id;
  logic may_read, may_write, touches;
  logic [Slots-1:0] reads_open, writes_open, answers_open;
  logic [AddressW-1:0] may_from;
  logic [DemandW-1:0] may_bytes;
  logic put_read, put_write;
  state_t put_state;
  logic read_found, read_change, read_close;
  state_t read_state, read_changed;
  logic write_found, write_change, write_end, answer_found, answer_change, chunk_close;
  logic answer_put, answer_closed;
  state_t write_state, answer_state, chunk_changed;
  /* verilator lint_off UNUSEDSIGNAL */  // nobody asks
  logic [TagW-1:0] answer_tag;
  logic answer_expires, read_end_found, write_end_found, answer_end_found, may_answer;
  /* verilator lint_on UNUSEDSIGNAL */
  logic read_expires, write_expires;

  edm_state_table #(
      .Nodes  (Nodes),
      .Active (Active),
      .Timeout(Timeout)
  ) u_reads (
      .clk_i,
      .rst_ni,
      .may_node_i     (may_node),
      .may_id_i       (may_read_id),
      .may_o          (may_read),
      .open_o         (reads_open),
      .put_i          (put_read),
      .put_node_i     (may_node),
      .put_id_i       (put_id),
      .put_state_i    (put_state),
      .put_closed_i   (1'b0),
      .find_node_i    (read_node),
      .find_id_i      (read_id),
      .found_o        (read_found),
      .state_o        (read_state),
      .change_i       (read_change),
      .close_i        (read_close),
      .change_state_i (read_changed),
      .end_i          (1'b0),
      .end_node_i     ('0),
      .end_id_i       ('0),
      .end_found_o    (read_end_found),
      .expired_o      (read_expires),
      .expired_tag_o  (expired_read_tag_o)
  );

  edm_read_ranges #(
      .Nodes(Nodes),
      .Slots(Slots)
  ) u_ranges (
      .clk_i,
      .node_i     (may_node),
      .put_id_i   (put_id),
      .open_i     (reads_open),
      .from_i     (may_from),
      .bytes_i    (may_bytes),
      .touches_o  (touches),
      .put_i      (put_read),
      .put_from_i (put_state.there),
      .put_bytes_i(put_state.bytes)
  );

  permit_t permit;

  edm_state_table #(
      .Nodes  (Nodes),
      .Active (Active),
      .Timeout(Timeout)
  ) u_writes (
      .clk_i,
      .rst_ni,
      .may_node_i     (may_node),
      .may_id_i       (may_write_id),
      .may_o          (may_write),
      .open_o         (writes_open),
      .put_i          (put_write),
      .put_node_i     (may_node),
      .put_id_i       (put_id),
      .put_state_i    (put_state),
      .put_closed_i   (1'b0),
      .find_node_i    (permit.target),
      .find_id_i      (permit.id),
      .found_o        (write_found),
      .state_o        (write_state),
      .change_i       (write_change),
      .close_i        (1'b0),
      .change_state_i (chunk_changed),
      .end_i          (write_end),
      .end_node_i     (write_end_node),
      .end_id_i       (write_end_id),
      .end_found_o    (write_end_found),
      .expired_o      (write_expires),
      .expired_tag_o  (expired_write_tag_o)
  );

  // An answer that is never granted whole goes when the requester must have given it up, or asks
  // for another one in its place. A requester keeps to X itself.
  edm_state_table #(
      .Nodes   (Nodes),
      .Active  (Active),
      .Timeout (Timeout),
      .Replaces(1'b1)
  ) u_answers (
      .clk_i,
      .rst_ni,
      .may_node_i     (permit.target),
      .may_id_i       (permit.id),
      .may_o          (may_answer),
      .open_o         (answers_open),
      .put_i          (answer_put),
      .put_node_i     (permit.target),
      .put_id_i       (permit.id),
      .put_state_i    (chunk_changed),
      .put_closed_i   (answer_closed),
      .find_node_i    (permit.target),
      .find_id_i      (permit.id),
      .found_o        (answer_found),
      .state_o        (answer_state),
      .change_i       (answer_change),
      .close_i        (chunk_close),
      .change_state_i (chunk_changed),
      .end_i          (1'b0),
      .end_node_i     ('0),
      .end_id_i       ('0),
      .end_found_o    (answer_end_found),
      .expired_o      (answer_expires),
      .expired_tag_o  (answer_tag)
  );

  assign expired_read_o = read_expires;
  assign expired_write_o = write_expires;

  // --- The grant queue, from the receiving clock to the transmitting one. ---

  logic taken_valid, permit_valid, permit_take, grant_unexpected;
  logic taken_opens, permit_opens;
  logic [AddressW-1:0] taken_here, permit_here;
  logic [DemandW-1:0] taken_size, permit_size;
  permit_t taken;
  logic [RoomW-1:0] room;

  edm_crossing #(
      .Width(1 + AddressW + DemandW + $bits(permit_t)),
      .Depth(GrantDepth)
  ) u_grants (
      .in_clk_i  (clk_i),
      .in_rst_ni (rst_ni),
      .valid_i   (taken_valid && room != 0),
      .word_i    ({taken_opens, taken_here, taken_size, taken}),
      .room_o    (room),
      .out_clk_i (clk_i),
      .out_rst_ni(rst_ni),
      .valid_o   (permit_valid),
      .take_i    (permit_take),
      .word_o    ({permit_opens, permit_here, permit_size, permit})
  );

  // The words of short answers, as the memory held them when their requests came: in the order of
  // the grant queue, and there before them.
  logic word_valid, word_take, word_waits, opened_q;
  logic [63:0] word_read, word;
  /* verilator lint_off UNUSEDSIGNAL */  // there are no more words than grants
  logic word_ready;
  /* verilator lint_on UNUSEDSIGNAL */

  always_ff @(posedge clk_i) opened_q <= taken_opens && room != 0;

  edm_fifo #(
      .Width(64),
      .Depth(GrantDepth)
  ) u_words (
      .clk_i,
      .rst_ni,
      .valid_i(word_valid && opened_q),
      .ready_o(word_ready),
      .word_i (word_read),
      .valid_o(word_waits),
      .take_i (word_take),
      .word_o (word)
  );

  // --- Both sides ---

  edm_host_transmit #(
      .Nodes(Nodes),
      .Chunk(Chunk)
  ) u_transmit (
      .clk_i,
      .rst_ni,
      .own_i,
      .access_valid_i,
      .access_ready_o,
      .access_i,
      .refused_o,
      .refused_tag_o,
      .permit_valid_i  (permit_valid),
      .permit_take_o   (permit_take),
      .permit_i        (permit),
      .permit_opens_i  (permit_opens),
      .permit_here_i   (permit_here),
      .permit_size_i   (permit_size),
      .word_i          (word),
      .word_take_o     (word_take),
      .unexpected_o    (grant_unexpected),
      .may_node_o      (may_node),
      .may_read_id_o   (may_read_id),
      .may_write_id_o  (may_write_id),
      .may_read_i      (may_read),
      .may_write_i     (may_write),
      .writes_open_i   (writes_open != '0),
      .may_from_o      (may_from),
      .may_bytes_o     (may_bytes),
      .touches_i       (touches),
      .put_read_o      (put_read),
      .put_write_o     (put_write),
      .put_id_o        (put_id),
      .put_state_o     (put_state),
      .write_found_i   (write_found),
      .write_state_i   (write_state),
      .write_change_o  (write_change),
      .answer_found_i  (answer_found),
      .answer_state_i  (answer_state),
      .answer_change_o (answer_change),
      .answer_put_o    (answer_put),
      .answer_closed_o (answer_closed),
      .change_close_o  (chunk_close),
      .change_state_o  (chunk_changed),
      .write_end_o     (write_end),
      .write_end_node_o(write_end_node),
      .write_end_id_o  (write_end_id),
      .sent_o,
      .sent_tag_o,
      .read_o          (transmit_read_o),
      .read_address_o  (transmit_address_o),
      .read_data_i     (transmit_data_i),
      .control_valid_o,
      .control_ready_i,
      .control_o,
      .message_valid_o,
      .message_ready_i,
      .message_o,
      .message_left_i,
      .down_i
  );

  logic [31:0] received_unexpected;

  edm_host_receive #(
      .Nodes  (Nodes),
      .Active (Active),
      .Chunk  (Chunk),
      .Timeout(Timeout)
  ) u_receive (
      .clk_i,
      .rst_ni,
      .own_i,
      .memory_valid_i,
      .memory_i,
      .permit_valid_o    (taken_valid),
      .permit_o          (taken),
      .permit_opens_o    (taken_opens),
      .permit_here_o     (taken_here),
      .permit_size_o     (taken_size),
      .read_node_o       (read_node),
      .read_id_o         (read_id),
      .read_found_i      (read_found),
      .read_state_i      (read_state),
      .read_change_o     (read_change),
      .read_close_o      (read_close),
      .read_state_o      (read_changed),
      .word_o            (word_valid),
      .word_data_o       (word_read),
      .read_o            (receive_read_o),
      .read_address_o    (receive_address_o),
      .read_data_i       (receive_data_i),
      .write_o,
      .write_address_o,
      .write_data_o,
      .write_bytes_o,
      .answered_o,
      .answered_null_o,
      .answered_tag_o,
      .written_o,
      .unexpected_count_o(received_unexpected)
  );

  // Grants that nothing waits for, whose demand is withdrawn, or that found no room; and answers
  // that a request has ended.
  logic [31:0] lost_q;
  assign unexpected_count_o = received_unexpected + lost_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lost_q <= '0;
    end else begin
      if (lost_q[31:2] != '1) begin
        lost_q <= lost_q + 32'(grant_unexpected) + 32'(taken_valid && room == 0) +
            32'(answer_put && answers_open[permit.id[SlotW-1:0]]);
      end
      // The word of a short answer is there when it is taken.
      assert (!word_take || word_waits);
    end
  end

endmodule
