//! Records of the ring buffer, and recordings of runs.

use joular_data::events::{decode, recording::RecordingReader};

/// What a recording begins with.
const HEADER: &[u8] = b"JOULARBPF\0\x06\0";

pub fn run(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    match kind % 3 {
        0 => drop(decode::decode(bytes)),
        1 => read(bytes),
        // No fuzzer guesses a compressed stream.
        _ => {
            let stream = zstd::bulk::compress(bytes, 1).expect("packing");
            let recording = [HEADER, &stream].concat();
            assert!(RecordingReader::new(recording.as_slice()).is_ok(), "the header is out of date");
            read(&recording);
        }
    }
}

fn read(recording: &[u8]) {
    if let Ok(reader) = RecordingReader::new(recording) {
        reader.take(1000).for_each(drop);
    }
}
