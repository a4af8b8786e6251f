// Properties of message ids: the transmitting side of a host with its state tables.
//
//   unique   an id of a pair is not given out while a message with it is open, and the table keeps
//            the state of that message until then
//   few      at most X messages of a pair and kind are open
//   turn     the ids of a pair follow one another, so one that is free again comes last
//
// What answers, and when, is any: `close_i` ends reads. The watched id is any.
module formal_ids
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 2,
    parameter int unsigned Active = 2,
    parameter bit Induct = 1'b0,  // with the invariants of the induction
    parameter int unsigned Calm = 0,  // to find a counterexample sooner: 1 writes alone, 2 reads alone
    localparam int unsigned SlotW = Active > 1 ? $clog2(Active) : 1,
    localparam int unsigned Slots = 2 ** SlotW,
    localparam int unsigned NodesW = $clog2(Nodes)
) (
    input logic clk_i,
    input logic [NodeW-1:0] own_i,
    input logic    access_valid_i,
    input access_t access_i,
    input logic    permit_valid_i,
    input permit_t permit_i,
    input logic    permit_opens_i,
    input logic [AddressW-1:0] permit_here_i,
    input logic [DemandW-1:0]  permit_size_i,
    input logic [63:0] word_i,
    input logic [63:0] read_data_i,
    input logic control_ready_i,
    input logic message_ready_i,
    input logic message_left_i,
    input logic touches_i,
    input logic down_i,
    input logic answer_found_i,
    input state_t answer_state_i,
    // An answer to a read of this node and id.
    input logic [NodeW-1:0] close_node_i,
    input logic [IdW-1:0]   close_id_i,
    input logic             close_i,
    input logic [NodeW-1:0] watch_node_i,
    input logic [IdW-1:0]   watch_id_i
);

  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic [NodeW-1:0] may_node, end_node;
  logic [IdW-1:0] may_read_id, may_write_id, put_id, end_id;
  logic may_read, may_write, put_read, put_write, write_found, write_change, write_end;
  logic read_found, message_valid;
  logic [Slots-1:0] writes_open;
  state_t put_state, write_state, change_state, read_state;

  edm_host_transmit #(
      .Nodes     (Nodes),
      .QueueDepth(2)
  ) dut (
      .clk_i,
      .rst_ni,
      .own_i,
      .access_valid_i,
      .access_ready_o  (),
      .access_i,
      .refused_o       (),
      .refused_tag_o   (),
      .permit_valid_i,
      .permit_take_o   (),
      .permit_i,
      .permit_opens_i,
      .permit_here_i,
      .permit_size_i,
      .word_i,
      .word_take_o     (),
      .unexpected_o    (),
      .may_node_o      (may_node),
      .may_read_id_o   (may_read_id),
      .may_write_id_o  (may_write_id),
      .may_read_i      (may_read),
      .may_write_i     (may_write),
      .writes_open_i   (writes_open != '0),
      .may_from_o      (),
      .may_bytes_o     (),
      .touches_i,
      .put_read_o      (put_read),
      .put_write_o     (put_write),
      .put_id_o        (put_id),
      .put_state_o     (put_state),
      .write_found_i   (write_found),
      .write_state_i   (write_state),
      .write_change_o  (write_change),
      .answer_found_i,
      .answer_state_i,
      .answer_change_o (),
      .answer_put_o    (),
      .answer_closed_o (),
      .change_close_o  (),
      .change_state_o  (change_state),
      .write_end_o     (write_end),
      .write_end_node_o(end_node),
      .write_end_id_o  (end_id),
      .sent_o          (),
      .sent_tag_o      (),
      .read_o          (),
      .read_address_o  (),
      .read_data_i,
      .control_valid_o (),
      .control_ready_i,
      .control_o       (),
      .message_valid_o (message_valid),
      .message_ready_i,
      .message_o       (),
      .message_left_i,
      .down_i
  );

  edm_state_table #(
      .Nodes (Nodes),
      .Active(Active)
  ) u_reads (
      .clk_i,
      .rst_ni,
      .may_node_i     (may_node),
      .may_id_i       (may_read_id),
      .may_o          (may_read),
      .open_o         (),
      .put_i          (put_read),
      .put_node_i     (may_node),
      .put_id_i       (put_id),
      .put_state_i    (put_state),
      .put_closed_i   (1'b0),
      .find_node_i    (close_node_i),
      .find_id_i      (close_id_i),
      .found_o        (read_found),
      .state_o        (read_state),
      .change_i       (close_i && read_found),
      .close_i        (1'b1),
      .change_state_i (read_state),
      .end_i          (1'b0),
      .end_node_i     ('0),
      .end_id_i       ('0),
      .end_found_o    (),
      .expired_o      (),
      .expired_tag_o()
  );

  edm_state_table #(
      .Nodes (Nodes),
      .Active(Active)
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
      .find_node_i    (permit_i.target),
      .find_id_i      (permit_i.id),
      .found_o        (write_found),
      .state_o        (write_state),
      .change_i       (write_change),
      .close_i        (1'b0),
      .change_state_i (change_state),
      .end_i          (write_end),
      .end_node_i     (end_node),
      .end_id_i       (end_id),
      .end_found_o    (),
      .expired_o      (),
      .expired_tag_o()
  );

  // --- The port: it takes blocks while it has room, and what it has leaves. ---

  logic [6:0] port_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      port_q <= '0;
    end else begin
      assume (!message_left_i || port_q != 0);
      assume (message_ready_i == (port_q < 7'd64));
      assume (!down_i);
      // A request is of an answer, and asks for something.
      assume (!permit_opens_i ||
          (!id_of_write(permit_i.id) && permit_i.bytes != 0 && permit_size_i != 0));
      if (Calm != 0) begin
        assume (!permit_valid_i && control_ready_i && own_i == '0 && access_valid_i);
        assume (access_i.kind == (Calm == 1 ? AccessWrite : AccessRead));
        assume (access_i.target == NodeW'(1) && access_i.bytes == DemandW'(9));
      end
      port_q <= port_q + 7'(message_valid && message_ready_i) - 7'(message_left_i);
    end
  end

  // --- What the watched message and its pair do ---

  logic watches_write, put, ends, ends_watched, ends_pair;
  logic open_q, any_q;
  logic [TagW-1:0] tag_q;
  logic [IdW-1:0] last_q;
  logic [NodeW-1:0] watch_node_q, own_q;
  logic [IdW-1:0] watch_id_q;
  logic [3:0] pair_q;

  assign watches_write = id_of_write(watch_id_i);
  assign put = (watches_write ? put_write : put_read) && may_node == watch_node_i;
  assign ends = watches_write ? write_end && end_node == watch_node_i :
      close_i && close_node_i == watch_node_i;
  assign ends_watched = ends && (watches_write ? end_id : close_id_i) == watch_id_i;
  assign ends_pair = ends && (watches_write ? u_writes.end_found_o : read_found);

  always_ff @(posedge clk_i) begin
    watch_node_q <= watch_node_i;
    watch_id_q <= watch_id_i;
    own_q <= own_i;
    assume (32'(watch_node_i) < Nodes);
    if (!rst_ni) begin
      open_q <= 1'b0;
      any_q <= 1'b0;
      pair_q <= '0;
    end else begin
      assume (watch_node_i == watch_node_q && watch_id_i == watch_id_q && own_i == own_q);
      pair_q <= pair_q + 4'(put) - 4'(ends_pair);
      if (ends_watched) open_q <= 1'b0;
      if (put) begin
        any_q <= 1'b1;
        last_q <= put_id;
      end
      if (put && put_id == watch_id_i) begin
        open_q <= 1'b1;
        tag_q <= put_state.tag;
      end

      // unique
      assert (!put || put_id != watch_id_i || !open_q);
      if (watches_write) begin
        if (permit_i.target == watch_node_i && permit_i.id == watch_id_i) begin
          assert (write_found == open_q && (!open_q || write_state.tag == tag_q));
        end
      end else if (close_node_i == watch_node_i && close_id_i == watch_id_i) begin
        assert (read_found == open_q && (!open_q || read_state.tag == tag_q));
      end
      // few
      assert (32'(pair_q) <= Active);
      // turn
      assert (!put || !any_q || put_id[IdW-2:0] == (IdW - 1)'(last_q + 1'b1));
      assert (!put || id_of_write(put_id) == watches_write);
    end
  end

  // --- Invariants ---

  if (Induct) begin : gen_invariants

    logic [NodesW+SlotW-1:0] place;
    logic is_there;
    logic [Slots-1:0] slots;
    logic [3:0] count;
    assign place = {watch_node_i[NodesW-1:0], watch_id_i[SlotW-1:0]};
    always_comb begin
      is_there = watches_write ?
          u_writes.open_q[place] && u_writes.id_q[place] == watch_id_i :
          u_reads.open_q[place] && u_reads.id_q[place] == watch_id_i;
      slots = watches_write ? u_writes.open_q[{watch_node_i[NodesW-1:0], SlotW'(0)}+:Slots] :
          u_reads.open_q[{watch_node_i[NodesW-1:0], SlotW'(0)}+:Slots];
      count = '0;
      for (int unsigned i = 0; i < Slots; i++) count = count + 4'(slots[i]);
    end

    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        assert (is_there == open_q && pair_q == count);
        assert (!open_q || tag_q ==
                (watches_write ? u_writes.state_q[place].tag : u_reads.state_q[place].tag));
        assert (!any_q || last_q[IdW-2:0] == (IdW - 1)'((watches_write ?
                dut.next_write_q[watch_node_i[NodesW-1:0]] :
                dut.next_read_q[watch_node_i[NodesW-1:0]]) - 1'b1));
        assert (dut.queued_q == 8'(port_q) + 8'(message_valid) && port_q <= 7'd64);
        assert (dut.ahead_q <= dut.queued_q);
        // A request that is half out is still at the front.
        assert (dut.lane_q != 2'd1 || (dut.front_valid && dut.front_good && !dut.front_write));
        assert (dut.u_queue.count_q <= 2'd2);
      end
    end

  end

endmodule
