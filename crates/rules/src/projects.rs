//! Projects: which quota their namespace has [GCM-4] [GCM-5], and which of them nobody uses any more [GCM-6].

pub mod quota;
pub mod stale;
