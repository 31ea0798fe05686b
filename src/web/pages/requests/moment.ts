/**
 * Times within a request.
 */

/** A time since the request began, to the millisecond: `14 ms`, `1.181 s`. */
export const moment = (milliseconds: number): string =>
  milliseconds < 999.5
    ? `${Math.round(milliseconds)} ms`
    : `${(milliseconds / 1000).toFixed(3)} s`
