// The transmitting side of a host (paper 3.2.1): requests of the application and granted chunks
// become blocks.
//
//   request   2   queue of requests; make the block, and write the state table
//   chunk     3   state table; data buffer; make the block
// A request is an RREQ, an RMWREQ, or the /N/ of a write. It waits at the front of the queue until
// its pair has a free place of X. A read also waits until the pair's writes have left, so that the
// two take effect in order. A write or an RMWREQ waits until the pair's long reads of the same bytes
// are answered. An /N/, which overtakes messages at the port, waits until the requests before it are
// on the line. Requests and chunks take turns, message by message.
//
// A grant for what is not there, or for more than is left of it, is answered with an /N/ of zero
// bytes: the switch has a demand that is longer than its message. One such /N/ waits at a time. It
// goes before the next /N/, which may need the place of that demand, and needs no other order.
//
// Ids of reads have the top bit clear, those of writes have it set (crates/edm/src/host.rs).
module edm_host_transmit
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 4,
    parameter int unsigned Chunk = ChunkBytes,
    parameter int unsigned QueueDepth = 16,
    localparam int unsigned ReadIdW = IdW - 1,
    localparam int unsigned PlacesW = 8
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [NodeW-1:0] own_i,

    // The application. A request that names no other node, or no byte, is refused.
    input  logic            access_valid_i,
    output logic            access_ready_o,
    input  access_t         access_i,
    output logic            refused_o,
    output logic [TagW-1:0] refused_tag_o,

    // What is granted, in one chunk or more.
    input  logic    permit_valid_i,
    output logic    permit_take_o,
    input  permit_t permit_i,
    // A request of a peer: what it asks for, and the word of a short answer.
    input  logic                permit_opens_i,
    input  logic [AddressW-1:0] permit_here_i,
    input  logic [DemandW-1:0]  permit_size_i,
    input  logic [63:0]         word_i,
    output logic                word_take_o,
    output logic   unexpected_o,       // nothing waits for this grant

    // State tables: reads, writes, answers.
    output logic [NodeW-1:0] may_node_o,
    output logic [IdW-1:0]   may_read_id_o,
    output logic [IdW-1:0]   may_write_id_o,
    input  logic             may_read_i,
    input  logic             may_write_i,
    input  logic             writes_open_i,
    output logic [AddressW-1:0] may_from_o,   // what the request changes, if it does
    output logic [DemandW-1:0]  may_bytes_o,
    input  logic             touches_i,       // bytes of an open read
    output logic             put_read_o,
    output logic             put_write_o,
    output logic [IdW-1:0]   put_id_o,
    output state_t           put_state_o,
    input  logic             write_found_i,
    input  state_t           write_state_i,
    output logic             write_change_o,
    input  logic             answer_found_i,
    input  state_t           answer_state_i,
    output logic             answer_change_o,
    output logic             answer_put_o,
    output logic             answer_closed_o,
    output logic             change_close_o,
    output state_t           change_state_o,
    output logic             write_end_o,
    output logic [NodeW-1:0] write_end_node_o,
    output logic [IdW-1:0]   write_end_id_o,

    // A write has left whole.
    output logic            sent_o,
    output logic [TagW-1:0] sent_tag_o,

    // The data buffer: the data come in the next cycle, and stay.
    output logic                read_o,
    output logic [AddressW-1:0] read_address_o,
    input  logic [63:0]         read_data_i,

    // To the port.
    output logic   control_valid_o,
    input  logic   control_ready_i,
    output block_t control_o,
    output logic   message_valid_o,
    input  logic   message_ready_i,
    output block_t message_o,
    input  logic   message_left_i,
    input  logic   down_i
);

  typedef enum logic [1:0] {
    LaneFree,
    LaneRequest,
    LaneChunk
  } lane_e;

  lane_e lane_q, lane_d;
  logic request_turn_q, request_turn_d;
  logic message_valid_q, message_valid_d;
  block_t message_q, message_d;
  logic control_valid_q, control_valid_d;
  block_t control_q, control_d;
  logic control_free;
  logic withdraws, withdraw_valid_q, withdraw_valid_d;
  logic [NodeW-1:0] withdraw_target_q;
  logic [IdW-1:0] withdraw_id_q;
  logic advance;

  assign advance = !message_valid_q || message_ready_i;

  // --- Requests ---

  logic front_valid, front_take;
  access_t front;
  logic front_write, front_good, front_goes, front_waits;
  logic [ReadIdW-1:0] next_read_q[Nodes];
  logic [ReadIdW-1:0] next_write_q[Nodes];
  logic [$clog2(Nodes)-1:0] peer;
  logic [2:0] request_index_q, request_index_d;
  logic [IdW-1:0] request_id_q, request_id;
  logic request_wants, request_goes, request_done;
  logic requests_gone;                // no request is between here and the line

  edm_fifo #(
      .Width($bits(access_t)),
      .Depth(QueueDepth)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .valid_i(access_valid_i),
      .ready_o(access_ready_o),
      .word_i (access_i),
      .valid_o(front_valid),
      .take_i (front_take),
      .word_o (front)
  );

  assign peer = front.target[$clog2(Nodes)-1:0];
  assign front_write = front.kind == AccessWrite;
  assign may_node_o = front_good ? front.target : '0;
  assign may_read_id_o = front_good ? {1'b0, next_read_q[peer]} : '0;
  assign may_write_id_o = front_good ? {1'b1, next_write_q[peer]} : '0;

  always_comb begin
    front_good = 32'(front.target) < Nodes && front.target != own_i;
    unique case (front.kind)
      AccessRead, AccessWrite: if (front.bytes == 0) front_good = 1'b0;
      AccessModify:
      if (!opcode_ok(front.opcode, argument_bytes(front.opcode))) front_good = 1'b0;
      default: front_good = 1'b0;
    endcase
  end

  // A modification changes the word that holds the address.
  assign may_from_o = front_write ? front.there : {front.there[AddressW-1:3], 3'd0};
  assign may_bytes_o = front_write ? front.bytes : DemandW'(8);

  // A message that is half out has gone already.
  assign front_waits = front.kind != AccessRead && touches_i;
  assign front_goes = front_valid && front_good && (lane_q == LaneRequest ||
      ((front_write ? may_write_i : may_read_i && !writes_open_i) && !front_waits));
  assign request_id = lane_q == LaneRequest ? request_id_q : may_read_id_o;

  // The bytes of the request, of which the first is in /MS/.
  localparam int unsigned PayloadW = 8 + 64 * (RequestBlocksMax - 1);
  logic [PayloadW-1:0] payload;
  logic [SizeW:0] payload_count;
  logic [InnerW-1:0] request_inner;
  header_t request_header;
  block_t request_block;

  always_comb begin
    request_header = '0;
    request_header.kind = MessageRreq;
    request_header.last = 1'b1;
    request_header.target = front.target;
    request_header.source = own_i;
    request_header.id = request_id;
    request_header.size = SizeW'(front.bytes);
    payload = PayloadW'(front.there);
    if (front.kind == AccessModify) begin
      request_header.kind = MessageRmw;
      request_header.size = argument_bytes(front.opcode);
      payload = PayloadW'({front.first, front.opcode, front.there});
      if (front.opcode == OpcodeCompareAndSwap) payload[199:136] = front.second;
    end else if (front.bytes[DemandW-1:SizeW] != 0) begin
      request_header.long_size = 1'b1;
      payload = PayloadW'({front.there, front.bytes[DemandW-1:SizeW]});
    end
    request_header.first = payload[7:0];
    payload_count =
        header_bytes(request_header.kind, request_header.long_size, request_header.size);
    request_inner = inner_blocks(payload_count);

    request_done = InnerW'(request_index_q) == request_inner + 1'b1;
    request_block.sync = SyncControl;
    request_block.payload = {request_header, 8'h33};
    if (request_index_q != 0) begin
      request_block.payload = payload[8+64*(32'(request_index_q)-1)+:64];
      request_block.sync = SyncData;
      if (request_done) begin
        request_block.payload = {request_block.payload[55:0], 8'h2d};
        request_block.sync = SyncControl;
      end
    end
  end

  assign request_wants = front_goes && !front_write && lane_q != LaneChunk;

  always_comb begin
    put_read_o = request_goes && lane_q == LaneFree;
    control_free = !control_valid_q || control_ready_i;
    withdraws = withdraw_valid_q && control_free;
    withdraw_valid_d = withdraw_valid_q ? !withdraws : unexpected_o;
    put_write_o = front_goes && front_write && requests_gone && control_free && !withdraw_valid_q;
    put_id_o = front_write ? may_write_id_o : may_read_id_o;
    put_state_o = '{
        there: front.there,
        here: front.here,
        bytes: front.kind == AccessModify ? answer_bytes(front.opcode) : front.bytes,
        done: '0,
        tag: front.tag,
        in_word: 1'b0
    };

    control_valid_d = put_write_o || withdraws || !control_free;
    control_d = control_q;
    if (withdraws) begin
      control_d.sync = SyncControl;
      control_d.payload =
          {3'd0, BatchW'(0), DemandW'(0), withdraw_id_q, withdraw_target_q, 8'h55};
    end
    if (put_write_o) begin
      control_d.sync = SyncControl;
      control_d.payload = {3'd0, BatchW'(0), front.bytes, may_write_id_o, front.target, 8'h55};
    end

    refused_o = front_valid && !front_good;
    refused_tag_o = front.tag;
    front_take = refused_o || put_write_o || (request_goes && request_done);
    request_index_d = request_index_q;
    if (request_goes) request_index_d = request_done ? 3'd0 : request_index_q + 3'd1;
  end

  // --- Chunks: find the message; read the data; make the blocks. ---

  typedef struct packed {
    logic write;
    logic last;                       // the message's last chunk
    logic [NodeW-1:0] target;
    logic [IdW-1:0] id;
    logic [SizeW-1:0] bytes;
    logic [AddressW-1:0] there;
    logic [AddressW-1:0] here;
    logic in_word;
    logic [TagW-1:0] tag;
  } job_t;

  typedef struct packed {
    logic first;
    logic second;
    logic last;
    logic [2:0] rest;                 // bytes in /MT/
    job_t job;
  } step_t;

  logic job_valid_q, job_valid_d;
  job_t job_q, job_d;
  logic [InnerW-1:0] index_q, index_d;
  logic step_valid_q, step_valid_d;
  step_t step_q, step_d;
  logic chunk_wants, chunk_goes, step_moves, job_done, chunk_write, chunk_found;

  state_t found, changed, asked;
  logic opens;                        // the first chunk of a request
  logic [DemandW-1:0] used_q, used_d;  // of this permit
  logic begun_q, begun_d;             // whether some of it is
  logic [DemandW-1:0] left, permitted;
  logic [SizeW-1:0] granted;
  logic job_begins;

  assign chunk_write = id_of_write(permit_i.id);
  // What is before a request in the grant queue is of the older answer in its place.
  assign opens = permit_opens_i && !begun_q;
  assign found = chunk_write ? write_state_i : opens ? asked : answer_state_i;
  assign chunk_found = chunk_write ? write_found_i : opens || answer_found_i;

  assign asked = '{
      there: word_i,
      here: permit_here_i,
      bytes: permit_size_i,
      done: '0,
      tag: '0,
      in_word: permit_size_i <= 32'd8
  };

  always_comb begin
    left = found.bytes - found.done;
    permitted = permit_i.bytes - used_q;
    granted = SizeW'(Chunk);
    if (left < DemandW'(granted)) granted = SizeW'(left);
    if (permitted < DemandW'(granted)) granted = SizeW'(permitted);
    changed = found;
    changed.done = found.done + DemandW'(granted);

    job_begins = permit_valid_i && (!job_valid_q || (job_done && step_moves));
    unexpected_o = job_begins && (!chunk_found || granted == 0);
    permit_take_o = job_begins && (unexpected_o || permitted == DemandW'(granted));
    used_d = used_q;
    if (job_begins) used_d = permit_take_o ? '0 : used_q + DemandW'(granted);
    begun_d = job_begins ? !permit_take_o : begun_q;
    write_change_o = job_begins && chunk_write && !unexpected_o;
    answer_put_o = job_begins && opens;
    answer_closed_o = changed.done == found.bytes;
    word_take_o = answer_put_o && asked.in_word;
    answer_change_o = job_begins && !chunk_write && !unexpected_o && !opens;
    change_close_o = !chunk_write && answer_closed_o;
    change_state_o = changed;

    job_valid_d = job_valid_q && !(job_done && step_moves);
    job_d = job_q;
    if (job_begins && !unexpected_o) begin
      job_valid_d = 1'b1;
      job_d.write = chunk_write;
      job_d.last = answer_closed_o;
      job_d.target = permit_i.target;
      job_d.id = permit_i.id;
      job_d.bytes = granted;
      job_d.there = found.in_word ? found.there >> {found.done[2:0], 3'd0} :
          found.there + AddressW'(found.done);
      job_d.here = found.here + AddressW'(found.done);
      job_d.in_word = found.in_word;
      job_d.tag = found.tag;
    end
  end

  logic [SizeW:0] job_bytes;
  logic [InnerW-1:0] job_inner;
  logic job_single;
  always_comb begin
    job_bytes = 17'(job_q.bytes) + (job_q.write ? 17'd8 : 17'd0);
    job_inner = inner_blocks(job_bytes);
    job_single = job_bytes <= 17'd1;
    job_done = job_single || index_q == job_inner + 1'b1;

    step_moves = job_valid_q && (!step_valid_q || chunk_goes);
    index_d = step_moves ? (job_done ? '0 : index_q + 1'b1) : index_q;
    step_valid_d = job_valid_q || (step_valid_q && !chunk_goes);
    step_d = step_q;
    if (step_moves) begin
      step_d.job = job_q;
      step_d.first = index_q == 0;
      step_d.second = index_q == 1;
      step_d.last = job_done;
      step_d.rest = 3'(job_bytes - 17'd1 - (17'(job_inner) << 3));
    end

    // The payload of a write begins with the address: its data are eight bytes later.
    read_o = step_moves;
    read_address_o = job_q.here;
    if (index_q > InnerW'(job_q.write)) begin
      read_address_o = job_q.here + 64'd1 + ((64'(index_q) - 64'd1 - 64'(job_q.write)) << 3);
    end
  end

  logic [63:0] data;
  header_t chunk_header;
  block_t chunk_block;
  always_comb begin
    data = read_data_i;
    if (step_q.job.in_word) data = step_q.first ? step_q.job.there : step_q.job.there >> 8;
    if (step_q.job.write && step_q.second) data = {data[7:0], step_q.job.there[63:8]};
    chunk_header = '0;
    chunk_header.kind = step_q.job.write ? MessageWreq : MessageRres;
    chunk_header.last = step_q.job.last;
    chunk_header.target = step_q.job.target;
    chunk_header.source = own_i;
    chunk_header.id = step_q.job.id;
    chunk_header.size = step_q.job.bytes;
    chunk_header.first = step_q.job.write ? step_q.job.there[7:0] : data[7:0];

    chunk_block.sync = step_q.first || step_q.last ? SyncControl : SyncData;
    chunk_block.payload = data;
    if (step_q.first) begin
      chunk_block.payload = {chunk_header, step_q.last ? 8'h00 : 8'h33};
    end else if (step_q.last) begin
      chunk_block.payload = {56'(first_bytes(data, {1'b0, step_q.rest})), 8'h2d};
    end
  end

  assign chunk_wants = step_valid_q && lane_q != LaneRequest;

  // --- The lane: a message of either at a time. ---

  always_comb begin
    request_goes = advance && request_wants &&
        (lane_q == LaneRequest || request_turn_q || !chunk_wants);
    chunk_goes = advance && chunk_wants && !request_goes;

    lane_d = lane_q;
    request_turn_d = request_turn_q;
    if (request_goes) begin
      lane_d = request_done ? LaneFree : LaneRequest;
      request_turn_d = 1'b0;
    end
    if (chunk_goes) begin
      lane_d = step_q.last ? LaneFree : LaneChunk;
      request_turn_d = 1'b1;
    end

    message_valid_d = request_goes || chunk_goes || (message_valid_q && !advance);
    message_d = request_goes ? request_block : chunk_goes ? chunk_block : message_q;

    write_end_o = chunk_goes && step_q.last && step_q.job.write && step_q.job.last;
    write_end_node_o = step_q.job.target;
    write_end_id_o = step_q.job.id;
    sent_o = write_end_o;
    sent_tag_o = step_q.job.tag;
  end

  // Blocks between here and the line; of these, those up to the last of a request.
  logic [PlacesW-1:0] queued_q, queued_d, ahead_q, ahead_d;
  assign requests_gone = ahead_q == 0;
  always_comb begin
    queued_d = queued_q + PlacesW'(request_goes || chunk_goes) - PlacesW'(message_left_i);
    ahead_d = ahead_q - PlacesW'(message_left_i && !requests_gone);
    if (request_goes) ahead_d = queued_d;
    if (down_i) begin
      queued_d = '0;
      ahead_d = '0;
    end
  end

  assign control_valid_o = control_valid_q;
  assign control_o = control_q;
  assign message_valid_o = message_valid_q;
  assign message_o = message_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      queued_q <= '0;
      ahead_q <= '0;
      lane_q <= LaneFree;
      request_turn_q <= 1'b0;
      message_valid_q <= 1'b0;
      message_q <= '0;
      control_valid_q <= 1'b0;
      control_q <= '0;
      withdraw_valid_q <= 1'b0;
      withdraw_target_q <= '0;
      withdraw_id_q <= '0;
      request_index_q <= '0;
      request_id_q <= '0;
      used_q <= '0;
      begun_q <= 1'b0;
      job_valid_q <= 1'b0;
      job_q <= '0;
      index_q <= '0;
      step_valid_q <= 1'b0;
      step_q <= '0;
      for (int unsigned n = 0; n < Nodes; n++) begin
        next_read_q[n] <= '0;
        next_write_q[n] <= '0;
      end
    end else begin
      queued_q <= queued_d;
      ahead_q <= ahead_d;
      lane_q <= lane_d;
      request_turn_q <= request_turn_d;
      message_valid_q <= message_valid_d;
      message_q <= message_d;
      control_valid_q <= control_valid_d;
      control_q <= control_d;
      withdraw_valid_q <= withdraw_valid_d;
      if (unexpected_o && !withdraw_valid_q) begin
        withdraw_target_q <= permit_i.target;
        withdraw_id_q <= permit_i.id;
      end
      request_index_q <= request_index_d;
      request_id_q <= request_id;
      used_q <= used_d;
      begun_q <= begun_d;
      job_valid_q <= job_valid_d;
      job_q <= job_d;
      index_q <= index_d;
      step_valid_q <= step_valid_d;
      step_q <= step_d;
      if (put_read_o) next_read_q[peer] <= next_read_q[peer] + 1'b1;
      if (put_write_o) next_write_q[peer] <= next_write_q[peer] + 1'b1;

      // One message at a time is on its way, and a read never passes a write of its pair.
      assert (!request_goes || !chunk_goes);
      assert (!put_read_o || !writes_open_i);
      // A request is of an answer, and grants some of it.
      assert (!answer_put_o || (!chunk_write && !unexpected_o));
      assert (begun_q || used_q == 0);
      // The queue of the port and the register before it.
      assert (queued_q <= PlacesW'(65));
    end
  end

endmodule
