//! Measurements of snippets on simulated machines.

mod adaptive;
mod event_columns;
mod looped;
mod ranked;
mod setup;
