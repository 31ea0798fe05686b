/** Imported before all else: the wall clock of the process is an hour ahead. */
const now = Date.now
Date.now = () => now() + 3_600_000
