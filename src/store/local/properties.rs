//! What holds for every record, every sequence of bytes in its place, and the file names of all locks.

use super::names::Names;
use super::record::Record;
use crate::name::LockName;
use proptest::prelude::*;

fn lock() -> impl Strategy<Value = LockName> {
    prop_oneof!["[ -~]{1,255}", "\\PC{1,60}", "[./%~]{1,255}"]
        .prop_filter_map("a name", |typed| LockName::parse(&typed).ok())
}

fn record() -> impl Strategy<Value = (LockName, Record)> {
    (lock(), any::<[u8; 16]>(), 0..=i64::MAX).prop_map(|(lock, lineage, number)| {
        let mut record = Record::new(&lock, lineage);
        record.number = number;
        (lock, record)
    })
}

proptest! {
    #[test]
    fn any_record_comes_back_and_the_next_one_is_greater((lock, record) in record()) {
        prop_assert_eq!(Record::decode(&record.encode(), &lock), Ok(record.clone()));
        if let Ok(next) = record.next() {
            prop_assert_eq!((next.number, next.lineage), (record.number + 1, record.lineage));
        }
    }

    #[test]
    fn bytes_that_nobody_wrote_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), lock in lock()) {
        prop_assert!(Record::decode(&bytes, &lock).is_err());
    }

    #[test]
    fn a_record_in_which_anything_was_changed_is_refused(
        (lock, record) in record(),
        changes in prop::collection::vec((0_usize..80, 1_u8..), 1..4),
    ) {
        let good = record.encode();
        let mut bytes = good;
        for (at, bits) in changes {
            bytes[at] ^= bits;
        }
        prop_assume!(bytes != good);
        prop_assert!(Record::decode(&bytes, &lock).is_err());
    }

    #[test]
    fn the_files_of_two_locks_are_never_the_same_and_each_is_one_word(one in lock(), other in lock(), number in 1..i64::MAX) {
        let (ours, theirs) = (Names::of(&one), Names::of(&other));
        for name in [ours.lock(), ours.info(number), ours.temporary()] {
            prop_assert!(name.len() <= 255 && !name.contains('/'), "{}", name);
        }
        prop_assert!(!ours.lock().starts_with('.'));
        prop_assert_eq!(ours.number_of_info(&ours.info(number)), Some(number));
        prop_assert!(ours.is_temporary(&ours.temporary()));
        if one != other {
            prop_assert_ne!(ours.lock(), theirs.lock());
            prop_assert_eq!(theirs.number_of_info(&ours.info(number)), None);
            prop_assert!(!theirs.is_temporary(&ours.temporary()));
        }
    }
}
