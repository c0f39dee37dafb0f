//! Sleeping until a moment of the boot clock: the runtime's own timers do not count suspend.

use crate::sys::timer::Wake;
use crate::sys::{clock, ready};
use crate::timing::Moment;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// Where the kernel has no such timer (a strict seccomp filter), the boot clock is looked at this often.
const LOOK: Duration = Duration::from_millis(50);

/// One alarm, set anew for each sleep.
#[derive(Debug)]
pub struct Alarm {
    timer: Option<AsyncFd<Wake>>,
}

impl Alarm {
    /// An alarm on the boot clock. Needs a tokio runtime.
    #[must_use]
    pub fn new() -> Self {
        Self { timer: Wake::new().ok().and_then(|timer| ready::readable(timer).ok()) }
    }

    /// Sleeps until the moment has come; for ever at [`Moment::NEVER`]. Safe to drop and call again.
    pub async fn until(&self, moment: Moment) {
        if moment == Moment::NEVER {
            return std::future::pending().await;
        }
        while clock::now() < moment {
            match &self.timer {
                Some(timer) => wait(timer, moment).await,
                None => tokio::time::sleep(LOOK.min(moment.since(clock::now()))).await,
            }
        }
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

async fn wait(timer: &AsyncFd<Wake>, moment: Moment) {
    // Setting it anew also forgets that it rang before.
    timer.get_ref().set(Some(moment));
    if let Ok(mut ready) = timer.readable().await {
        ready.clear_ready();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn an_alarm_never_rings_early() {
        block_on(async {
            let alarm = Alarm::new();
            for ms in [0, 1, 20] {
                let moment = clock::now() + Duration::from_millis(ms);
                alarm.until(moment).await;
                assert!(clock::now() >= moment);
            }
        });
    }

    #[test]
    fn an_alarm_without_a_kernel_timer_rings_all_the_same() {
        block_on(async {
            let moment = clock::now() + Duration::from_millis(70);
            Alarm { timer: None }.until(moment).await;
            assert!(clock::now() >= moment);
        });
    }
}
