//! Measurements of snippets on simulated machines.

mod adaptive;
mod event_columns;
mod looped;
mod mixes;
mod ranked;
mod setup;
