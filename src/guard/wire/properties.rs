//! What holds for every message and for every sequence of bytes.

use super::*;
use proptest::prelude::*;
use std::os::unix::ffi::OsStringExt;

fn text() -> impl Strategy<Value = OsString> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(OsString::from_vec)
}

fn deadlines() -> impl Strategy<Value = Deadlines> {
    (any::<u64>(), any::<u64>()).prop_map(|(stop, dead)| Deadlines { stop_by: Moment(stop), dead_by: Moment(dead) })
}

fn order() -> impl Strategy<Value = Order> {
    let pairs = prop::collection::vec((text(), text()), 0..8);
    prop_oneof![
        (pairs, prop::collection::vec(text(), 0..8), deadlines()).prop_map(|(set, remove, deadlines)| Order::Start {
            set,
            remove,
            deadlines
        }),
        deadlines().prop_map(Order::Renewed),
        any::<i32>().prop_map(Order::Signal),
        Just(Order::Stop),
        Just(Order::Kill),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    let names = || prop::collection::vec(".{0,30}", 0..=MOST_NAMES);
    prop_oneof![
        any::<i32>().prop_map(|pid| Report::Started { pid }),
        any::<i32>().prop_map(|errno| Report::NotStarted { errno }),
        any::<i32>().prop_map(|signal| Report::Paused { signal }),
        any::<i32>().prop_map(|status| Report::Ended { status }),
        names().prop_map(Report::Lingering),
        Just(Report::Overdue),
        names().prop_map(Report::Unkillable),
        Just(Report::Clear),
    ]
}

proptest! {
    #[test]
    fn any_order_and_any_report_come_back_as_they_were_sent(order in order(), report in report()) {
        prop_assert_eq!(Order::decode(&order.encode()), Some(order));
        prop_assert_eq!(decode(&encode(&report)), Some(report));
    }

    #[test]
    fn bytes_that_make_an_order_are_the_bytes_of_that_order(bytes in prop::collection::vec(any::<u8>(), 0..200), tag in 0_u8..20) {
        let tagged = [&[tag], bytes.as_slice()].concat();
        for bytes in [bytes, tagged] {
            if let Some(order) = Order::decode(&bytes) {
                prop_assert_eq!(order.encode(), bytes.clone());
            }
            // Of a report only that it takes neither panic nor memory to find out: its names are made printable.
            decode(&bytes);
        }
    }

    #[test]
    fn no_order_that_lost_or_gained_a_byte_is_another_order(order in order(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let whole = order.encode();
        prop_assert_eq!(Order::decode(&whole[..at.index(whole.len())]), None);
        prop_assert_eq!(Order::decode(&[whole.as_slice(), &[byte]].concat()), None);
    }
}
