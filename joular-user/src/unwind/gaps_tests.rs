use proptest::prelude::*;

use super::*;
use crate::arch::{Aarch64, X86_64};

const fn row(address: u32, rule: u8) -> UnwindRow {
    UnwindRow { address, cfa_words: 1, fp_words: 0, rule }
}

#[test]
fn code_without_a_rule_is_a_gap() {
    let rows = [row(100, rule::SP), row(200, rule::NONE), row(210, rule::SP), row(300, rule::NONE), row(400, rule::SP)];
    assert_eq!(gaps(&rows, 0..1000), [0..100, 300..400], "what is between 200 and 210 is padding");
    assert_eq!(gaps(&rows, 120..350), [300..350]);
    assert_eq!(gaps(&rows[..4], 90..1000), [300..1000]);
    assert_eq!(gaps(&[], 90..1000), [90..1000]);
}

fn functions_of(code: &[u8], begin: u32) -> Vec<Range<u32>> {
    let gaps = [gap(0, code)];
    gaps[0].functions(&all_begins::<X86_64>(&gaps, BTreeSet::from([begin]), false))
}

fn gap(start: u32, code: &[u8]) -> Gap {
    Gap { range: start..start + u32::try_from(code.len()).unwrap(), bytes: code.to_vec() }
}

#[test]
fn functions_are_found_from_one_gap_to_another() {
    // call 0x101; ret, and far away: nop; ret
    let gaps = [gap(0, &[0xe8, 0xfc, 0, 0, 0, 0xc3]), gap(0x100, &[0x90, 0xc3])];
    assert_eq!(all_begins::<X86_64>(&gaps, BTreeSet::from([0]), true), BTreeSet::from([0, 0x101]));
}

#[test]
fn where_handlers_of_signals_return_to_has_a_rule_from_the_byte_before_on() {
    // ret; mov rax, 15; syscall
    let gap = gap(0x100, &[0xc3, 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05]);
    let rows: Vec<_> = gap.rows::<X86_64>(&BTreeSet::from([0x100, 0x101]), None).collect();
    for address in [0x100, 0x101] {
        assert!(rows.contains(&UnwindRow { address, rule: rule::SIGNAL, ..UnwindRow::default() }), "{rows:?}");
    }
}

#[test]
fn functions_end_where_the_next_one_begins_and_are_found_by_calls() {
    // call 7; ret; nop; push rbx; call 14; ret; ret
    let code = [0xe8, 2, 0, 0, 0, 0xc3, 0x90, 0x53, 0xe8, 1, 0, 0, 0, 0xc3, 0xc3];
    assert_eq!(functions_of(&code, 0), [0..7, 7..14, 14..15]);
    assert_eq!(functions_of(&code, 7), [7..14, 14..15]);
    // lea rax, [rip + 1]; ret; and what it takes the address of: ret
    let code = [0x48, 0x8d, 0x05, 1, 0, 0, 0, 0xc3, 0xc3];
    assert_eq!(functions_of(&code, 0), [0..8, 8..9]);
    // mov edi, 11; call 10; what is called last; and what 11 is the address of: ret
    let code = [0xbf, 11, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xf4, 0xc3];
    assert_eq!(functions_of(&code, 0), [0..10, 10..11, 11..12]);
    // Into a function: lea rax, [rip - 6]
    let code = [0x48, 0x8d, 0x05, 0xfa, 0xff, 0xff, 0xff, 0xc3, 0xc3];
    assert_eq!(functions_of(&code, 0), [0..9]);
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn functions_of_aarch64_are_found_by_calls_and_addresses() {
    let functions_of = |code: &[u32]| {
        let gaps = [gap(0x1_0000, &words(code))];
        gaps[0].functions(&all_begins::<Aarch64>(&gaps, BTreeSet::from([0x1_0000]), true))
    };
    // bl 12; ret; nop; stp x29, x30, [sp, #-16]!; bl 24; ret; ret
    let calls = [0x9400_0003, 0xd65f_03c0, 0xd503_201f, 0xa9bf_7bfd, 0x9400_0002, 0xd65f_03c0, 0xd65f_03c0];
    assert_eq!(functions_of(&calls), [0..12, 12..24, 24..28]);
    // adr x0, 8; ret; and what it takes the address of: ret
    assert_eq!(functions_of(&[0x1000_0040, 0xd65f_03c0, 0xd65f_03c0]), [0..8, 8..12]);
    // adrp x0, 0x10000; add x0, x0, #12; ret; ret
    assert_eq!(functions_of(&[0x9000_0000, 0x9100_3000, 0xd65f_03c0, 0xd65f_03c0]), [0..12, 12..16]);
    // Into a function: adr x0, 8; mov x1, x0; ret
    assert_eq!(functions_of(&[0x1000_0040, 0xaa00_03e1, 0xd65f_03c0]), [0..12]);
}

#[test]
fn a_thread_that_starts_another_on_aarch64_is_as_called() {
    let row = |address, rule| UnwindRow { address, cfa_words: 0, fp_words: 0, rule };
    let clone = [row(100, rule::SP), row(120, rule::NONE), row(136, rule::ROOT)];
    assert_eq!(clones::<Aarch64>(&clone).collect::<Vec<_>>(), [Clone { before: 100..120, gap: 120..136 }]);
    assert_eq!(clones::<X86_64>(&clone).count(), 0);
    // mov x8, #93; and behind it svc #0, ret or b
    assert!(goes_on::<Aarch64>(&words(&[0xd280_0ba8, 0xd400_0001])));
    assert!(!goes_on::<Aarch64>(&words(&[0xd280_0ba8, 0xd65f_03c0])));
    assert!(!goes_on::<Aarch64>(&words(&[0x1400_0002])));
}

#[test]
fn where_handlers_of_signals_on_aarch64_return_to_has_a_rule() {
    // ret; mov x8, #139; svc #0
    let gap = gap(0x100, &words(&[0xd65f_03c0, 0xd280_1168, 0xd400_0001]));
    let rows: Vec<_> = gap.rows::<Aarch64>(&BTreeSet::from([0x100, 0x104]), None).collect();
    for address in [0x103, 0x104] {
        assert!(rows.contains(&UnwindRow { address, rule: rule::SIGNAL, ..UnwindRow::default() }), "{rows:?}");
    }
}

/// The C library of every JVM, which starts threads.
#[test]
fn a_thread_that_starts_another_is_described_all_along() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("/libc.so"));
    let Some(path) = libc else { return };
    let file = std::fs::File::open(path).unwrap();
    let elf = Elf::read(&file).unwrap();
    let described = crate::unwind::eh_frame::rows::<X86_64>(&crate::unwind::eh_frame::section::<X86_64>(&elf).unwrap());
    let found: Vec<Clone> = clones::<X86_64>(&described).collect();
    assert!(!found.is_empty(), "glibc has clone, and since 2.34 clone3");
    let filled = fill::<X86_64>(&elf, described);
    for Clone { gap, .. } in found {
        let row = filled[filled.partition_point(|row| row.address < gap.end) - 1];
        assert_eq!((row.rule, row.cfa_words), (rule::SP, 1), "{gap:x?} in {path}");
    }
}

#[test]
fn a_description_that_stops_before_a_thread_alone_runs_is_one_of_a_clone() {
    let clone = [row(100, rule::SP), row(120, rule::NONE), row(130, rule::ROOT)];
    assert_eq!(clones::<X86_64>(&clone).collect::<Vec<_>>(), [Clone { before: 100..120, gap: 120..130 }]);
    let deeper = UnwindRow { cfa_words: 2, ..clone[0] };
    for other in [[deeper, clone[1], clone[2]], [clone[0], clone[1], clone[0]], [clone[0], clone[2], clone[1]]] {
        assert_eq!(clones::<X86_64>(&other).count(), 0, "{other:?}");
    }
}

#[test]
fn what_returns_or_jumps_does_not_go_on() {
    assert!(goes_on::<X86_64>(&[0xb8, 0, 0, 0, 0, 0x0f, 0x05]), "mov eax, 0; syscall");
    for code in [&[0x90, 0xc3][..], &[0x0f, 0x0b], &[0xeb, 0], &[]] {
        assert!(!goes_on::<X86_64>(code), "{code:x?}");
    }
}

/// libjvm's copies of arrays are in assembly, and `_start` of many programs has no description.
#[test]
fn what_assembly_leaves_out_is_told_by_its_code() {
    let file = std::fs::File::open("/bin/true").unwrap();
    let elf = Elf::read(&file).unwrap();
    let entry = u32::try_from(elf.entry()).unwrap();
    let described = crate::unwind::eh_frame::rows::<X86_64>(&crate::unwind::eh_frame::section::<X86_64>(&elf).unwrap());
    let rule_at = |rows: &[UnwindRow], address: u32| rows[rows.partition_point(|row| row.address <= address) - 1].rule;
    assert_eq!(rule_at(&fill::<X86_64>(&elf, described.clone()), entry), rule::ROOT);
    // Without any description.
    let filled = fill::<X86_64>(&elf, Vec::new());
    assert!(filled.is_sorted_by(|one, other| one.address < other.address), "{filled:?}");
}

proptest! {
    #[test]
    fn any_code_is_survived(bytes: Vec<u8>, begins: BTreeSet<u32>, rows in proptest::collection::vec((any::<u32>(), 0u8..7), 0..9)) {
        let code = [gap(7, &bytes)];
        let functions = code[0].functions(&all_begins::<X86_64>(&code, begins.clone(), false));
        prop_assert!(functions.is_sorted_by_key(|function| function.start));
        let on_aarch64 = code[0].functions(&all_begins::<Aarch64>(&code, begins, true));
        prop_assert!(on_aarch64.is_sorted_by_key(|function| function.start));
        let mut rows: Vec<_> = rows.into_iter().map(|(address, rule)| row(address, rule)).collect();
        rows.sort();
        prop_assert!(gaps(&rows, 7..u32::MAX).iter().all(|gap| gap.start < gap.end));
    }
}

#[test]
fn slots_of_a_linkage_table_return_to_the_link_register() {
    // stp x16, x30, [sp, -16]!; adrp x16; ldr x17, [x16]; add x16, x16; br x17; nop x 3; then two slots without the first.
    let slot = [0x9000_0010_u32, 0xf940_0211, 0x9100_0210, 0xd61f_0220];
    let words: Vec<u32> =
        [0xa9bf_7bf0].into_iter().chain(slot).chain([0xd503_201f; 3]).chain(slot).chain(slot).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let slots = slots::<Aarch64>(&bytes, 0x100);
    assert_eq!(slots, BTreeSet::from([0x100, 0x114, 0x130, 0x140]));
    let rows: Vec<UnwindRow> = gap(0x100, &bytes).rows::<Aarch64>(&slots, None).collect();
    let row = |address| UnwindRow { address, cfa_words: 0, fp_words: 0, rule: rule::SP };
    let saved = UnwindRow { address: 0x104, cfa_words: 2, fp_words: -1, rule: rule::SP_RETURN_ONLY };
    assert_eq!(rows, [row(0x100), saved, row(0x114)]);
}
