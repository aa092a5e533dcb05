"""The parts of a report (`surrogate.report`): facts, trust, words, pictures, markup, sections."""
