//! Requests under way by number; numbers are reused after completion.

/// Values by number.
#[derive(Debug)]
pub struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Inserts a value; returns its number.
    #[inline]
    pub fn insert(&mut self, value: T) -> u64 {
        if let Some(place) = self.free.pop() {
            self.values[place as usize] = Some(value);
            return u64::from(place);
        }
        self.values.push(Some(value));
        self.values.len() as u64 - 1
    }

    /// Returns the value that is stored under a number.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.values.get_mut(number as usize)?.as_mut()
    }

    /// Removes a value; returns it.
    #[inline]
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let value = self.values.get_mut(number as usize)?.take();
        if value.is_some() {
            self.free.push(number as u32);
        }
        value
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// Returns true if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
