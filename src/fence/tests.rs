//! The file gate and the publications on a real file system.

use super::file::Gate;
use super::publish::Destination;
use super::register::{Mark, Register};
use crate::store::contract::Failure;
use crate::token::{Lineage, Token};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn mark(token: i64) -> Mark {
    Mark { token: Token::new(token).unwrap(), lineage: Lineage::new("a").unwrap(), lock: None }
}

fn place() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("gate");
    (place, path)
}

fn new_gate(path: &Path) -> Gate {
    Gate::init(path, &Register::default()).unwrap();
    Gate::open(path).unwrap()
}

fn highest(gate: &Gate) -> i64 {
    gate.read().unwrap().highest.map_or(0, |(token, _)| token.get())
}

fn stale<T: std::fmt::Debug>(outcome: Result<T, Failure>) -> String {
    match outcome {
        Err(Failure::Stale(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Failure>) -> String {
    match outcome {
        Err(Failure::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_gate_that_was_never_made_is_refused_and_one_that_is_there_is_not_made_again() {
    let (_place, path) = place();
    assert!(stale(Gate::open(&path)).contains("gate init"));
    let gate = new_gate(&path);
    gate.admit(&mark(5)).unwrap();
    assert!(stale(Gate::init(&path, &Register::default())).contains("already"));
    assert_eq!(highest(&Gate::open(&path).unwrap()), 5);
}

#[test]
fn tokens_only_go_up_and_a_refusal_writes_nothing() {
    let (_place, path) = place();
    let gate = new_gate(&path);
    for token in [5, 5, 9] {
        gate.admit(&mark(token)).unwrap();
    }
    let before = fs::read(&path).unwrap();
    let why = stale(gate.admit(&mark(8)));
    assert!(why.contains('8') && why.contains('9') && why.contains("gate"), "{why}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn whoever_looks_before_admitting_changes_nothing() {
    let (_place, path) = place();
    let gate = new_gate(&path);
    gate.would_admit(&mark(7)).unwrap();
    assert_eq!(gate.read().unwrap(), Register::default());
}

#[test]
fn a_damaged_state_is_refused_with_what_mends_it_and_a_reset_mends_it() {
    let (_place, path) = place();
    new_gate(&path).admit(&mark(9)).unwrap();
    for damage in [&b""[..], b"fenced gate 1\n", &[0; 512], &[b'x'; 600]] {
        fs::write(&path, damage).unwrap();
        let gate = Gate::open(&path).unwrap();
        assert!(stale(gate.admit(&mark(10))).contains("gate reset"));
        gate.write(&Register::default()).unwrap();
        gate.admit(&mark(3)).unwrap();
        assert_eq!(highest(&gate), 3);
    }
}

#[test]
fn one_writer_is_inside_at_a_time() {
    let (_place, path) = place();
    let one = new_gate(&path);
    let other = Gate::open(&path).unwrap();
    assert!(one.try_enter().unwrap());
    assert!(!other.try_enter().unwrap());
    one.leave();
    assert!(other.try_enter().unwrap());
}

#[test]
fn a_gate_that_was_replaced_is_not_entered() {
    let (_place, path) = place();
    let gate = new_gate(&path);
    fs::remove_file(&path).unwrap();
    Gate::init(&path, &Register::default()).unwrap();
    assert!(matches!(gate.try_enter(), Err(Failure::Unavailable(why)) if why.contains("replaced")));
}

#[test]
fn links_and_places_that_others_may_write_are_refused() {
    let (place, path) = place();
    let elsewhere = place.path().join("elsewhere");
    new_gate(&elsewhere);
    symlink(&elsewhere, &path).unwrap();
    assert!(refused(Gate::open(&path)).contains("symbolic link"));
    fs::remove_file(&path).unwrap();
    fs::hard_link(&elsewhere, &path).unwrap();
    assert!(refused(Gate::open(&path)).contains("names"));
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(refused(Gate::open(&elsewhere)).contains("everybody"));
    assert!(refused(Destination::open(&path)).contains("everybody"));
}

struct Site {
    place: TempDir,
    gate: Gate,
    destination: Destination,
}

impl Site {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let destination = Destination::open(&place.path().join("site")).unwrap();
        let gate = new_gate(&destination.gate());
        Self { place, gate, destination }
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("site")
    }

    fn publish(&self, source: &Path, token: i64) -> Result<(), Failure> {
        self.destination.publish(source, &self.gate, &mark(token))
    }

    /// Everything but the destination and its gate.
    fn leftovers(&self) -> Vec<String> {
        let names = fs::read_dir(self.place.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "site" && name != ".site.fence").collect()
    }
}

fn tree(text: &str) -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir_all(tree.path().join("deep/er")).unwrap();
    fs::write(tree.path().join("deep/er/page"), text).unwrap();
    symlink("deep/er/page", tree.path().join("link")).unwrap();
    fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o755)).unwrap();
    tree
}

#[test]
fn a_file_is_published_with_its_mode_and_a_stale_one_is_not() {
    let site = Site::new();
    let source = site.place.path().join("source");
    fs::write(&source, "two").unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o751)).unwrap();
    site.publish(&source, 2).unwrap();
    assert_eq!(fs::read_to_string(site.path()).unwrap(), "two");
    assert_eq!(fs::metadata(site.path()).unwrap().permissions().mode() & 0o777, 0o751);
    fs::write(&source, "one").unwrap();
    stale(site.publish(&source, 1));
    assert_eq!(fs::read_to_string(site.path()).unwrap(), "two");
    assert_eq!(site.leftovers(), ["source"]);
}

#[test]
fn a_directory_is_published_whole_and_the_version_before_stays_for_its_readers() {
    let site = Site::new();
    for (token, text) in [(1, "one"), (2, "two"), (3, "three")] {
        let old_reader = fs::read_link(site.path()).ok();
        site.publish(tree(text).path(), token).unwrap();
        assert_eq!(fs::read_to_string(site.path().join("link")).unwrap(), text);
        assert_eq!(fs::metadata(site.path()).unwrap().permissions().mode() & 0o777, 0o755);
        if let Some(old) = old_reader {
            assert!(site.place.path().join(old).join("deep/er/page").exists());
        }
    }
    assert_eq!(site.leftovers().len(), 2, "the current version and the one before: {:?}", site.leftovers());
    stale(site.publish(tree("two again").path(), 2));
    assert_eq!(fs::read_to_string(site.path().join("link")).unwrap(), "three");
}

#[test]
fn what_a_killed_publication_left_is_removed_and_what_is_somebody_elses_is_not() {
    let site = Site::new();
    for name in [".site.7-0123abcd.staged", ".site.7-0123abcd.link", ".site.notes", ".sites.7-0123abcd.staged"] {
        fs::write(site.place.path().join(name), "half").unwrap();
    }
    site.publish(tree("whole").path(), 8).unwrap();
    let left = site.leftovers();
    assert!(left.contains(&".site.notes".into()) && left.contains(&".sites.7-0123abcd.staged".into()), "{left:?}");
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_directory_in_the_destinations_place_is_not_touched() {
    let site = Site::new();
    fs::create_dir(site.path()).unwrap();
    assert!(refused(site.publish(tree("x").path(), 1)).contains("symbolic link"));
    let file = site.place.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(refused(site.publish(&file, 1)).contains("a file"));
    assert_eq!(site.leftovers(), ["file"]);
}

#[test]
fn a_source_that_is_missing_or_no_file_publishes_nothing() {
    let site = Site::new();
    assert!(site.publish(&site.place.path().join("missing"), 1).is_err());
    assert!(site.publish(Path::new("/dev/null"), 1).is_err());
    assert_eq!(site.leftovers(), Vec::<String>::new());
}
