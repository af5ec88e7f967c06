use std::{path::Path, sync::Arc};

use object_store::memory::InMemory;

use super::Bucket;
use crate::{
    dataset::{
        DataSetError, OutputDirectory, ParquetOutput, audit, fixture,
        store::{ClaimKind, LocalDirectory, Published, Stamp, Store, StoredFile},
    },
    model::policy::Policy,
    output::OutputError,
    report::profile::{DataSet, Filter},
};

fn bucket(prefix: &str) -> Arc<dyn Store> {
    Arc::new(Bucket::of_client(Path::new("s3://fleet"), prefix, Box::new(InMemory::new())))
}

#[test]
fn a_data_set_in_a_bucket_says_what_one_in_a_directory_says() {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    for prefix in ["", "energy/of=all"] {
        let bucket = bucket(prefix);
        for (file, bytes) in fixture::files(root.path()) {
            let file = Path::new(&file);
            let name = file.file_name().unwrap().to_str().unwrap();
            bucket.publish(file.parent().unwrap(), name, &bytes).unwrap();
        }
        assert!(audit::is_well(&audit::of_store(&bucket).unwrap()));
        let rows = |mut data: DataSet| {
            let mut rows = Vec::new();
            data.scan(&Filter::default(), &mut |_, row| rows.push((row.energy.0, row.samples))).unwrap();
            rows
        };
        let of_directory = rows(DataSet::open(root.path(), &Filter::default()).unwrap());
        assert_eq!(rows(DataSet::of_store(&bucket, &Filter::default()).unwrap()), of_directory);
    }
}

#[test]
fn a_file_is_created_once_and_replaced_only_if_that_is_asked_for() {
    let store = bucket("energy");
    let folder = Path::new("threads/date=d/host=h");
    let content = || StoredFile::new(&store, folder.join("r-0.parquet")).read_whole(1000).unwrap();
    assert_eq!(store.find(folder, "r-0.parquet").unwrap(), None);
    assert_eq!(store.publish_new(folder, "r-0.parquet", b"first").unwrap(), Published::Created);
    assert_eq!(store.publish_new(folder, "r-0.parquet", b"second").unwrap(), Published::AlreadyThere);
    assert_eq!(content(), b"first");
    store.publish(folder, "r-0.parquet", b"third").unwrap();
    assert_eq!(content(), b"third");
    let found = store.find(folder, "r-0.parquet").unwrap();
    assert_eq!(found.unwrap(), Path::new("s3://fleet/threads/date=d/host=h/r-0.parquet"));
    store.remove(&folder.join("r-0.parquet")).unwrap();
    store.remove(&folder.join("r-0.parquet")).unwrap();
    assert_eq!(store.find(folder, "r-0.parquet").unwrap(), None);
    assert!(store.claim(ClaimKind::Write).is_ok() && store.claim(ClaimKind::Read).is_ok());
}

#[test]
fn a_file_is_replaced_only_if_it_still_is_what_it_was() {
    let root = tempfile::tempdir().unwrap();
    for store in [bucket("energy"), Arc::new(LocalDirectory::new(root.path(), None))] {
        let (folder, name) = (Path::new("raw/date=d"), "r.parquet");
        let file = folder.join(name);
        let content = || StoredFile::new(&store, &file).read_whole(1000).unwrap();
        let replace = |bytes: &[u8], before: Option<&Stamp>| store.publish_over(folder, name, bytes, before).unwrap();
        assert_eq!(store.stamp_if_any(&file).unwrap(), None);
        assert_eq!(replace(b"first", None), Published::Created);
        assert_eq!(replace(b"other", None), Published::AlreadyThere);
        let first = store.stamp_if_any(&file).unwrap();
        assert_eq!(replace(b"second", first.as_ref()), Published::Created);
        // As long as what follows, so the size tells nothing.
        let second = store.stamp_if_any(&file).unwrap();
        store.publish(folder, name, b"thirds").unwrap();
        for before in [&first, &second] {
            assert_eq!(replace(b"late", before.as_ref()), Published::AlreadyThere, "{store:?}");
        }
        assert_eq!(content(), b"thirds");
        store.remove(&file).unwrap();
        assert_eq!(replace(b"late", second.as_ref()), Published::AlreadyThere, "{store:?}");
        assert_eq!(store.stamp_if_any(&file).unwrap(), None);
    }
}

#[test]
fn only_files_of_tables_are_listed_and_no_more_than_were_asked_for() {
    let store = bucket("energy");
    for (folder, name) in [
        ("threads/date=d/host=h", "r-0.parquet"),
        ("threads/date=d/host=h", "r-1.parquet"),
        ("threads/date=d/host=h", ".hidden.parquet"),
        ("threads/date=d", "r-2.parquet"),
        ("threads/date=d/host=h/more", "r-3.parquet"),
        ("threads/date=d/host=h", "notes.txt"),
        ("threads2/date=d/host=h", "r-4.parquet"),
    ] {
        store.publish(Path::new(folder), name, b"").unwrap();
    }
    let mut files = store.list("threads", 2).unwrap();
    files.sort();
    let expected = ["0", "1"].map(|number| Path::new("threads/date=d/host=h").join(format!("r-{number}.parquet")));
    assert_eq!(files, expected);
    assert!(matches!(store.list("threads", 1), Err(DataSetError::TooManyFiles { most: 1, .. })));
    assert_eq!(store.list("absent", 1).unwrap().len(), 0);
}

#[test]
fn a_large_file_is_read_in_parts() {
    let store = bucket("");
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    store.publish(Path::new("t/date=d/host=h"), "r.parquet", &bytes).unwrap();
    assert_eq!(StoredFile::new(&store, "t/date=d/host=h/r.parquet").read_whole(10_000_000).unwrap(), bytes);
}

#[test]
fn no_run_is_recorded_to_a_bucket() {
    let refused = OutputDirectory::create(Path::new("s3://fleet/energy"), None).unwrap_err();
    assert!(refused.to_string().contains("joular-bpf ship"), "{refused}");
    assert!(matches!(OutputDirectory::create_new(Path::new("s3:///x"), None), Err(OutputError::NoPlace(_))));
    // What can be written to a store can be written to a bucket.
    let store = Bucket::of_client(Path::new("s3://fleet"), "", Box::new(InMemory::new()));
    let claim = store.claim(ClaimKind::Write).unwrap();
    fixture::play(ParquetOutput::into_store(Box::new(store), claim, fixture::FLUSH_NS), Policy::default(), "r-1");
}
