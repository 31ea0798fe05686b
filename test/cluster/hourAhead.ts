/**
 * Imported first: sets the wall clock of the process one hour ahead.
 */
const now = Date.now
Date.now = () => now() + 3_600_000
