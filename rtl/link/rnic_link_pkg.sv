// SPDX-License-Identifier: Apache-2.0
// What both directions of the host link use. Layouts and kinds of frames come from rnic_spec_pkg.
package rnic_link_pkg;
  // One byte of a CRC-32 (reflected polynomial 0xedb88320), bit 0 first.
  function automatic logic [31:0] crc32_byte(logic [31:0] crc, logic [7:0] data);
    logic [31:0] c;
    c = crc ^ 32'(data);
    for (int unsigned i = 0; i < 8; i++) c = (c >> 1) ^ (c[0] ? 32'hedb88320 : 32'd0);
    return c;
  endfunction
endpackage
