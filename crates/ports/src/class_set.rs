//! A set of classes.

/// A set of at most [`ClassSet::MOST`] classes, each by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ClassSet(u64);

impl ClassSet {
    /// Upper limit of classes.
    pub const MOST: usize = u64::BITS as usize;

    /// The set of one class.
    pub fn single(class: usize) -> ClassSet {
        ClassSet(1 << class)
    }

    /// This set and one more class.
    pub fn with_class(self, class: usize) -> ClassSet {
        ClassSet(self.0 | 1 << class)
    }

    /// The classes that are in both sets.
    pub fn common(self, other: ClassSet) -> ClassSet {
        ClassSet(self.0 & other.0)
    }

    /// This set without the classes of another.
    pub fn without(self, other: ClassSet) -> ClassSet {
        ClassSet(self.0 & !other.0)
    }

    /// Whether a class is in the set.
    pub fn contains(self, class: usize) -> bool {
        self.0 >> class & 1 == 1
    }

    /// Whether all classes of another set are in this one.
    pub fn contains_all(self, other: ClassSet) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether the sets have a class in common.
    pub fn intersects(self, other: ClassSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Number of classes.
    pub fn count_classes(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The classes, in ascending order.
    pub fn list_classes(self) -> impl Iterator<Item = usize> {
        (0..ClassSet::MOST).filter(move |class| self.contains(*class))
    }
}

impl FromIterator<usize> for ClassSet {
    fn from_iter<T: IntoIterator<Item = usize>>(classes: T) -> ClassSet {
        classes.into_iter().fold(ClassSet::default(), ClassSet::with_class)
    }
}
