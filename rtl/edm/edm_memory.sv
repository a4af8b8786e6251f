// The memory of a node, as far as EDM goes: eight banks of bytes, so that any eight bytes in a row
// are read or written in a cycle, wherever they begin.
//
// Two can read: the host's receiver (an RREQ's or RMWREQ's word) and its transmitter (the data of
// chunks); what they read stays until the next read. The node's processor has the rest of the
// cycles: it writes when EDM does not, and reads through a third port. Addresses beyond the memory
// read as zero and are not written, and are counted.
//
// Latency: 1 cycle. A read in the cycle of a write gets what was there before.
module edm_memory
  import edm_pkg::*;
#(
    parameter int unsigned Bytes = 65536
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                receive_read_i,
    input  logic [AddressW-1:0] receive_address_i,
    output logic [63:0]         receive_data_o,
    input  logic                transmit_read_i,
    input  logic [AddressW-1:0] transmit_address_i,
    output logic [63:0]         transmit_data_o,
    input  logic                write_i,
    input  logic [AddressW-1:0] write_address_i,
    input  logic [63:0]         write_data_i,
    input  logic [3:0]          write_bytes_i,

    input  logic                cpu_write_i,
    output logic                cpu_ready_o,
    input  logic                cpu_read_i,
    input  logic [AddressW-1:0] cpu_address_i,
    input  logic [63:0]         cpu_write_data_i,
    output logic [63:0]         cpu_read_data_o,

    output logic [31:0] outside_count_o
);

  localparam int unsigned RowW = $clog2(Bytes) - 3;
  localparam int unsigned Rows = 2 ** RowW;

  if (Bytes < 64 || 2 ** $clog2(Bytes) != Bytes) begin : gen_bytes
    $error("Bytes is %0d: a power of two, at least 64", Bytes);
  end

  // Whether this many bytes from an address on are in the memory.
  function automatic logic fits(input logic [AddressW-1:0] address, input logic [3:0] bytes);
    return address < AddressW'(Bytes) && address + AddressW'(bytes) <= AddressW'(Bytes);
  endfunction

  // Eight bytes from an address on are in its row and in the next one.
  function automatic logic [RowW-1:0] row_at(
      input logic [RowW-1:0] row, input logic [2:0] first, input logic [2:0] bank);
    return bank < first ? row + 1'b1 : row;
  endfunction

  logic write, write_inside;
  logic [AddressW-1:0] write_address;
  logic [63:0] write_data;
  logic [3:0] write_bytes;

  assign cpu_ready_o = !write_i;
  assign write = write_i || cpu_write_i;
  assign write_address = write_i ? write_address_i : cpu_address_i;
  assign write_data = write_i ? write_data_i : cpu_write_data_i;
  assign write_bytes = write_i ? write_bytes_i : 4'd8;
  assign write_inside = fits(write_address, write_bytes);

  logic [2:0][AddressW-1:0] address;
  logic [2:0] reads;
  logic [2:0][63:0] data;

  assign address = {cpu_address_i, transmit_address_i, receive_address_i};
  assign reads = {cpu_read_i, transmit_read_i, receive_read_i};
  assign receive_data_o = data[0];
  assign transmit_data_o = data[1];
  assign cpu_read_data_o = data[2];

  logic [2:0][7:0][7:0] byte_q;       // by reader, then bank
  logic [2:0][2:0] turn_q;            // the bank of the first byte
  logic [2:0][1:0] there_q;           // whether its row is in the memory, and the next one

  for (genvar b = 0; b < 8; b++) begin : gen_bank
    logic [7:0] bank_q[Rows];
    logic [2:0] write_place;

    // Which of the bytes is in this bank.
    assign write_place = 3'(b) - write_address[2:0];

    always_ff @(posedge clk_i) begin
      if (write && write_inside && 4'(write_place) < write_bytes) begin
        bank_q[row_at(write_address[RowW+2:3], write_address[2:0], 3'(b))] <=
            write_data[8*write_place+:8];
      end
      for (int unsigned r = 0; r < 3; r++) begin
        if (reads[r]) begin
          byte_q[r][b] <= bank_q[row_at(address[r][RowW+2:3], address[r][2:0], 3'(b))];
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned r = 0; r < 3; r++) begin
      if (reads[r]) begin
        turn_q[r] <= address[r][2:0];
        there_q[r][0] <= fits(address[r], 4'd1);
        // After the last address comes the first one.
        there_q[r][1] <= fits({address[r][AddressW-1:3] + 1'b1, 3'd0}, 4'd1);
      end
    end
  end

  always_comb begin
    for (int unsigned r = 0; r < 3; r++) begin
      logic [63:0] first, next;
      first = there_q[r][0] ? byte_q[r] >> {turn_q[r], 3'd0} : 64'd0;
      next = there_q[r][1] ? byte_q[r] << (7'd64 - {1'b0, turn_q[r], 3'd0}) : 64'd0;
      data[r] = first | next;
    end
  end

  logic [31:0] outside_q;
  assign outside_count_o = outside_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      outside_q <= '0;
    end else if (outside_q[31:2] != '1) begin
      outside_q <= outside_q + 32'(write && !write_inside) +
          32'(receive_read_i && !fits(receive_address_i, 4'd1));
    end
  end

endmodule
