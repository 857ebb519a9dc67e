// SPDX-License-Identifier: Apache-2.0
// Types of the Ethernet MAC: what passes its FIFOs, what it counts.
package rnic_mac_pkg;
  // A word of a frame. cnt: bytes of it, 0 means 8 (only the last word may have fewer).
  typedef struct packed {
    logic        err;
    logic        last;
    logic [2:0]  cnt;
    logic [63:0] data;
  } mac_word_t;

  // Counters wrap. A received frame counts once: good, or under the first of these that holds: er, oversize, runt, fcs; and beside that as drop when
  // it found no room.
  typedef struct packed {
    logic [31:0] good;
    logic [15:0] fcs;
    logic [15:0] runt;       // shorter than 64 bytes with FCS
    logic [15:0] oversize;
    logic [15:0] er;         // the PHY said RX_ER within it
    logic [15:0] junk;       // carrier without a start of frame
    logic [15:0] drop;
  } mac_rx_cnt_t;

  typedef struct packed {
    logic [31:0] sent;
    logic [15:0] underrun;
    logic [15:0] no_link;    // taken and thrown away
  } mac_tx_cnt_t;
endpackage
