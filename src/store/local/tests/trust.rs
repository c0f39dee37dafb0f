//! What is refused: a directory or a file that somebody else may have a hand in, a record that is not whole.

use super::*;
use crate::store::local::record::Record;
use nix::unistd::{Gid, Uid, chown};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

fn opened(path: &Path) -> String {
    match Local::open(path, name(), Contender::default(), None) {
        Err(Failure::Refused(why)) => {
            assert!(why.contains(path.to_str().unwrap()), "{why}");
            assert!(!why.contains('\n') && !why.ends_with('.'), "{why}");
            why
        }
        other => panic!("{:?}", other.err()),
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_directory_that_others_may_write_is_refused_even_if_sticky() {
    let directory = Room::new();
    for mode in [0o777, 0o1777, 0o702] {
        chmod(directory.0.path(), mode);
        assert!(opened(directory.0.path()).contains("name another"));
    }
    chmod(directory.0.path(), 0o2770);
    directory.contender();
}

#[test]
fn a_directory_that_others_may_replace_is_refused() {
    let directory = Room::new();
    let inner = directory.0.path().join("inner");
    fs::create_dir(&inner).unwrap();
    chmod(directory.0.path(), 0o707);
    assert!(opened(&inner).contains("replaced by everybody"));
    chmod(directory.0.path(), 0o1777);
    assert!(Local::open(&inner, name(), Contender::default(), None).is_ok());
}

#[test]
fn a_missing_directory_is_not_made_since_it_may_be_a_typing_error() {
    let missing = Room::new().0.path().join("it's not there");
    let why = opened(&missing);
    assert!(why.contains(r"mkdir -p -m 700 -- '") && why.contains(r"it'\''s not there'"), "{why}");
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(opened(file.path()).contains("not a directory"));
}

#[test]
fn a_directory_off_the_list_of_local_file_systems_is_refused() {
    assert!(opened(Path::new("/proc")).contains("(proc, type 0x9fa0) that is not known to be local"));
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let directory = Room::new();
    if chown(directory.0.path(), Some(Uid::from_raw(4242)), None).is_ok() {
        assert!(opened(directory.0.path()).contains("belongs to user 4242"));
    }
}

#[test]
fn what_is_not_a_plain_file_of_ours_is_refused_without_hanging() {
    run(async {
        let directory = Room::new();
        let (file, other) = (directory.lock_file(), directory.0.path().join("other"));
        let refused = async |part: &str| {
            let why = refusal(directory.contender().contend().await);
            assert!(why.contains(part) && why.contains(file.to_str().unwrap()), "{why}");
        };
        directory.used().await;

        fs::hard_link(&file, &other).unwrap();
        refused("2 names").await;
        fs::remove_file(&file).unwrap();
        symlink(&other, &file).unwrap();
        refused("symbolic link").await;
        fs::remove_file(&file).unwrap();
        symlink("nowhere", &file).unwrap();
        refused("symbolic link").await;
        fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        refused("regular").await;
        assert!(matches!(directory.contender().inspect().await, Err(Failure::Refused(_))));
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        refused("regular").await;
        fs::remove_dir(&file).unwrap();

        fs::rename(&other, &file).unwrap();
        chmod(&file, 0o602);
        refused("everybody may write").await;
        chmod(&file, 0o600);
        if chown(&file, Some(Uid::from_raw(4242)), None).is_ok() {
            refused("belongs to user 4242").await;
            chmod(directory.0.path(), 0o2770);
        }
        assert_eq!(taken(&directory.contender()).await.token.get(), 2);
    });
}

#[test]
fn a_damaged_record_is_refused_and_never_mended() {
    run(async {
        let directory = Room::new();
        directory.used().await;
        let file = directory.lock_file();
        let good = fs::read(&file).unwrap();
        let mut bad: Vec<Vec<u8>> = [0, 1, 31, 79].map(|length| good[..length].to_vec()).into();
        bad.push([&good[..], b"x"].concat());
        bad.push(vec![0; 80]);
        bad.extend((0..80).map(|at| {
            let mut flipped = good.clone();
            flipped[at] ^= 0x10;
            flipped
        }));
        for bytes in bad {
            fs::write(&file, &bytes).unwrap();
            let why = refusal(directory.contender().contend().await);
            assert!(why.contains(file.to_str().unwrap()), "{why}");
            assert_eq!(fs::read(&file).unwrap(), bytes);
        }
        // Whoever was refused has left the mutex free.
        fs::write(&file, &good).unwrap();
        assert_eq!(taken(&directory.contender()).await.token.get(), 2);
    });
}

#[test]
fn the_last_number_is_granted_and_none_after_it() {
    run(async {
        let directory = Room::new();
        let number = i64::MAX - 4096 - 1;
        let mut record = Record::new(&name(), [1; 16]);
        record.number = number;
        fs::write(directory.lock_file(), record.encode()).unwrap();
        let last = directory.contender();
        assert_eq!(taken(&last).await.token.get(), number + 1);
        assert!(refusal(directory.contender().contend().await).contains("used up"));
    });
}

#[test]
fn a_record_that_is_older_than_a_living_contender_is_refused() {
    run(async {
        let directory = Room::new();
        directory.used().await;
        let backup = fs::read(directory.lock_file()).unwrap();
        directory.used().await;
        let holder = directory.contender();
        taken(&holder).await;
        fs::write(directory.lock_file(), backup).unwrap();
        assert!(refusal(directory.contender().contend().await).contains("restored"));
    });
}

#[test]
fn a_shared_directory_makes_files_for_its_group() {
    run(async {
        let directory = Room::new();
        chmod(directory.0.path(), 0o770);
        let given = chown(directory.0.path(), None, Some(Gid::from_raw(4242))).is_ok();
        let local = directory.contender();
        taken(&local).await;
        for file in directory.files() {
            let told = fs::metadata(directory.0.path().join(&file)).unwrap();
            assert_eq!(told.mode() & 0o7777, 0o660, "{file}");
            assert!(!given || told.gid() == 4242, "{file}");
        }
    });
}
