// The receiving side of a host (paper 3.2.1): blocks become grants, accesses to the memory, and
// answers to the application.
//
//   /G/          2   parse; to the grant queue
//   RREQ         3   parse; queue; to the memory, and to the grant queue as the first chunk's grant
//   WREQ, RRES   3   parse; address; to the memory or the application
// Blocks of data are written as they come. A message that is cut off or does not fit what was asked
// for is counted in `unexpected_o`, and never says that it is whole.
//
// A /G/ may overtake its request. One sum of such is kept for each place of the table of answers.
// The next request or /G/ in the place ends what was there for another id. A sum whose request does
// not come within a timeout goes to the transmitting side, which withdraws it.
//
// A request is served whatever is open in its place: its peer has given that up. It goes through the
// grant queue, behind what is granted of the older answer, and ends that one there.
//
// An RMWREQ reads, changes and writes its word in two cycles. What comes behind it waits, so
// nothing comes between. An answer of up to eight bytes is read when its request comes, a longer
// one when its chunks are granted.
module edm_host_receive
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 4,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned Chunk = ChunkBytes,
    parameter int unsigned Timeout = 390625,
    localparam int unsigned SlotW = Active > 1 ? $clog2(Active) : 1,
    localparam int unsigned PlaceW = $clog2(Nodes) + SlotW,
    localparam int unsigned Places = 2 ** PlaceW,
    // A withdrawal leaves before the next one lapses, but behind a long chunk.
    localparam int unsigned LookCycles = 16,
    localparam int unsigned LookW = $clog2(LookCycles),
    localparam int unsigned AgeW = $clog2(Timeout + Places * LookCycles + 1) + 1
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [NodeW-1:0] own_i,

    // From the port.
    input logic   memory_valid_i,
    input block_t memory_i,

    // To the grant queue. A request opens an answer: what it asks for.
    output logic    permit_valid_o,
    output permit_t permit_o,
    output logic    permit_opens_o,
    output logic [AddressW-1:0] permit_here_o,
    output logic [DemandW-1:0]  permit_size_o,

    // State table of reads.
    output logic [NodeW-1:0] read_node_o,
    output logic [IdW-1:0]   read_id_o,
    input  logic             read_found_i,
    input  state_t           read_state_i,
    output logic             read_change_o,
    output logic             read_close_o,
    output state_t           read_state_o,

    // The word of an answer of up to eight bytes, in the cycle after its request.
    output logic        word_o,
    output logic [63:0] word_data_o,

    // The memory: what is read comes in the next cycle.
    output logic                read_o,
    output logic [AddressW-1:0] read_address_o,
    input  logic [63:0]         read_data_i,
    output logic                write_o,
    output logic [AddressW-1:0] write_address_o,
    output logic [63:0]         write_data_o,
    output logic [3:0]          write_bytes_o,

    // A read is answered, with data or NULL; a write to this node is whole.
    output logic            answered_o,
    output logic            answered_null_o,
    output logic [TagW-1:0] answered_tag_o,
    output logic            written_o,

    output logic [31:0] unexpected_count_o
);

  // --- Parse ---

  logic valid_q;
  block_t block_q;
  kind_e kind;
  logic starts;
  header_t header;

  always_comb begin
    kind = KindBad;
    if (valid_q) kind = kind_of(block_q);
  end
  assign header = block_q.payload[63:8];
  assign starts = kind == KindMs || kind == KindMst;

  // --- /G/ ---

  permit_t grant, grant_front;
  logic grant_good, grant_ready, grant_waits, grant_take;

  assign grant.target = block_q.payload[16:8];
  assign grant.id = block_q.payload[24:17];
  assign grant.bytes = DemandW'(block_q.payload[40:25]);
  assign grant_good = block_q.payload[63:41] == 0 && 32'(grant.target) < Nodes && grant.bytes != 0;

  // A request that comes in the same cycle goes first.
  edm_fifo #(
      .Width($bits(permit_t)),
      .Depth(4)
  ) u_grants (
      .clk_i,
      .rst_ni,
      .valid_i(valid_q && kind == KindGrant && grant_good),
      .ready_o(grant_ready),
      .word_i (grant),
      .valid_o(grant_waits),
      .take_i (grant_take),
      .word_o (grant_front)
  );

  // --- Messages: the header, then the payload, of which the first byte is in the header. ---

  header_t open_q, open_d;
  logic good_q, good_d;               // the message makes sense here
  logic [SizeW:0] left_q, left_d;     // bytes of payload to come
  logic [2:0] index_q, index_d;       // blocks after /MS/, as far as requests go
  logic [AddressW-1:0] address_q, address_d;  // of the next data
  logic [15:0] high_q, high_d;
  logic [7:0] opcode_q, opcode_d;
  logic [63:0] first_q, first_d, second_q, second_d;
  state_t state_q, state_d;           // of the read that is answered
  memory_op_t op;
  logic op_valid, unexpected, answer_fits;

  logic [DemandW-1:0] answer_done;
  assign answer_done = read_state_i.done + DemandW'(header.size);
  // Nothing is written outside what the application has asked for.
  assign answer_fits = read_found_i && (header.size == 0 ? header.last :
      answer_done >= read_state_i.done && answer_done <= read_state_i.bytes &&
      header.last == (answer_done == read_state_i.bytes));

  logic [DemandW-1:0] request_bytes;
  assign request_bytes = open_q.kind == MessageRmw ? answer_bytes(opcode_q) :
      open_q.long_size ? {high_q, open_q.size} : DemandW'(open_q.size);

  always_comb begin : message
    logic [3:0] bytes;
    logic [63:0] data;
    logic padded;

    open_d = open_q;
    good_d = good_q;
    left_d = left_q;
    index_d = index_q;
    address_d = address_q;
    high_d = high_q;
    opcode_d = opcode_q;
    first_d = first_q;
    second_d = second_q;
    state_d = state_q;
    unexpected = 1'b0;
    op_valid = 1'b0;
    op = '0;
    op.peer = open_q.source;
    op.id = open_q.id;
    op.address = address_q;
    op.tag = state_q.tag;

    read_node_o = starts ? header.source : open_q.source;
    read_id_o = starts ? header.id : open_q.id;
    read_change_o = 1'b0;
    read_close_o = 1'b0;
    read_state_o = read_state_i;

    // The data of this block.
    data = kind == KindMt ? {8'd0, block_q.payload[63:8]} : block_q.payload;
    bytes = left_q < 17'd8 ? 4'(left_q) : 4'd8;
    padded = first_bytes(data, bytes) == data;

    if (valid_q && starts) begin
      open_d = header;
      good_d = header.target == own_i && 32'(header.source) < Nodes && header.source != own_i;
      if (header.kind == MessageRres && !answer_fits) good_d = 1'b0;
      left_d = header_bytes(header.kind, header.long_size, header.size);
      if (left_d != 0) left_d = left_d - 1'b1;
      index_d = '0;
      state_d = read_state_i;
      address_d = AddressW'(header.first);
      high_d = 16'(header.first);
      op.tag = read_state_i.tag;
      if (good_d && header.kind == MessageRres) begin
        // The timer begins anew; the chunk counts when it is whole.
        read_change_o = 1'b1;
        op.address = read_state_i.here + AddressW'(read_state_i.done);
        op.data = 64'(header.first);
        op.bytes = 4'd1;
        op.kind = header.size == 0 ? MemoryNothing : MemoryWrite;
        op_valid = header.size != 0;
        address_d = op.address + 1'b1;
        if (kind == KindMst) begin
          op_valid = 1'b1;
          read_close_o = header.last;
          read_state_o.done = answer_done;
          op.answered = header.last;
          op.null_answer = header.size == 0;
        end
      end
      unexpected = !good_d;
    end else if (valid_q && kind == KindData) begin
      index_d = index_q == '1 ? index_q : index_q + 1'b1;
      left_d = left_q - 17'(bytes);
      op.data = data;
      op.bytes = bytes;
      op.kind = MemoryWrite;
      unique case (open_q.kind)
        MessageRreq: begin
          high_d = {data[7:0], high_q[7:0]};
          address_d = {8'd0, data[63:8]};
        end
        MessageRmw: begin
          if (index_q == 0) address_d = {data[55:0], address_q[7:0]};
          if (index_q == 0) opcode_d = data[63:56];
          if (index_q == 1) first_d = data;
          if (index_q == 2) second_d = data;
        end
        MessageWreq: begin
          address_d = address_q + 64'd8;
          op_valid = good_q;
          if (index_q == 0) begin
            op.address = {data[55:0], address_q[7:0]};
            op.data = 64'(data[63:56]);
            op.bytes = 4'd1;
            address_d = op.address + 1'b1;
            if (bytes != 4'd8) op_valid = 1'b0;
          end
        end
        default: begin
          address_d = address_q + 64'd8;
          op_valid = good_q;
        end
      endcase
      if (!padded) good_d = 1'b0;
      if (good_q && !padded) unexpected = 1'b1;
    end else if (valid_q && kind == KindMt) begin
      op.data = data;
      op.bytes = bytes;
      op.second = second_q;
      op.opcode = opcode_q;
      op.size = request_bytes;
      op_valid = good_q && padded;
      unique case (open_q.kind)
        MessageRreq: begin
          op.kind = MemoryServe;
          op.address = open_q.long_size ? {data[7:0], address_q[55:0]} :
              {data[55:0], address_q[7:0]};
          if (request_bytes == 0 || (open_q.long_size && high_q == 0)) op_valid = 1'b0;
        end
        MessageRmw: begin
          op.kind = MemoryModify;
          op.data = first_q;
          if (!opcode_ok(opcode_q, open_q.size)) op_valid = 1'b0;
        end
        MessageWreq: begin
          // Without an /MD/ there were no data, the address alone.
          op.kind = bytes == 0 || index_q == 0 ? MemoryNothing : MemoryWrite;
          op.written = open_q.last;
        end
        default: begin
          op.kind = bytes == 0 ? MemoryNothing : MemoryWrite;
          // The timer may have given the read up since.
          if (!read_found_i) op_valid = 1'b0;
          read_change_o = op_valid;
          read_close_o = open_q.last;
          read_state_o.done = state_q.done + DemandW'(open_q.size);
          op.answered = open_q.last;
        end
      endcase
      unexpected = good_q && !op_valid;
      good_d = 1'b0;
    end
    if (valid_q && kind == KindGrant) unexpected = !grant_good || !grant_ready;
    if (valid_q && kind == KindNotify) unexpected = 1'b1;
  end

  // --- To the memory, in order. ---

  logic op_valid_q;
  memory_op_t op_q, front;
  logic front_valid, front_take, queue_ready;

  edm_fifo #(
      .Width($bits(memory_op_t)),
      .Depth(4)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .valid_i(op_valid_q),
      .ready_o(queue_ready),
      .word_i (op_q),
      .valid_o(front_valid),
      .take_i (front_take),
      .word_o (front)
  );

  // An RMWREQ has the memory for two cycles: `lock_q` is set in the second.
  logic lock_q, lock_d;
  // In the cycle in which what was read is there.
  logic word_valid_q, word_valid_d;
  logic word_compares_q;
  logic [3:0] word_bytes_q;
  logic [63:0] word_expected_q;
  logic serves, opens;
  logic [63:0] changed;
  logic swaps;

  // Grants that have overtaken their request; more below.
  typedef struct packed {
    logic [IdW-1:0] id;
    logic [DemandW-1:0] bytes;
    logic [AgeW-1:0] since;           // its first /G/
  } early_t;

  logic [Places-1:0] early_valid_q, early_valid_d;
  early_t early_q[Places];
  early_t early_d;
  logic [PlaceW-1:0] early_place, answer_place, look_q;
  logic [AgeW-1:0] now_q, early_age;
  logic grant_early, early_put, early_same, answer_same, early_ends;
  logic looks, early_old, early_lapses;

  always_comb begin
    serves = front_valid && !lock_q &&
        (front.kind == MemoryServe || front.kind == MemoryModify);
    opens = serves && !id_of_write(front.id);
    lock_d = opens && front.kind == MemoryModify;
    front_take = front_valid && !lock_d;

    // A modification is of the word that holds the address.
    read_o = opens;
    read_address_o = front.kind == MemoryModify ? {front.address[63:3], 3'd0} : front.address;
    word_valid_d = opens && front.size <= 32'd8;

    unique case (front.opcode)
      OpcodeCompareAndSwap: changed = front.second;
      OpcodeFetchAndAdd: changed = read_data_i + front.data;
      default: changed = front.data;
    endcase
    swaps = front.opcode != OpcodeCompareAndSwap || read_data_i == front.data;

    write_o = front_valid && (lock_q ? swaps : front.kind == MemoryWrite);
    write_address_o = lock_q ? {front.address[63:3], 3'd0} : front.address;
    write_data_o = lock_q ? changed : front.data;
    write_bytes_o = lock_q ? 4'd8 : front.bytes;

    word_o = word_valid_q;
    word_data_o = word_compares_q ? 64'(read_data_i == word_expected_q) :
        first_bytes(read_data_i, word_bytes_q);

    answered_o = front_valid && !lock_q && front.answered;
    answered_null_o = front.null_answer;
    answered_tag_o = front.tag;
    written_o = front_valid && !lock_q && front.written;

  end

  // A request is the grant of its first chunk, and of those whose /G/ has come before it.
  always_comb begin
    grant_take = grant_waits && !opens;
    permit_valid_o = opens || (grant_take && !grant_early) || early_lapses;
    permit_opens_o = opens;
    permit_here_o = front.address;
    permit_size_o = front.size;
    permit_o = grant_front;
    if (early_lapses) begin
      permit_o.target = NodeW'(look_q[PlaceW-1:SlotW]);
      permit_o.id = early_q[look_q].id;
    end
    if (opens) begin
      permit_o.target = front.peer;
      permit_o.id = front.id;
      permit_o.bytes = front.size > 32'(Chunk) ? DemandW'(Chunk) : front.size;
      if (answer_same) permit_o.bytes += early_q[answer_place].bytes;
    end
  end

  // --- Grants that have overtaken their request, which is longer: kept until it comes. ---

  // The last request in each place. A grant for its answer finds it at the transmitting side, which
  // withdraws one for an answer that is over.
  logic [Places-1:0] asked_valid_q;
  logic [IdW-1:0] asked_q[Places];

  assign early_place = {grant_front.target[$clog2(Nodes)-1:0], grant_front.id[SlotW-1:0]};
  assign answer_place = {front.peer[$clog2(Nodes)-1:0], front.id[SlotW-1:0]};
  assign grant_early = !id_of_write(grant_front.id) &&
      !(asked_valid_q[early_place] && asked_q[early_place] == grant_front.id);
  assign early_put = grant_take && grant_early;

  assign early_same = early_valid_q[early_place] && early_q[early_place].id == grant_front.id;
  assign answer_same = early_valid_q[answer_place] && early_q[answer_place].id == front.id;
  // Of what was there for another id nothing will come any more.
  assign early_ends = (opens && early_valid_q[answer_place] && !answer_same) ||
      (early_put && early_valid_q[early_place] && !early_same);

  // One place is looked at in so many cycles, in turn. What has had no request for a timeout lapses,
  // when nothing else goes to the grant queue.
  assign early_age = now_q - early_q[look_q].since;
  assign early_old = early_valid_q[look_q] && early_age >= AgeW'(Timeout);
  assign looks = now_q[LookW-1:0] == '0;
  assign early_lapses = looks && early_old && !grant_waits && !opens;

  always_comb begin
    early_d = '{id: grant_front.id, bytes: grant_front.bytes, since: now_q};
    if (early_same) begin
      early_d.bytes += early_q[early_place].bytes;
      early_d.since = early_q[early_place].since;
    end
    early_valid_d = early_valid_q;
    if (early_lapses) early_valid_d[look_q] = 1'b0;
    if (opens) early_valid_d[answer_place] = 1'b0;
    if (early_put) early_valid_d[early_place] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (early_put) early_q[early_place] <= early_d;
    if (opens) asked_q[answer_place] <= front.id;
  end

  logic [31:0] unexpected_count_q;
  assign unexpected_count_o = unexpected_count_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      block_q <= BlockIdle;
      open_q <= '0;
      good_q <= 1'b0;
      left_q <= '0;
      index_q <= '0;
      address_q <= '0;
      high_q <= '0;
      opcode_q <= '0;
      first_q <= '0;
      second_q <= '0;
      state_q <= '0;
      op_valid_q <= 1'b0;
      op_q <= '0;
      early_valid_q <= '0;
      asked_valid_q <= '0;
      now_q <= '0;
      look_q <= '0;
      lock_q <= 1'b0;
      word_valid_q <= 1'b0;
      word_compares_q <= 1'b0;
      word_bytes_q <= '0;
      word_expected_q <= '0;
      unexpected_count_q <= '0;
    end else begin
      valid_q <= memory_valid_i;
      if (memory_valid_i) block_q <= memory_i;
      if (valid_q) begin
        open_q <= open_d;
        good_q <= good_d;
        left_q <= left_d;
        index_q <= index_d;
        address_q <= address_d;
        high_q <= high_d;
        opcode_q <= opcode_d;
        first_q <= first_d;
        second_q <= second_d;
        state_q <= state_d;
      end
      op_valid_q <= op_valid;
      if (op_valid) op_q <= op;
      early_valid_q <= early_valid_d;
      if (opens) asked_valid_q[answer_place] <= 1'b1;
      now_q <= now_q + 1'b1;
      if (looks) look_q <= look_q + 1'b1;
      lock_q <= lock_d;
      word_valid_q <= word_valid_d;
      if (word_valid_d) begin
        word_compares_q <= front.kind == MemoryModify && front.opcode == OpcodeCompareAndSwap;
        word_bytes_q <= 4'(front.size);
        word_expected_q <= front.data;
      end
      if (unexpected_count_q[31:2] != '1) begin
        unexpected_count_q <= unexpected_count_q + 32'(unexpected) + 32'(early_ends) +
            32'(serves && !opens);
      end

      // A line is never faster than the memory.
      assert (!op_valid_q || queue_ready);
      assert (!valid_q || kind != KindGrant || grant_ready);
      // Between the read and the write of a modification there is nothing.
      assert (!lock_q || (front_valid && front.kind == MemoryModify));
    end
  end

endmodule
