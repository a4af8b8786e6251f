// Properties of the receiving side of a host: the lock of an RMWREQ.
//
//   released  the lock is held for one cycle
//   alone     between its read and its write nothing else reads or writes the memory, and what is
//             written is the word that was read, changed as the opcode says
//
// The inputs are any blocks, in any order, and any memory, tables and peers. The induction needs
// nothing of them.
module formal_lock
  import edm_pkg::*;
#(
    parameter bit Induct = 1'b0  // with the invariants of the induction
) (
    input logic clk_i,
    input logic [NodeW-1:0] own_i,
    input logic   memory_valid_i,
    input block_t memory_i,
    input logic   read_found_i,
    input state_t read_state_i,
    input logic [63:0] read_data_i
);

  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic read, write;
  logic [AddressW-1:0] read_address, write_address;
  logic [63:0] write_data;
  logic [3:0] write_bytes;

  edm_host_receive #(
      .Nodes  (2),
      .Active (1),
      .Timeout(4)
  ) dut (
      .clk_i,
      .rst_ni,
      .own_i,
      .memory_valid_i,
      .memory_i,
      .permit_valid_o    (),
      .permit_o          (),
      .permit_opens_o    (),
      .permit_here_o     (),
      .permit_size_o     (),
      .read_node_o       (),
      .read_id_o         (),
      .read_found_i,
      .read_state_i,
      .read_change_o     (),
      .read_close_o      (),
      .read_state_o      (),
      .word_o            (),
      .word_data_o       (),
      .read_o            (read),
      .read_address_o    (read_address),
      .read_data_i,
      .write_o           (write),
      .write_address_o   (write_address),
      .write_data_o      (write_data),
      .write_bytes_o     (write_bytes),
      .answered_o        (),
      .answered_null_o   (),
      .answered_tag_o    (),
      .written_o         (),
      .unexpected_count_o()
  );

  // --- Properties ---

  // What the cycle before has read, for whom.
  logic modifies_q, wrote_q, locked_q;
  logic [AddressW-1:0] read_address_q;
  memory_op_t op_q;

  logic [63:0] expected;
  always_comb begin
    unique case (op_q.opcode)
      OpcodeCompareAndSwap: expected = op_q.second;
      OpcodeFetchAndAdd: expected = read_data_i + op_q.data;
      default: expected = op_q.data;
    endcase
  end

  always_ff @(posedge clk_i) begin
    modifies_q <= read && dut.front.kind == MemoryModify;
    wrote_q <= write;
    locked_q <= dut.lock_q;
    read_address_q <= read_address;
    op_q <= dut.front;
    if (rst_ni) begin
      // released
      assert (!dut.lock_q || !locked_q);
      // alone
      assert (dut.lock_q == modifies_q);
      if (dut.lock_q) begin
        assert (!wrote_q && !read);
        assert (read_address_q[2:0] == 0 && write_address == read_address_q);
        assert (write == (op_q.opcode != OpcodeCompareAndSwap || read_data_i == op_q.data));
        assert (!write || (write_data == expected && write_bytes == 4'd8));
      end
    end else begin
      modifies_q <= 1'b0;
      locked_q <= 1'b0;
    end
  end

  // --- Invariants: how much waits for the memory, so that neither queue is ever full ---

  if (Induct) begin : gen_invariants

  // Cycles that the memory still has to do, and answers that hold up a grant.
  logic [3:0] work, answers, grants;
  logic opens;

  function automatic logic is_modify(input memory_op_t op);
    return op.kind == MemoryModify;
  endfunction
  function automatic logic is_answer(input memory_op_t op);
    return op.kind == MemoryModify || op.kind == MemoryServe;
  endfunction

  always_comb begin
    work = '0;
    answers = '0;
    for (int unsigned i = 0; i < 4; i++) begin
      if (i < 32'(dut.u_queue.count_q)) begin
        work = work + 4'd1 +
            4'(is_modify(memory_op_t'(dut.u_queue.words_q[2'(32'(dut.u_queue.front_q) + i)])));
        answers = answers +
            4'(is_answer(memory_op_t'(dut.u_queue.words_q[2'(32'(dut.u_queue.front_q) + i)])));
      end
    end
    if (dut.lock_q) begin
      work = work - 4'd1;
      answers = answers - 4'd1;
    end
    if (dut.op_valid_q) answers = answers + 4'(is_answer(dut.op_q));
    grants = 4'(dut.u_grants.count_q);
    opens = dut.good_q && (dut.open_q.kind == MessageRmw || dut.open_q.kind == MessageRreq);
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (dut.u_queue.count_q <= 3'd4 && dut.u_grants.count_q <= 3'd4);
      assert (!opens || !dut.op_valid_q);
      assert (work <= (dut.op_valid_q && is_modify(dut.op_q) ? 4'd1 : 4'd2));
      assert (answers + grants <= (opens ? 4'd2 : 4'd3));
    end
  end

  end

endmodule
