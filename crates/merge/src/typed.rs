//! Values walked together with their schema.
