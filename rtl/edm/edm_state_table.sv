// A message state table: what a host keeps of its messages, by node and message id (paper 3.2.1).
//
// Ids of a pair follow one another, so id modulo `Slots` finds the place. A message whose place is
// still taken waits; an id is thus never in use twice. At most `Active` messages of a pair are
// open. With `Replaces` a message takes its place from what is there, and nothing is waited for. One
// that is closed already only ends that.
//
// With a `Timeout`, one place is looked at each cycle, in turn. What has not changed for so many
// cycles is given up, and comes out of `expired_o` (the NULL timer, paper 3.3).
//
// Latency: `find` is combinational, the host's stages have its cycle. Changes are there in the
// next.
module edm_state_table
  import edm_pkg::*;
#(
    parameter int unsigned Nodes = 4,
    parameter int unsigned Active = ActivePerPair,
    parameter int unsigned Timeout = 0,
    parameter bit Replaces = 1'b0,
    localparam int unsigned SlotW = Active > 1 ? $clog2(Active) : 1,
    localparam int unsigned Slots = 2 ** SlotW,
    localparam int unsigned PlaceW = $clog2(Nodes) + SlotW
) (
    input logic clk_i,
    input logic rst_ni,

    // Whether a message of this node may open with this id, and in which places one is open.
    /* verilator lint_off UNUSEDSIGNAL */  // some users have no need of all bits
    input  logic [NodeW-1:0] may_node_i,
    input  logic [IdW-1:0]   may_id_i,
    /* verilator lint_on UNUSEDSIGNAL */
    output logic             may_o,
    output logic [Slots-1:0] open_o,

    // Open a message.
    input logic             put_i,
    input logic [NodeW-1:0] put_node_i,
    input logic [IdW-1:0]   put_id_i,
    input state_t           put_state_i,
    input logic             put_closed_i,

    // Find one, and change it.
    input  logic [NodeW-1:0] find_node_i,
    input  logic [IdW-1:0]   find_id_i,
    output logic             found_o,
    output state_t           state_o,
    input  logic             change_i,
    input  logic             close_i,
    input  state_t           change_state_i,

    // Look for another, and close it.
    input  logic             end_i,
    input  logic [NodeW-1:0] end_node_i,
    input  logic [IdW-1:0]   end_id_i,
    output logic             end_found_o,

    output logic            expired_o,
    output logic [TagW-1:0] expired_tag_o
);

  localparam int unsigned Places = 2 ** PlaceW;
  localparam int unsigned AgeW = Timeout > 0 ? $clog2(Timeout + Places + 1) + 1 : 1;

  if (Nodes < 2 || Nodes > 2 ** NodeW) begin : gen_nodes
    $error("Nodes is %0d: 2 to 512", Nodes);
  end
  if (Active < 1 || Active > 64) begin : gen_active
    $error("Active is %0d: 1 to 64", Active);
  end

  /* verilator lint_off UNUSEDSIGNAL */  // the rest of node and id is compared
  function automatic logic [PlaceW-1:0] place(
      input logic [NodeW-1:0] node, input logic [IdW-1:0] id);
    /* verilator lint_on UNUSEDSIGNAL */
    return {node[$clog2(Nodes)-1:0], id[SlotW-1:0]};
  endfunction

  logic [Places-1:0] open_q;
  logic [IdW-1:0] id_q[Places];
  state_t state_q[Places];
  logic [Slots-1:0] slots;
  logic [PlaceW-1:0] found, ended;

  assign slots = open_q[{may_node_i[$clog2(Nodes)-1:0], SlotW'(0)}+:Slots];
  assign open_o = slots;

  assign may_o = 32'($countones(slots)) < Active && !slots[may_id_i[SlotW-1:0]];

  assign found = place(find_node_i, find_id_i);
  assign found_o = 32'(find_node_i) < Nodes && open_q[found] && id_q[found] == find_id_i;
  assign state_o = state_q[found];
  assign ended = place(end_node_i, end_id_i);
  assign end_found_o = 32'(end_node_i) < Nodes && open_q[ended] && id_q[ended] == end_id_i;

  logic [PlaceW-1:0] look_q;
  if (Timeout > 0) begin : gen_timer
    logic [AgeW-1:0] now_q;
    logic [AgeW-1:0] since_q[Places];
    logic [AgeW-1:0] age;
    logic touched;

    assign age = now_q - since_q[look_q];
    assign touched = (change_i && found == look_q) || (end_i && ended == look_q);
    assign expired_o = open_q[look_q] && age >= AgeW'(Timeout) && !touched;
    assign expired_tag_o = state_q[look_q].tag;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        now_q <= '0;
        look_q <= '0;
      end else begin
        now_q <= now_q + 1'b1;
        look_q <= look_q + 1'b1;
      end
    end

    always_ff @(posedge clk_i) begin
      if (put_i) since_q[place(put_node_i, put_id_i)] <= now_q;
      if (change_i) since_q[found] <= now_q;
    end
  end else begin : gen_no_timer
    assign look_q = '0;
    assign expired_o = 1'b0;
    assign expired_tag_o = '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q <= '0;
    end else begin
      if (expired_o) open_q[look_q] <= 1'b0;
      if (end_i && end_found_o) open_q[ended] <= 1'b0;
      if (change_i && close_i) open_q[found] <= 1'b0;
      if (put_i) open_q[place(put_node_i, put_id_i)] <= !put_closed_i;
      // A place is never taken twice, and only what is there changes.
      assert (!put_i || (32'(put_node_i) < Nodes &&
          (Replaces || !open_q[place(put_node_i, put_id_i)])));
      assert (!change_i || found_o);
    end
  end

  always_ff @(posedge clk_i) begin
    if (change_i && !close_i) state_q[found] <= change_state_i;
    // What takes the place of a message stays if that one changes in the same cycle.
    if (put_i) begin
      id_q[place(put_node_i, put_id_i)] <= put_id_i;
      state_q[place(put_node_i, put_id_i)] <= put_state_i;
    end
  end

endmodule
