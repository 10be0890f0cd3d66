//! Several futures at once in one process: all of them, or the first.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// A future to wait for.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Waits for all futures; returns their results in the order of `futures`.
pub async fn all<T>(futures: Vec<Boxed<'_, T>>) -> Vec<T> {
    let mut futures: Vec<Option<Boxed<'_, T>>> = futures.into_iter().map(Some).collect();
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut open = false;
        for (future, result) in futures.iter_mut().zip(&mut results) {
            let Some(pending) = future else { continue };
            match pending.as_mut().poll(context) {
                Poll::Ready(value) => (*future, *result) = (None, Some(value)),
                Poll::Pending => open = true,
            }
        }
        if open { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    results.into_iter().flatten().collect()
}

/// Waits until one of the futures is complete; returns its position in the list and its result. If several complete at
/// the same instant, the first in the list wins. The others are dropped.
pub async fn first<T>(mut futures: Vec<Boxed<'_, T>>) -> (usize, T) {
    std::future::poll_fn(|context| {
        for (i, future) in futures.iter_mut().enumerate() {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                return Poll::Ready((i, value));
            }
        }
        Poll::Pending
    })
    .await
}
