// SPDX-License-Identifier: Apache-2.0
//! Input that contradicts itself is refused with the file, the name and the reason.
#![allow(clippy::unwrap_used)] // in the helpers of the tests, too

use openrnic_spec_gen::{SourceFile, generate_from};

/// The message for one file `spec/x.toml`, with what other items need beside it.
fn refusal(text: &str) -> String {
    let sources = [
        SourceFile {
            name: "spec/base.toml".to_owned(),
            text: BASE.to_owned(),
        },
        SourceFile {
            name: "spec/x.toml".to_owned(),
            text: text.to_owned(),
        },
    ];
    match generate_from(&sources) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(e) => e.to_string(),
    }
}

/// Enough for edges, opcodes and commands.
const BASE: &str = r#"
rnr_timer = { unit = "ns", values = [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31] }
[[const]]
name = "BAR0_BYTES"
value = 0x1000
width = 32
[[enum]]
name = "QpState"
width = 3
values = [ { name = "RESET", value = 0 }, { name = "INIT", value = 1 } ]
[[enum]]
name = "QpType"
width = 4
values = [ { name = "RC", value = 2 }, { name = "UC", value = 3 } ]
[[enum]]
name = "Transport"
width = 3
values = [ { name = "RC", value = 0 }, { name = "UC", value = 1 } ]
[[flags]]
name = "QpAttrBit"
width = 26
values = [ { name = "STATE", bit = 0 }, { name = "PORT", bit = 5 }, { name = "QKEY", bit = 6 } ]
[[header]]
name = "Reth"
bytes = 16
fields = [ { name = "va", byte = 0, width = 64 } ]
[[header]]
name = "Long"
bytes = 50
fields = []
"#;

#[test]
fn the_base_alone_is_accepted() {
    generate_from(&[SourceFile {
        name: "spec/base.toml".to_owned(),
        text: BASE.to_owned(),
    }])
    .unwrap();
}

macro_rules! refuses {
    ($($name:ident: $text:expr => $message:literal;)*) => {
        $(
            #[test]
            fn $name() {
                assert_eq!(refusal($text), $message);
            }
        )*
    };
}

fn layout(fields: &str) -> String {
    format!("[[layout]]\nname = \"Foo\"\nbytes = 4\nfields = [ {fields} ]")
}

fn constant(value: &str) -> String {
    format!("[[const]]\nname = \"FOO\"\n{value}")
}

fn enumeration(values: &str) -> String {
    format!("[[enum]]\nname = \"Foo\"\nwidth = 2\nvalues = [ {values} ]")
}

fn flags(values: &str) -> String {
    format!("[[flags]]\nname = \"Foo\"\nwidth = 4\nvalues = [ {values} ]")
}

fn opcode(name: &str, value: &str, headers: &str, more: &str) -> String {
    format!(
        "[[opcode]]\nname = \"{name}\"\nvalue = {value}\ntransport = \"RC\"\nkind = \"write\"\ndir = \"request\"\npos = \"only\"\n\
         headers = {headers}\npayload = \"0..mtu\"\n{more}\n"
    )
}

fn edge(rules: &str) -> String {
    format!("[[edge]]\nfrom = [\"RESET\"]\nto = \"INIT\"\nrules = [ {rules} ]\n")
}

fn block(name: &str, base: &str, regs: &str) -> String {
    format!(
        "[[block]]\nname = \"{name}\"\nbase = {base}\ntype = {}\nregs = [ {regs} ]\n",
        name.len()
    )
}

const COMMANDS: &str = r#"
[[enum]]
name = "CmdOpcode"
width = 8
values = [ { name = "GO", value = 1 }, { name = "STOP", value = 2 } ]
[[layout]]
name = "CmdFoo"
bytes = 64
fields = [ { name = "opcode", byte = 0, width = 8 }, { name = "flags", byte = 1, width = 8 }, { name = "tag", byte = 2, width = 16 }, { name = "pd", byte = 4, width = 16 } ]
"#;

fn command(opcode: &str, layout: &str, rest: &str) -> String {
    format!("{COMMANDS}\n[[command]]\nopcode = \"{opcode}\"\nlayout = \"{layout}\"\n{rest}\n")
}

refuses! {
    overlapping_fields: &layout(r#"{ name = "a", byte = 0, width = 12 }, { name = "b", byte = 1, bit = 3, width = 2 }"#)
        => "spec/x.toml: layout Foo, field b: overlaps a";
    a_field_beyond_the_end: &layout(r#"{ name = "a", byte = 3, bit = 1, width = 8 }"#)
        => "spec/x.toml: layout Foo, field a: ends at bit 33 of 32";
    a_field_named_twice: &layout(r#"{ name = "a", byte = 0, width = 8 }, { name = "a", byte = 1, width = 8 }"#)
        => "spec/x.toml: layout Foo, field a: name used twice";
    a_bit_outside_a_byte: &layout(r#"{ name = "a", byte = 0, bit = 8, width = 1 }"#)
        => "spec/x.toml: layout Foo, field a: bit 8 is not 0 to 7";
    a_field_without_bits: &layout(r#"{ name = "a", byte = 0, width = 0 }"#)
        => "spec/x.toml: layout Foo, field a: width 0 is not 1 to 64, nor 128 in whole bytes";
    a_field_wider_than_a_register: &layout(r#"{ name = "a", byte = 0, width = 65 }"#)
        => "spec/x.toml: layout Foo, field a: width 65 is not 1 to 64, nor 128 in whole bytes";
    a_field_name_in_capitals: &layout(r#"{ name = "A", byte = 0, width = 8 }"#)
        => "spec/x.toml: layout Foo, field A: name is not lower_case";
    a_field_named_like_a_method: &layout(r#"{ name = "set_a", byte = 0, width = 8 }"#)
        => "spec/x.toml: layout Foo, field set_a: name collides with a generated one";
    an_empty_structure: "[[layout]]\nname = \"Foo\"\nbytes = 0\nfields = []"
        => "spec/x.toml: layout Foo: no bytes";
    overlapping_header_fields: "[[header]]\nname = \"Foo\"\nbytes = 2\nfields = [ { name = \"a\", byte = 0, width = 9 }, { name = \"b\", byte = 1, width = 1 } ]"
        => "spec/x.toml: header Foo, field b: overlaps a";
    a_type_named_twice: "[[layout]]\nname = \"Reth\"\nbytes = 4\nfields = []"
        => "spec/base.toml: header Reth: name already used in spec/x.toml";
    two_names_that_become_one_identifier: "[[const]]\nname = \"QP_STATE_INIT\"\nvalue = 1\nwidth = 8"
        => "spec: enum QpState: identifier QP_STATE_INIT of the RTL package is also made by const QP_STATE_INIT";

    a_constant_beyond_its_width: &constant("value = 0x1ff\nwidth = 8")
        => "spec/x.toml: const FOO: value 0x1ff does not fit 8 bits";
    a_constant_without_bits: &constant("value = 0\nwidth = 0")
        => "spec/x.toml: const FOO: width 0 is not 1 to 64";
    a_constant_named_twice: "[[const]]\nname = \"BAR0_BYTES\"\nvalue = 1\nwidth = 8"
        => "spec/x.toml: const BAR0_BYTES: name already used in spec/base.toml";
    a_constant_in_small_letters: "[[const]]\nname = \"foo\"\nvalue = 1\nwidth = 8"
        => "spec/x.toml: const foo: name is not UPPER_CASE";
    a_count_wider_than_an_int: "[[const]]\nname = \"NUM_FOO\"\nvalue = 0x100000000\nwidth = 40"
        => "spec/x.toml: const NUM_FOO: a count must fit 32 bits";

    an_enum_value_given_twice: &enumeration(r#"{ name = "A", value = 1 }, { name = "B", value = 1 }"#)
        => "spec/x.toml: enum Foo, value B: same value 0x1 as A";
    an_enum_name_given_twice: &enumeration(r#"{ name = "A", value = 1 }, { name = "A", value = 2 }"#)
        => "spec/x.toml: enum Foo, value A: name used twice";
    an_enum_value_beyond_its_width: &enumeration(r#"{ name = "A", value = 4 }"#)
        => "spec/x.toml: enum Foo, value A: 0x4 does not fit 2 bits";
    an_enum_without_values: &enumeration("")
        => "spec/x.toml: enum Foo: no values";
    an_enum_wider_than_a_byte: "[[enum]]\nname = \"Foo\"\nwidth = 9\nvalues = [ { name = \"A\", value = 0 } ]"
        => "spec/x.toml: enum Foo: width 9 is not 1 to 8";

    a_flag_bit_given_twice: &flags(r#"{ name = "A", bit = 1 }, { name = "B", bit = 1 }"#)
        => "spec/x.toml: flags Foo, flag B: same bit 1 as A";
    a_flag_beyond_the_width: &flags(r#"{ name = "A", bit = 4 }"#)
        => "spec/x.toml: flags Foo, flag A: bit 4 is outside 4 bits";
    a_flag_named_twice: &flags(r#"{ name = "A", bit = 1 }, { name = "A", bit = 2 }"#)
        => "spec/x.toml: flags Foo, flag A: name used twice";

    an_opcode_of_another_transport: &opcode("RC_A", "0x21", "[]", "")
        => "spec/x.toml: opcode RC_A: value 0x21 does not belong to transport RC";
    an_opcode_with_an_unknown_header: &opcode("RC_A", "1", "[\"Foo\"]", "")
        => "spec/x.toml: opcode RC_A: header Foo does not exist";
    an_opcode_with_headers_too_long: &opcode("RC_A", "1", "[\"Long\", \"Reth\"]", "")
        => "spec/x.toml: opcode RC_A: 66 bytes of extended headers do not fit 6 bits";
    an_opcode_with_an_immediate_but_no_header: &opcode("RC_A", "1", "[]", "with_imm = true")
        => "spec/x.toml: opcode RC_A: with_imm and header ImmDt go together";
    an_opcode_with_an_invalidate_but_no_header: &opcode("RC_A", "1", "[]", "with_inv = true")
        => "spec/x.toml: opcode RC_A: with_inv and header Ieth go together";
    an_opcode_value_given_twice: &(opcode("RC_A", "1", "[]", "") + &opcode("RC_B", "1", "[]", ""))
        => "spec/x.toml: opcode RC_B: same value 0x01 as RC_A";
    an_opcode_name_given_twice: &(opcode("RC_A", "1", "[]", "") + &opcode("RC_A", "2", "[]", ""))
        => "spec/x.toml: opcode RC_A: name used twice";
    a_second_timer_table: "rnr_timer = { unit = \"ns\", values = [] }"
        => "spec/x.toml: rnr_timer: already given in spec/base.toml";

    an_edge_with_state: &edge(r#"{ types = ["RC"], required = ["STATE"] }"#)
        => "spec/x.toml: edge RESET->INIT: STATE is implied and must not be listed";
    an_edge_with_an_unknown_attribute: &edge(r#"{ types = ["RC"], optional = ["COLOUR"] }"#)
        => "spec/x.toml: edge RESET->INIT: attribute COLOUR does not exist";
    an_edge_with_an_unknown_type: &edge(r#"{ types = ["RD"] }"#)
        => "spec/x.toml: edge RESET->INIT: QP type RD does not exist";
    an_edge_with_an_unknown_state: "[[edge]]\nfrom = [\"RESET\"]\nto = \"GONE\"\nrules = []"
        => "spec/x.toml: edge RESET->GONE: state GONE does not exist";
    an_attribute_required_and_optional: &edge(r#"{ types = ["RC"], required = ["PORT"], optional = ["PORT"] }"#)
        => "spec/x.toml: edge RESET->INIT: attribute PORT listed twice for RC";
    an_edge_given_twice: &(edge(r#"{ types = ["RC", "UC"] }"#) + &edge(r#"{ types = ["UC"] }"#))
        => "spec/x.toml: edge RESET->INIT: given twice for UC";

    a_budget_without_a_side: "[[budget]]\nname = \"a\"\nvalue = 1\nunit = \"cycles\"\ncomparison = \"==\"\nmeasured = \"\""
        => "spec/x.toml: budget a: comparison == is neither <= nor >=";
    a_budget_that_is_no_number: "[[budget]]\nname = \"a\"\nvalue = nan\nunit = \"cycles\"\ncomparison = \"<=\"\nmeasured = \"\""
        => "spec/x.toml: budget a: value is not finite";

    overlapping_registers: &block("A", "0", r#"{ name = "X", offset = 8, width = 64, access = "ro" }, { name = "Y", offset = 12, access = "ro" }"#)
        => "spec/x.toml: block A, register Y: offset 0xc overlaps what ends at 0x10";
    a_register_over_the_block_header: &block("A", "0", r#"{ name = "X", offset = 4, access = "ro" }"#)
        => "spec/x.toml: block A, register X: offset 0x4 overlaps what ends at 0x8";
    a_register_not_aligned: &block("A", "0", r#"{ name = "X", offset = 12, width = 64, access = "ro" }"#)
        => "spec/x.toml: block A, register X: offset 0xc is not aligned to its width";
    a_register_of_an_odd_width: &block("A", "0", r#"{ name = "X", offset = 8, width = 16, access = "ro" }"#)
        => "spec/x.toml: block A, register X: width 16 is neither 32 nor 64";
    a_register_with_an_unknown_access: &block("A", "0", r#"{ name = "X", offset = 8, access = "w1c" }"#)
        => "spec/x.toml: block A, register X: access w1c is not ro, rw or wo";
    a_register_named_twice: &block("A", "0", r#"{ name = "X", offset = 8, access = "ro" }, { name = "X", offset = 12, access = "ro" }"#)
        => "spec/x.toml: block A, register X: name used twice";
    overlapping_blocks: &(block("A", "0", r#"{ name = "X", offset = 8, access = "ro" }"#) + &block("BB", "8", ""))
        => "spec/x.toml: block BB: overlaps block A";
    a_block_beyond_the_bar: &block("A", "0xff8", r#"{ name = "X", offset = 8, access = "ro" }"#)
        => "spec/x.toml: block A: ends beyond BAR0";
    a_block_not_aligned: &block("A", "4", "")
        => "spec/x.toml: block A: base 0x4 is not 8-byte aligned";
    a_block_named_twice: &(block("A", "0", "") + &block("A", "16", ""))
        => "spec/x.toml: block A: name or type used twice";

    a_command_without_opcode: &command("JUMP", "CmdFoo", "fields = []")
        => "spec/x.toml: command JUMP: no value of enum CmdOpcode";
    a_command_of_an_unknown_structure: &command("GO", "CmdBar", "fields = []")
        => "spec/x.toml: command GO: layout CmdBar does not exist";
    a_command_that_reads_an_unknown_field: &command("GO", "CmdFoo", "fields = [\"cq\"]")
        => "spec/x.toml: command GO: layout CmdFoo has no field cq";
    a_command_with_an_unknown_flag: &command("GO", "CmdFoo", "fields = []\nflags = [\"FAST\"]")
        => "spec/x.toml: command GO: flag FAST does not exist";
    an_opcode_that_no_command_describes: &command("GO", "CmdFoo", "fields = []")
        => "spec/x.toml: enum CmdOpcode, value STOP: no [[command]] says what it reads";
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    let message = refusal("[[const]]\nname = \"A\"\nvalue = 1\nwidht = 8");
    assert!(
        message.starts_with("spec/x.toml: TOML parse error at line 4"),
        "{message}"
    );
    assert!(message.contains("unknown field `widht`"), "{message}");
}

#[test]
fn a_timer_table_of_another_length_is_refused() {
    let source = |text: &str| {
        [SourceFile {
            name: "spec/x.toml".to_owned(),
            text: text.to_owned(),
        }]
    };
    let message = |text: &str| generate_from(&source(text)).unwrap_err().to_string();
    assert_eq!(
        message("rnr_timer = { unit = \"ns\", values = [1, 2] }"),
        "spec/x.toml: rnr_timer: 2 values, not 32"
    );
    assert_eq!(
        message("rnr_timer = { unit = \"us\", values = [] }"),
        "spec/x.toml: rnr_timer: unit us is not ns"
    );
}

#[test]
fn a_directory_without_the_specification_is_refused_with_its_path() {
    let error = openrnic_spec_gen::generate(std::path::Path::new("/nonexistent")).unwrap_err();
    assert!(error.to_string().starts_with("/nonexistent/spec: "), "{error}");
}
