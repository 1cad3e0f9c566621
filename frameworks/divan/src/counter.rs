//! divan's counters, which are not supported: names for a clear error of the compiler.

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "cyclescope-divan has no counters",
    note = "leave out the counter, and divide the cycles by the number of bytes or items"
)]
pub trait SupportedCounter {}

macro_rules! unsupported {
    ($($name:ident)*) => {$(
        /// Not supported.
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl $name {
            /// Not supported.
            pub fn new<T>(_: T) -> $name {
                $name
            }
        }
    )*};
}

unsupported!(BytesCount CharsCount CyclesCount ItemsCount);
