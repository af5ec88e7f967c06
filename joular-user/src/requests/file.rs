//! Opens a file of counts to append to it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use joular_data::{output::OutputError, report::requests::scrape::Counting, text::escape};

use super::CountError;

/// A file that ends with a line of counts, or with the heading that it gets if it is new.
pub(super) fn open(path: &Path) -> Result<File, CountError> {
    let failed = |source| OutputError::from_io("opening", path, source);
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_file() && metadata.len() > 0 {
        if !can_be_gone_on_with(&mut file).map_err(failed)? {
            return Err(CountError::OtherFile(escape(&path.display().to_string())));
        }
    } else {
        file.write_all(Counting::HEADING.as_bytes()).map_err(failed)?;
    }
    Ok(file)
}

fn can_be_gone_on_with(file: &mut File) -> io::Result<bool> {
    let mut heading = Vec::new();
    io::Read::by_ref(file).take(Counting::HEADING.len() as u64).read_to_end(&mut heading)?;
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(heading == Counting::HEADING.as_bytes() && last == *b"\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_new_file_gets_a_heading_and_a_file_of_counts_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.csv");
        open(&path).unwrap().write_all(b"/a,1,,1,2\r\n").unwrap();
        open(&path).unwrap().write_all(b"/a,2,,2,3\r\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}/a,1,,1,2\r\n/a,2,,2,3\r\n", Counting::HEADING));
    }

    #[test]
    fn another_file_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        for text in ["x", "route,count\n/a,1\n", format!("{}/a,1,,1,", Counting::HEADING).as_str()] {
            fs::write(&path, text).unwrap();
            assert!(matches!(open(&path), Err(CountError::OtherFile(_))), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert!(matches!(open(folder.path()), Err(CountError::Output(_))));
    }
}
