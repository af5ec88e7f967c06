//! Tests reading the memory of processes, and images of it.

use super::*;

fn image(ranges: &[(u64, &[u8])]) -> MemoryImage {
    let mut image = MemoryImage::default();
    for (address, bytes) in ranges {
        image.insert(*address, bytes);
    }
    image
}

#[test]
fn reading_our_own_memory() {
    let memory = ProcessMemory::open(Path::new("/proc"), Pid(std::process::id())).unwrap();
    let text = b"a text\0and more";
    let address = text.as_ptr() as u64;
    assert_eq!(memory.c_string(address, 64).unwrap(), b"a text");
    assert_eq!(memory.bytes(address, text.len()).unwrap(), text);
    for absent in [0, u64::MAX - 3, 1 << 63] {
        assert_eq!(memory.u64(absent), Err(Unreadable { address: absent, length: 8 }));
    }
}

#[test]
fn many_addresses_are_read_at_once_and_one_that_is_not_there_is_left_out() {
    let memory = ProcessMemory::open(Path::new("/proc"), Pid(std::process::id())).unwrap();
    let values: Vec<u64> = (0..3 * MAX_SPANS as u64).collect();
    let mut addresses: Vec<u64> = values.iter().rev().map(|value| std::ptr::from_ref(value) as u64).collect();
    let read = |addresses: &[u64]| {
        let mut found = Vec::new();
        let is_whole = visit_each(&memory, addresses, 8, |index, bytes| {
            found.push((index as u64, u64::from_ne_bytes(bytes.try_into().unwrap())));
        });
        (is_whole, found)
    };
    let expected: Vec<_> = values.iter().zip(values.iter().rev()).map(|(index, value)| (*index, *value)).collect();
    assert_eq!(read(&addresses), (true, expected.clone()));
    for absent in [700, 701, 1_023] {
        addresses[absent] = 8;
    }
    let there = expected.into_iter().filter(|(index, _)| ![700, 701, 1_023].contains(index)).collect();
    assert_eq!(read(&addresses), (false, there));
    assert_eq!(read(&[]), (true, Vec::new()));
    assert_eq!(read(&[8; 10_000]), (false, Vec::new()));
}

#[test]
fn an_image_has_what_was_put_in() {
    let image = image(&[(0x1000, &[1, 2, 3]), (0x1003, &[4, 0]), (0x2000, b"abc")]);
    assert_eq!((image.u32(0x1000), image.u16(0x1001)), (Ok(0x0403_0201), Ok(0x0302)));
    assert_eq!(image.field(0x0ffe, Field { offset: 3, width: 1 }), Ok(2));
    assert_eq!(image.field(0, Field { offset: 3, width: 0 }), Ok(0));
    assert!(image.u32(0x1002).is_err() && image.u8(0xfff).is_err());
    assert!(image.c_string(0x2000, 3).is_err(), "no end within the limit");
    assert_eq!(image.c_string(0x1000, 5).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn pages_give_what_the_memory_gives() {
    let bytes: Vec<u8> = (0..8192u32).map(|value| (value % 251) as u8).collect();
    let source = image(&[(0x1000, &bytes)]);
    let pages = Pages::new(&source);
    assert_eq!(pages.bytes(0x1ff0, 100).unwrap(), source.bytes(0x1ff0, 100).unwrap());
    assert!(pages.bytes(0x2ff0, 100).is_err() && pages.u8(u64::MAX).is_err());
}
