//! Makes up what code and frames look like, for tests.
