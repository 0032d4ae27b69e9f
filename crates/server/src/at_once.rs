//! A future that wakes itself while it is polled is polled again at once.
//!
//! A connection does so with every request that has a body: whoever asks for the body wakes the task that he is a
//! part of. The runtime would put that task at the end of its queue and wake another worker to take it from there.
//!
//! Invariant: no wake is lost; one that comes between two polls wakes the task.

use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Polls in a row before others have their turn.
const POLLS_MAX: usize = 4;

const AT_REST: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

pub(crate) async fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let bell = Arc::new(Bell { state: AtomicU8::new(AT_REST), task: AtomicWaker::new() });
    let waker = Waker::from(Arc::clone(&bell));
    poll_fn(|context| bell.poll(context, &waker, future.as_mut())).await
}

struct Bell {
    state: AtomicU8,
    /// The task that the future is a part of.
    task: AtomicWaker,
}

impl Bell {
    fn poll<F: Future>(
        &self,
        context: &mut Context<'_>,
        waker: &Waker,
        mut future: Pin<&mut F>,
    ) -> Poll<F::Output> {
        self.task.register(context.waker());
        for _ in 0..POLLS_MAX {
            self.state.store(POLLED, Ordering::SeqCst);
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(output);
            }
            let rested =
                self.state.compare_exchange(POLLED, AT_REST, Ordering::SeqCst, Ordering::SeqCst);
            if rested.is_ok() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::SeqCst) == AT_REST {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A future that wakes itself in its first `self_wakes` polls and then leaves its waker for others.
    fn counted<'a>(
        polls: &'a AtomicUsize,
        self_wakes: usize,
        left: &'a AtomicWaker,
    ) -> impl Future<Output = ()> + 'a {
        poll_fn(move |context| {
            if polls.fetch_add(1, Ordering::SeqCst) < self_wakes {
                context.waker().wake_by_ref();
            } else {
                left.register(context.waker());
            }
            Poll::Pending
        })
    }

    #[test]
    fn who_wakes_himself_is_polled_again_and_wakes_nobody() {
        let (polls, left, count) = (AtomicUsize::new(0), AtomicWaker::new(), Arc::default());
        let waker = Waker::from(Arc::<Count>::clone(&count));
        let mut future = pin!(at_once(counted(&polls, 1, &left)));
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!((polls.load(Ordering::SeqCst), count.0.load(Ordering::SeqCst)), (2, 0));
        // From outside it is woken once, however often it is called.
        left.wake();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        left.wake();
        assert_eq!((polls.load(Ordering::SeqCst), count.0.load(Ordering::SeqCst)), (3, 2));
    }

    #[test]
    fn who_never_rests_lets_others_have_their_turn() {
        let (polls, left, count) = (AtomicUsize::new(0), AtomicWaker::new(), Arc::default());
        let waker = Waker::from(Arc::<Count>::clone(&count));
        let mut future = pin!(at_once(counted(&polls, usize::MAX, &left)));
        for round in 1..4 {
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(polls.load(Ordering::SeqCst), round * POLLS_MAX);
            assert_eq!(count.0.load(Ordering::SeqCst), round);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_of_another_thread_is_lost() {
        for _ in 0..200 {
            let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
            let mut sending = tokio::task::JoinSet::new();
            sending.spawn(async move {
                for n in 0..100 {
                    sender.send(n).await.unwrap();
                }
            });
            let reading = at_once(async {
                let mut sum = 0;
                while let Some(n) = receiver.recv().await {
                    sum += n;
                }
                sum
            });
            assert_eq!(reading.await, 4950);
        }
    }
}
